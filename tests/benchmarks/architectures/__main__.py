"""Real architectures of timm, transformers and diffusers, small and with random weights.

    python -m tests.benchmarks.architectures [NAME …] [--level reference|interpret|kernels]
                                             [--jobs N] [--site DIR] [--write]

Each is exported by torch, read, run by the reference beside torch, lowered, its kernels written;
``interpret`` (the default) also runs the fused operations, ``kernels`` builds the kernels for the
CPU emulation and runs those. Prints a table: nodes, kernels, ops that no kernel is made for, and
what is wrong; ``--write`` writes it to docs/architectures.md. ``--site`` is a folder that timm,
transformers and diffusers were installed to (``pip install --target``). Exits with 1 where one is
wrong, or fewer than 55 are without an extern.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch

from tests.benchmarks.architectures.judging import Outcome, judge
from tests.benchmarks.architectures.libraries import prepare, versions
from tests.benchmarks.architectures.models import ARCHITECTURES, Architecture
from tests.benchmarks.opinfo.judging import Level
from tests.benchmarks.printing import say

GOAL = 55
_LIMIT_S = 900.0
_DOCUMENT = Path(__file__).parents[3] / "docs" / "architectures.md"


def main() -> int:
    """Judge; 1 where something is wrong."""
    options = _options()
    if options.site:
        sys.path.append(str(options.site))
    prepare()
    about = versions()
    say(about)
    torch.set_num_threads(1)
    chosen = [a for a in ARCHITECTURES if not options.names or _named(a.name, options.names)]
    with tempfile.TemporaryDirectory() as folder:
        cache = options.cache or Path(folder)
        found = []
        for one in _outcomes(chosen, options.level, cache, options.jobs):
            found.append(one)
            say(_line(one))
    order = {one.name: place for place, one in enumerate(chosen)}
    found.sort(key=lambda one: order[one.name])
    right = [one for one in found if not one.failed]
    whole = [one for one in right if not one.externs]
    summary = f"{len(right)} of {len(found)} correct, {len(whole)} without an extern"
    say(f"\n{summary}")
    if options.write:
        _DOCUMENT.write_text(_page(found, summary, about, options.level))
    return 0 if len(right) == len(found) and (options.names or len(whole) >= GOAL) else 1


def _named(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _outcomes(
    chosen: Sequence[Architecture], level: Level, cache: Path, jobs: int
) -> Iterator[Outcome]:
    """As they come, each from a process of its own."""
    waiting = list(reversed(chosen))
    running: list[tuple[Architecture, Any, Connection, float]] = []
    context = multiprocessing.get_context("fork")
    while waiting or running:
        while waiting and len(running) < jobs:
            one = waiting.pop()
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_work, args=(one, level, cache, theirs), daemon=True)
            process.start()
            theirs.close()
            running.append((one, process, ours, time.monotonic()))
        wait([pipe for _, _, pipe, _ in running], timeout=1.0)
        for entry in list(running):
            one, process, pipe, start = entry
            late = time.monotonic() - start > _LIMIT_S
            if not pipe.poll() and not late:
                continue
            running.remove(entry)
            yield replace(_received(one, process, pipe, late), seconds=time.monotonic() - start)


def _received(one: Architecture, process: Any, pipe: Connection, late: bool) -> Outcome:
    try:
        if not late:
            found: Outcome = pipe.recv()
            return found
        reason = f"takes more than {_LIMIT_S:.0f} s"
    except EOFError:
        process.join(10)
        reason = f"the process died (status {process.exitcode})"
    finally:
        process.kill()
        pipe.close()
    return Outcome(one.name, one.field, failed="run", reason=reason)


def _work(one: Architecture, level: Level, cache: Path, pipe: Connection) -> None:
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)  # warnings of theirs
    pipe.send(judge(one, level, cache))


def _line(one: Outcome) -> str:
    state = f"{one.failed}: {one.reason}" if one.failed else "right"
    externs = ", ".join(one.externs) or "-"
    figures = f"{one.nodes}\t{one.kernels}\t{externs}\t{state}\t{one.seconds:.0f} s"
    return f"{one.field}\t{one.name}\t{figures}"


def _page(found: Sequence[Outcome], summary: str, about: str, level: Level) -> str:
    how = "the reference with torch"
    if level is Level.INTERPRET:
        how += ", and the fused operations with the reference"
    if level is Level.KERNELS:
        how += ", and the emulated kernels with the reference"
    rows = "".join(
        f"| {one.field} | {one.name} | {one.nodes} | {one.kernels} |"
        f" {', '.join(one.externs) or 'none'} |"
        f" {f'{one.failed}: {one.reason}' if one.failed else 'correct'} |\n"
        for one in found
    )
    return (
        "# Architectures\n\n"
        "Written by `python -m tests.benchmarks.architectures --write`: real architectures with"
        " small configurations and random weights, exported, imported and compiled."
        f" Compared: {how}. {about}.\n\n{summary}.\n\n"
        "| field | architecture | nodes | kernels | computed by the reference | result |\n"
        "|---|---|---|---|---|---|\n" + rows
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="shell patterns; all by default")
    parser.add_argument("--level", default="interpret", choices=[one.name.lower() for one in Level])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--site", type=Path, metavar="DIR")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="of built kernels, to keep")
    parser.add_argument("--write", action="store_true", help="docs/architectures.md")
    options = parser.parse_args()
    options.level = Level[options.level.upper()]
    return options


if __name__ == "__main__":
    sys.exit(main())
