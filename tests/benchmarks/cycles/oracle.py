"""Does the machine code do what the source does? Every kernel of the sample models by its own
instructions (``isa:gfx942`` and so on), all blocks, beside the CPU emulation of its source and
beside the float64 reference.

    python -m tests.benchmarks.cycles.oracle [--models gpt2_2layer,…] [--targets gfx942,…]
        [--processes 2] [--size 19] [--cache DIR]

A kernel is right where its stores are within the gate's bounds of the reference, and of the CPU
emulation's: integers bit for bit, floats within the type's tolerance. Prints kernels right of all
for each model and target, then what is wrong. Exits with 1 where one is.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from scheduler import samples
from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.case import Case
from scheduler.benchmark.case_builder import make_case
from scheduler.benchmark.gate import compare_output
from scheduler.benchmark.verification import kernel_nodes, rebuild_schedule
from scheduler.build.cache import CodeCache
from scheduler.bundle.emulated import library_for
from scheduler.bundle.manifest import request_of
from scheduler.bundle.reader import Bundle, open_bundle
from scheduler.codegen.kernel import KernelCall
from scheduler.codegen.problem import problem_of
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.bindings import Bindings
from scheduler.ir.storage import from_storage_native
from scheduler.runtime.device import DeviceError
from scheduler.runtime.devices import open_device
from scheduler.runtime.isa_device import PROCESSORS
from scheduler.targets.emulation import EMULATIONS
from tests.benchmarks.printing import say
from tests.support.kernel_outputs import CandidateOutputs, run_candidate
from tests.support.whole_models import compiled

SIZE = 19  # of each symbolic size: no multiple of a tile, so that every tail is run


@dataclass(frozen=True)
class Judged:
    """One kernel at one size: empty ``wrong`` where it is right. ``ratio`` is the worst error by
    its bound."""

    model: str
    target: str
    kernel: str
    wrong: str
    ratio: float
    seconds: float


def emulation_of(target: str) -> str:
    """The CPU target that emulates a GPU's source."""
    return next(one.name for one in EMULATIONS if one.emulates == target)


def sizes_of(bundle: Bundle, size: int) -> Bindings:
    """Every symbolic size as near to ``size`` as it may be."""
    found: Bindings = {}
    for name, info in bundle.manifest.symbols.items():
        most = size if info.maximum is None else min(size, info.maximum)
        found[name] = max(info.minimum, most)
    return found


def calls_of(bundle: Bundle, bindings: Bindings) -> Iterator[tuple[SchedulerNode, KernelCall, int]]:
    """Each kernel with its first call, and the seed of its case."""
    plan = rebuild_schedule(bundle)
    seen: set[tuple[str, str]] = set()
    for node, each in zip(kernel_nodes(plan), bundle.manifest.calls, strict=True):
        call = each.select_variant(bindings)
        key = call.kernel, problem_of(node, plan.lowered).key(bindings)
        if key not in seen:
            seen.add(key)
            yield node, call, len(seen)


def judge(folder: Path, model: str, target: str, size: int) -> list[Judged]:
    """All kernels of a bundle on one target."""
    bundle = open_bundle(folder)
    plan = rebuild_schedule(bundle)
    bindings = sizes_of(bundle, size)
    found = []
    for node, call, seed in calls_of(bundle, bindings):
        begin = time.monotonic()
        case = make_case(node, plan.lowered, bindings, np.random.default_rng([0, seed]))
        try:
            own = _stores(bundle, call, case, bindings, target, f"isa:{target}")
            source = _stores(bundle, call, case, bindings, emulation_of(target), None)
        except DeviceError as error:
            wrong, ratio = str(error), float("inf")
        else:
            check = own.check(case)
            wrong = ("" if check.passed else check.detail) or beside(case, own, source)
            ratio = check.ratio
        seconds = time.monotonic() - begin
        found.append(Judged(model, target, call.kernel, wrong, ratio, seconds))
    return found


def _stores(
    bundle: Bundle,
    call: KernelCall,
    case: Case,
    bindings: Bindings,
    target: str,
    device_id: str | None,
) -> CandidateOutputs:
    request = request_of(bundle.manifest, call, target, bindings)
    device = open_device(device_id or target)
    try:
        with tempfile.TemporaryDirectory() as folder:
            library = library_for(bundle, call.kernel, target, device.info.id, Path(folder))
            candidate = BuiltCandidate(call.kernel, str(library), request)
            return run_candidate(device, case, candidate)
    finally:
        device.close()


def beside(case: Case, own: CandidateOutputs, source: CandidateOutputs) -> str:
    """How the instructions' stores differ from the source's; empty where they agree. Both may be
    off by a tolerance, so floats by two."""
    for name, buffer in case.buffers.items():
        if name not in case.expected or name in case.keys:
            continue
        got, due = (
            from_storage_native(each.storages[name], buffer).astype(buffer.dtype.reference_numpy)
            for each in (own, source)
        )
        carried = case.carried.get(name)
        bounds = case.tolerances[name]
        twice = type(bounds)(2 * bounds.relative, 2 * bounds.absolute)
        off = None if carried is None else 2 * carried
        found = compare_output(got, due, twice, name, off, dtype=buffer.dtype)
        if not found.passed:
            return f"not as the CPU emulation: {found.detail}"
    return ""


def table(found: Sequence[Judged], targets: Sequence[str]) -> list[str]:
    """A line a model: kernels right of all on each target; then all of them together."""
    models = list(dict.fromkeys(each.model for each in found))
    lines = [" ".join([f"{'model':18}", *(f"{target:>9}" for target in targets)])]
    for model in [*models, ""]:
        cells = []
        for target in targets:
            of = [each for each in found if each.target == target and model in ("", each.model)]
            cells.append(f"{sum(not each.wrong for each in of)}/{len(of)}")
        lines.append(" ".join([f"{model or 'all':18}", *(f"{cell:>9}" for cell in cells)]))
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.cycles.oracle")
    parser.add_argument("--models", type=lambda text: text.split(","), default=samples.names())
    parser.add_argument("--targets", type=lambda text: text.split(","), default=list(PROCESSORS))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--size", type=int, default=SIZE, help="of symbolic sizes (%(default)s)")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "kiln")
    given = parser.parse_args(arguments)
    cache = CodeCache(given.cache.absolute())
    found: list[Judged] = []
    with tempfile.TemporaryDirectory() as name, ProcessPoolExecutor(given.processes) as pool:
        for model in given.models:
            folder = Path(name) / model
            both = [*given.targets, *map(emulation_of, given.targets)]
            compiled(model, both, cache, folder)
            judging = partial(judge, folder, model, size=given.size)
            for judged in pool.map(judging, given.targets):
                found += judged
                _tell(judged)
    for line in table(found, given.targets):
        say(line)
    wrong = [each for each in found if each.wrong]
    for each in wrong:
        say(f"{each.model} {each.target} {each.kernel}: {each.wrong}")
    slow = max(found, key=lambda each: each.seconds)
    say(
        f"worst error/bound {max(each.ratio for each in found):.3g}; {_times(found)}; the slowest"
        f" is {slow.kernel} of {slow.model} on {slow.target}"
    )
    return 1 if wrong else 0


def _tell(judged: Sequence[Judged]) -> None:
    right = sum(not each.wrong for each in judged)
    first = judged[0]
    say(f"{first.model} {first.target}: {right} of {len(judged)}")


def _times(found: Sequence[Judged]) -> str:
    seconds = [each.seconds for each in found]
    return f"{sum(seconds):.0f} s in all, at most {max(seconds):.0f} s"


if __name__ == "__main__":
    sys.exit(main())
