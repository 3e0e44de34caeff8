"""Is every kernel of the sample models modelled on every target, and how long does it take?

    python -m tests.benchmarks.cycles.samples [--models gpt2_2layer,…] [--targets gfx942,…]
        [--processes 1] [--cache DIR]

Each kernel at the sizes that the model was exported with, on its target's first board. Prints, for
each model and target, kernels that were modelled without an instruction that the emulator does not
know, of all, and the seconds of processor time that they took. Exits with 1 where one was not, or
where fewer than 95% took less than 5 seconds on one core.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from scheduler import samples
from scheduler.build.cache import CodeCache
from scheduler.bundle.reader import open_bundle
from scheduler.cycles.bundles import model_bundle
from scheduler.cycles.kernel_model import TARGETS
from scheduler.ir.bindings import hint_bindings
from scheduler.targets import boards, find
from tests.benchmarks.printing import say
from tests.support.whole_models import compiled

GOAL_S = 5.0
GOAL_SHARE = 0.95


@dataclass(frozen=True)
class Modelled:
    """One kernel: processor time in seconds, and what was not known of it."""

    model: str
    target: str
    kernel: str
    seconds: float
    unknown: str


def modelled(task: tuple[Path, str, str]) -> list[Modelled]:
    """All kernels of a bundle on one target."""
    folder, model, target = task
    bundle = open_bundle(folder)
    sizes = hint_bindings(bundle.manifest.symbols)
    found = []
    begin = time.process_time()
    for name, _, report in model_bundle(bundle, find(target), boards(target)[0], sizes):
        seconds = time.process_time() - begin
        unknown = ", ".join(f"{each} ({count})" for each, count in report.unknown.items())
        found.append(Modelled(model, target, name, seconds, unknown))
        begin = time.process_time()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.cycles.samples")
    parser.add_argument("--models", type=lambda text: text.split(","), default=samples.names())
    parser.add_argument("--targets", type=lambda text: text.split(","), default=list(TARGETS))
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "kiln")
    given = parser.parse_args(arguments)
    cache = CodeCache(given.cache.absolute())
    found: list[Modelled] = []
    with tempfile.TemporaryDirectory() as name, ProcessPoolExecutor(given.processes) as pool:
        tasks = []
        for model in given.models:
            folder = Path(name) / model
            compiled(model, given.targets, cache, folder)
            tasks += [(folder, model, target) for target in given.targets]
        for each in pool.map(modelled, tasks):
            found += each
    return _told(found)


def _told(found: Sequence[Modelled]) -> int:
    for (model, target), rows in groupby(found, key=lambda each: (each.model, each.target)):
        of = list(rows)
        known = sum(not each.unknown for each in of)
        worst = max(of, key=lambda each: each.seconds)
        say(
            f"{model} {target}: {known}/{len(of)} kernels, {sum(e.seconds for e in of):.1f} s, at"
            f" most {worst.seconds:.1f} s ({worst.kernel})"
        )
    for each in found:
        if each.unknown:
            say(f"{each.model} {each.target} {each.kernel}: not known: {each.unknown}")
    quick = sum(each.seconds < GOAL_S for each in found)
    say(f"{quick} of {len(found)} kernels ({quick / len(found):.1%}) took less than {GOAL_S:g} s")
    known = all(not each.unknown for each in found)
    return 0 if known and quick >= GOAL_SHARE * len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
