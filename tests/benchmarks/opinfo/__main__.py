"""torch's own OpInfo database as the judge: its sample inputs through reference and kernels.

    python -m tests.benchmarks.opinfo [--op PATTERN …] [--dtype D …] [--sample N] [--shard I/N]
                                      [--level reference|interpret|kernels] [--decompose]
                                      [--jobs N] [--out FILE]
    python -m tests.benchmarks.opinfo --merge FILE …

For each op of the database (and each of its variants), and each type of elements that torch's CPU
takes for it and the engine has, its sample inputs, drawn by a fixed seed, are exported with torch,
the tensors as the model's inputs. The levels, each with those before it:

- ``reference``: the file is read, and the reference gives what torch gives in float64, or in the
  type itself within the tolerance of torch's own tests, in torch's shapes and types;
- ``interpret``: it lowers with a kernel for each op, but those whose row in the table says why
  there is none; operations, fused, give what the reference gives;
- ``kernels`` (the default): the kernels are built for the CPU emulation (cpu-gfx942) and give it
  within the engine's own bounds.

Values that torch draws at random are compared in shape and type alone. What torch itself raises
for or does not export is counted apart. ``--sample N`` takes N samples of each op and type, spread
from first to last; ``--decompose`` exports to Core ATen. Prints what fails, tables by type, and
the rate; exits with 1 where it is below 99.5%, exceptions.toml left out, or an exception passes.
Needs torch and NumPy beside the project, no network. ``--merge`` prints those tables of several
runs' files (``--out``), as of all shards.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TextIO

import torch

from scheduler.build.cache import CodeCache
from scheduler.build.toolchains import bundled_clang
from scheduler.lowering.ops.table import catalogue
from tests.benchmarks.opinfo import report
from tests.benchmarks.opinfo.database import DTYPES, database
from tests.benchmarks.opinfo.exceptions import needless
from tests.benchmarks.opinfo.judging import Level, Tools, Verdict
from tests.benchmarks.opinfo.running import tasks_of, verdicts
from tests.benchmarks.printing import say


def main() -> int:
    """Judge; 1 where too much is wrong."""
    options = _options()
    if options.merge:
        return _told([verdict for path in options.merge for verdict in report.load(path)])
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder, options.out.open("w") as out:
        found = _judged(options, options.cache or Path(folder), out)
    return _told(found)


def _judged(options: argparse.Namespace, cache: Path, out: TextIO) -> list[Verdict]:
    counts = catalogue()["samples"]
    every = [
        task
        for op in _chosen(options)
        for task in tasks_of(op, options.dtype, options.sample, counts.get(op, {}))
    ]
    tasks = every[options.shard[0] :: options.shard[1]]
    say(f"{len(tasks)} tasks, {options.jobs} processes, level {options.level.name.lower()}")
    if options.level is Level.KERNELS:
        bundled_clang(CodeCache(cache))
    tools = Tools(options.level, cache, flags=options.flags, decompose=options.decompose)
    start = last = time.monotonic()
    found: list[Verdict] = []
    for verdict in verdicts(tasks, tools, options.jobs):
        found.append(verdict)
        out.write(report.line(verdict))
        if time.monotonic() - last > 30:
            last = time.monotonic()
            out.flush()
            say(f"{last - start:.0f} s, {verdict.op}: {report.counts(found)}")
    say(f"{time.monotonic() - start:.0f} s")
    return found


def _chosen(options: argparse.Namespace) -> list[str]:
    names = list(database())
    if not options.op:
        return names
    return [n for n in names if any(fnmatchcase(n, pattern) for pattern in options.op)]


def _told(found: list[Verdict]) -> int:
    for line in report.lines(found):
        say(line)
    right = report.counts(found).rate >= report.GOAL
    return 0 if right and not list(needless(found)) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--op", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--dtype", action="append", default=[], choices=list(DTYPES))
    parser.add_argument("--level", type=_level, default=Level.KERNELS, metavar="LEVEL")
    parser.add_argument("--sample", type=int, metavar="N", help="of each op and type")
    parser.add_argument("--shard", type=_shard, default=(0, 1), metavar="I/N", help="from 1/N on")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--decompose", action="store_true", help="export to Core ATen")
    parser.add_argument("--flags", default="-O1", help="of the compiler (%(default)s)")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="of built kernels, to keep")
    parser.add_argument("--out", type=Path, default=Path(os.devnull), metavar="FILE")
    parser.add_argument("--merge", type=Path, nargs="+", metavar="FILE")
    return parser.parse_args()


def _level(text: str) -> Level:
    try:
        return Level[text.upper()]
    except KeyError:
        names = ", ".join(level.name.lower() for level in Level)
        raise argparse.ArgumentTypeError(f"one of {names}") from None


def _shard(text: str) -> tuple[int, int]:
    index, _, count = text.partition("/")
    if not (index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
        raise argparse.ArgumentTypeError("I/N, from 1/N to N/N")
    return int(index) - 1, int(count)


if __name__ == "__main__":
    sys.exit(main())
