"""Random models through the whole engine for as long as one likes, against the reference.

    python -m tests.benchmarks.fuzz [--seconds 300] [--from SEED] [--target cpu] [--ops 10]

Prints a line for each library of models, and for each model that is wrong, does not compile or
is rejected: its seed and what happened. The same seed is the same model; ``--only SEED`` runs one
and prints its graph. Exits with 1 when anything was wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from scheduler.build.cache import CodeCache
from scheduler.build.flags import parse_flags
from scheduler.outcome import UserError
from scheduler.runtime.device import DeviceError
from scheduler.targets import Target, find
from tests.benchmarks.printing import say
from tests.support.emulated_models import Prepared, compile_all, differences, prepare, run
from tests.support.random_models import BINDINGS, RandomModel, random_model

MODELS = 24  # of one library
# What a fault in any layer of the engine may show itself as; anything else ends the run.
FAULTS = (ArithmeticError, DeviceError, LookupError, TypeError, UserError, ValueError)


def main() -> int:
    """Run for the time given; the number of faulty models decides the status."""
    options = _options()
    target, flags = find(options.target), parse_flags(options.flags)
    first = options.first if options.only is None else options.only
    end = time.monotonic() + options.seconds
    models = faults = compared = total = 0
    with tempfile.TemporaryDirectory() as folder:
        cache = CodeCache(Path(folder))
        while time.monotonic() < end:
            seeds = range(first, first + (MODELS if options.only is None else 1))
            start = time.monotonic()
            ready = list(_prepared(seeds, options.ops, target))
            faulty = len(seeds) - len(ready)
            try:
                library = compile_all([one for _, _, one in ready], target, cache, flags)
            except AssertionError as error:
                say(f"seeds {seeds.start}..{seeds.stop - 1} do not compile: {error}")
                return 1
            for seed, model, one in ready:
                found, seen, of = _compared(model, one, library, target)
                compared, total = compared + seen, total + of
                faulty += bool(found)
                for line in found:
                    say(f"seed {seed}: {line}")
                if options.only is not None:
                    _describe(model)
            models, faults = models + len(seeds), faults + faulty
            say(
                f"{models} models, {faults} faulty; {compared} of {total} elements compared;"
                f" {time.monotonic() - start:.1f} s"
            )
            if options.only is not None:
                break
            first = seeds.stop
    return 1 if faults else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="SEED")
    parser.add_argument("--only", type=int, metavar="SEED")
    parser.add_argument("--ops", type=int, default=10, help="of a model, about")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--flags", default="-O1")
    return parser.parse_args()


def _prepared(
    seeds: range, ops: int, target: Target
) -> Iterator[tuple[int, RandomModel, Prepared]]:
    """Models with their kernels' texts; those that are rejected are printed."""
    for seed in seeds:
        model = random_model(Random(seed), ops)
        try:
            yield seed, model, prepare(model.graph(), target)
        except FAULTS as error:
            say(f"seed {seed}: {type(error).__name__}: {error}")


def _compared(
    model: RandomModel, one: Prepared, library: Path, target: Target
) -> tuple[list[str], int, int]:
    found: list[str] = []
    compared = total = 0
    for place, bindings in enumerate(BINDINGS):
        inputs = {given.name: model.values[given.name][place] for given in model.inputs}
        try:
            got = run(one, library, target, inputs, bindings)
            wrong, seen, of = differences(one.graph, got, inputs, bindings)
        except FAULTS as error:
            return [*found, f"{bindings}: {type(error).__name__}: {error}"], compared, total
        found += [f"{bindings}: {line}" for line in wrong]
        compared, total = compared + seen, total + of
    return found, compared, total


def _describe(model: RandomModel) -> None:
    for name, meta in model.tensors.items():
        node = next((node for node in model.nodes if name in node.outputs), None)
        made = f" = {node.target}{node.args} {dict(node.kwargs)}" if node else f" {meta.stride}"
        say(f"{name}: {meta.dtype.label}{list(meta.size)}{made}")


if __name__ == "__main__":
    sys.exit(main())
