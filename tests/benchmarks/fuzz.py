"""Random models through the whole engine for as long as one likes, against the reference.

    python -m tests.benchmarks.fuzz [--seconds 300 | --models N] [--from SEED] [--ops 10]
                                    [--device cuda:0 | --target cpu] [--workers N]

Runs on CPU emulation of the target, or on the device that is named. Prints a line for each library
of models, and for each model that is wrong, does not compile or is rejected: its seed and what
happened. The same seed is the same model; ``--only SEED`` runs one and prints its graph. Each
library has a process of its own, which nothing else goes down with. Exits with 1 when anything was
wrong.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random

from scheduler.benchmark.verification import device_target
from scheduler.build.cache import CodeCache
from scheduler.build.flags import parse_flags
from scheduler.build.toolchains import Search, find_target_toolchains, pick_toolchain
from scheduler.errors import UserError
from scheduler.runtime.device import Device, DeviceError
from scheduler.targets import Target, find
from tests.benchmarks.printing import say
from tests.support.models_as_kernels import (
    Prepared,
    compile_all,
    differences,
    opened,
    prepare,
    run_on,
)
from tests.support.random_models import BINDINGS, RandomModel, random_model

MODELS = 24  # of one library
# What a fault in any layer of the engine may show itself as; anything else ends the run.
FAULTS = (ArithmeticError, DeviceError, LookupError, TypeError, UserError, ValueError)


@dataclass(frozen=True)
class Batch:
    """Models that become one library."""

    seeds: range
    ops: int
    device: str
    target: str
    flags: str
    cache: Path


@dataclass(frozen=True)
class Outcome:
    """What became of a batch: models that were faulty, elements compared of all, what to say."""

    models: int
    faulty: int = 0
    compared: int = 0
    total: int = 0
    lines: tuple[str, ...] = ()


def main() -> int:
    """Run for the time or the number of models given; faulty models decide the status."""
    options = _options()
    end = time.monotonic() + options.seconds
    models = faults = compared = total = 0
    say(f"{options.device}, target {options.target}, {options.workers} processes")
    with tempfile.TemporaryDirectory() as folder:
        for done in _outcomes(_batches(options, Path(folder), end), options.workers):
            for line in done.lines:
                say(line)
            models, faults = models + done.models, faults + done.faulty
            compared, total = compared + done.compared, total + done.total
            say(f"{models} models, {faults} faulty; {compared} of {total} elements compared")
    return 1 if faults else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--models", type=int, metavar="N", help="that many, however long it takes")
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="SEED")
    parser.add_argument("--only", type=int, metavar="SEED")
    parser.add_argument("--ops", type=int, default=10, help="of a model, about")
    parser.add_argument("--device", default="cpu", help="cuda:0, or cpu for the emulation")
    parser.add_argument("--target", help="of the emulation; a GPU has its own")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes at a time")
    parser.add_argument("--flags", default="-O1")
    options = parser.parse_args()
    if options.device != "cpu":
        try:
            options.target = device_target(options.device)
        except (DeviceError, UserError) as error:
            parser.error(str(error))
    options.target = options.target or "cpu"
    if options.only is not None:
        options.first, options.models = options.only, 1
    if options.models is not None:
        options.seconds = float("inf")
    return options


def _batches(options: argparse.Namespace, cache: Path, end: float) -> Iterator[Batch]:
    last = options.first + options.models if options.models is not None else sys.maxsize
    for first in itertools.count(options.first, MODELS):
        if first >= last or time.monotonic() >= end:
            return
        seeds = range(first, min(first + MODELS, last))
        yield Batch(seeds, options.ops, options.device, options.target, options.flags, cache)


def _outcomes(batches: Iterator[Batch], workers: int) -> Iterator[Outcome]:
    """As they come: so many at a time, each in a fresh process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, max_tasks_per_child=1) as pool:
        running: set[Future[Outcome]] = set()
        for batch in itertools.chain(batches, (None,)):
            if batch is not None:
                running.add(pool.submit(work, batch))
            while running and (batch is None or len(running) >= workers):
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (one.result() for one in done)


def work(batch: Batch) -> Outcome:
    """Make, compile, run and judge the models of a batch."""
    target, lines = find(batch.target), []
    ready = list(_prepared(batch, target, lines))
    faulty, compared, total = len(lines), 0, 0
    cache = CodeCache(batch.cache)
    found = find_target_toolchains(target, Search(path=os.environ.get("PATH", ""), cache=cache))
    try:
        kernels = [one for _, _, one in ready]
        compiler = pick_toolchain(found, target) if batch.device != "cpu" else None
        library = compile_all(kernels, target, cache, parse_flags(batch.flags), compiler)
    except AssertionError as error:
        seeds = batch.seeds
        lines.append(f"seeds {seeds.start}..{seeds.stop - 1} do not compile: {error}")
        return Outcome(len(seeds), len(seeds), 0, 0, tuple(lines))
    with closing(opened(batch.device, target)) as device:
        for seed, model, one in ready:
            wrong, seen, of = _compared(device, model, one, library)
            compared, total = compared + seen, total + of
            faulty += bool(wrong)
            lines += [f"seed {seed}: {line}" for line in wrong]
            if len(batch.seeds) == 1:
                lines += _description(model)
    return Outcome(len(batch.seeds), faulty, compared, total, tuple(lines))


def _prepared(
    batch: Batch, target: Target, lines: list[str]
) -> Iterator[tuple[int, RandomModel, Prepared]]:
    """Models with their kernels' texts; a line for each that is rejected."""
    for seed in batch.seeds:
        model = random_model(Random(seed), batch.ops)
        try:
            yield seed, model, prepare(model.graph(), target)
        except FAULTS as error:
            lines.append(f"seed {seed}: {type(error).__name__}: {error}")


def _compared(
    device: Device, model: RandomModel, one: Prepared, library: Path
) -> tuple[list[str], int, int]:
    found: list[str] = []
    compared = total = 0
    for place, bindings in enumerate(BINDINGS):
        inputs = {given.name: model.values[given.name][place] for given in model.inputs}
        try:
            got = run_on(device, one, library, inputs, bindings)
            wrong, seen, of = differences(one.graph, got, inputs, bindings)
        except FAULTS as error:
            return [*found, f"{bindings}: {type(error).__name__}: {error}"], compared, total
        found += [f"{bindings}: {line}" for line in wrong]
        compared, total = compared + seen, total + of
    return found, compared, total


def _description(model: RandomModel) -> Iterator[str]:
    for name, meta in model.tensors.items():
        node = next((node for node in model.nodes if name in node.outputs), None)
        made = f" = {node.target}{node.args} {dict(node.kwargs)}" if node else f" {meta.stride}"
        yield f"{name}: {meta.dtype.label}{list(meta.size)}{made}"


if __name__ == "__main__":
    sys.exit(main())
