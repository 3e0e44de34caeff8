"""How wide the bounds are that kernels are checked against: the error of each over its bound.

    python -m tests.benchmarks.bounds [--only TEXT] [--each]

Emulated, on one core: every kernel of the small samples, of the quantized models of the tests and
of random ones, a problem of every stratum (tests/support/strata.py), and scaled products of 8 bits
of each kind. Of a kernel the worst element counts. Prints a line for each kind of kernel, those
with results of f32 or f64 apart: how many were off at all (whole numbers, and elements that are
only moved, have no error), the median, least and greatest ratio. Exits with 1 when one was wrong,
or when the median of a kind is under a thirtieth.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median

import numpy as np

from scheduler import pipeline
from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.case_builder import make_case
from scheduler.benchmark.measurement import Check
from scheduler.build.compile import build
from scheduler.build.model import Build
from scheduler.build.toolchains import bundled_clang
from scheduler.codegen.scheduling import scheduling_for
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.ir.bindings import Bindings
from scheduler.ir.operations import GroupKind, Lowered
from scheduler.ir.values import Load, walk
from scheduler.targets import find
from tests.benchmarks.printing import say
from tests.support.caches import KEPT
from tests.support.kernel_outputs import run_candidate
from tests.support.models_as_kernels import combined, opened
from tests.support.random_models import BINDINGS, random_model
from tests.support.scaled_products import scaled_products
from tests.support.strata import strata

LEAST = 1 / 30
_RANDOM = 40  # models
_SAMPLES = Path(pipeline.__file__).parent / "samples" / "graphs"
_QUANTIZED = Path(__file__).parents[1] / "unit" / "quantized"
_SMALL = ("resnet_small", "gpt2_2layer", "llama_2layer", "vit_2layer")
_SIZE = 24  # of a symbol of a sample: its own hints are for GPUs
_CPU = find("cpu")


@dataclass(frozen=True)
class Measured:
    """One kernel by its worst element. ``passed``: at the second look too, where the first, which
    counts, finds it off (``make_case``)."""

    kind: str
    title: str
    check: Check
    passed: bool


def main() -> int:
    """Measure them all; 1 when a kind's bound is too wide, or a kernel is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="problems with that in the name")
    parser.add_argument("--each", action="store_true", help="a line for each kernel too")
    options = parser.parse_args()
    by_kind: dict[str, list[Measured]] = defaultdict(list)
    for title, plan, bindings in problems():
        if options.only not in title:
            continue
        for one in measured(title, plan, bindings):
            by_kind[one.kind].append(one)
            if options.each or not one.check.passed:
                say(f"{one.kind}: {one.title}: {_said(one)}")
    return report(by_kind)


def _said(one: Measured) -> str:
    check = one.check
    said = f"{check.max_error:.3g} of {check.bound:.3g}, {check.ratio:.4f}"
    if check.passed:
        return said
    return f"{said}, {'right at a second look' if one.passed else 'WRONG'} {check.detail}"


def report(by_kind: dict[str, list[Measured]]) -> int:
    """Print the table; 1 when something in it is wrong."""
    say(f"{'kind':<16}{'kernels':>8}{'off':>6}{'median':>9}{'least':>9}{'most':>9}")
    failed = not by_kind
    for kind, found in sorted(by_kind.items()):
        ratios = [one.check.ratio for one in found if one.check.max_error]
        failed |= not all(one.passed for one in found)
        if not ratios:
            say(f"{kind:<16}{len(found):>8}{0:>6}")
            continue
        middle = median(ratios)
        failed |= middle < LEAST
        wide = "" if middle >= LEAST else f"  under {LEAST:.4f}"
        say(
            f"{kind:<16}{len(found):>8}{len(ratios):>6}{middle:>9.4f}{min(ratios):>9.4f}"
            f"{max(ratios):>9.4f}{wide}"
        )
    return int(failed)


def problems() -> Iterator[tuple[str, Schedule, Bindings]]:
    """What is measured: a name, a schedule, and the sizes of its symbols."""
    for name in _SMALL:
        yield from _of_file(_SAMPLES / f"{name}.pt2")
    for path in sorted(_QUANTIZED.glob("*.pt2")):
        yield from _of_file(path)
    for seed in range(_RANDOM):
        graph = random_model(Random(seed), 8).graph()
        yield f"random {seed}", pipeline.schedule(pipeline.lower(graph)), dict(BINDINGS[1])
    for title, plan in scaled_products():
        yield title, plan, {}
    for one in strata():
        yield one.title, one.plan, dict.fromkeys(one.plan.lowered.graph.symbols, _SIZE)


def _of_file(path: Path) -> Iterator[tuple[str, Schedule, Bindings]]:
    graph = pipeline.load(path)
    plan = pipeline.schedule(pipeline.lower(graph))
    yield path.stem, plan, dict.fromkeys(graph.symbols, _SIZE)


def measured(title: str, plan: Schedule, bindings: Bindings) -> Iterator[Measured]:
    """Every kernel of a schedule once, by its default."""
    scheduling = scheduling_for(plan, (_CPU,))
    callers = {}
    for node in plan.nodes:
        if node.kind.has_kernel:
            callers.setdefault(scheduling.default(node).name, (node, scheduling.default(node)))
    kernels = [caller.kernel for _, caller in callers.values()]
    if not kernels:
        return
    source, first = combined(kernels), kernels[0]
    made = build(
        source, first.symbol, _CPU, bundled_clang(KEPT), KEPT, source_file=first.source_file
    )
    assert isinstance(made, Build), f"{title}: {made.reason}\n{made.detail}"
    library = str(made.directory / "kernel.so")
    for number, (node, caller) in enumerate(callers.values()):
        request = caller.benchmark_request(_CPU.name, bindings)
        candidate = BuiltCandidate(caller.name, library, request)
        first = _checked(node, plan.lowered, bindings, candidate, number, moved=False)
        again = first.passed or _checked(
            node, plan.lowered, bindings, candidate, number, moved=True
        )
        yield Measured(
            kind_of(node, plan.lowered),
            f"{title}, {node.name} ({', '.join(node.nodes[:3])})",
            first,
            again is True or again.passed,
        )


def _checked(
    node: SchedulerNode,
    lowered: Lowered,
    bindings: Bindings,
    candidate: BuiltCandidate,
    seed: int,
    *,
    moved: bool,
) -> Check:
    case = make_case(node, lowered, bindings, np.random.default_rng(seed), with_roundings=moved)
    device = opened("cpu", _CPU)
    try:
        return run_candidate(device, case, candidate).check(case)
    finally:
        device.close()


def kind_of(node: SchedulerNode, lowered: Lowered) -> str:
    """What a line of the table is of. Results of f32 and f64 are apart: of others the rounding to
    their type is most of the error, and hides how wide the rest of a bound is."""
    kind = str(node.kind)
    if node.kind is GroupKind.GEMM:
        kind = "8-bit product" if _is_narrow(node, lowered) else "product"
    if node.kind is GroupKind.REDUCTION:
        named = " ".join(node.target for node in lowered.graph.nodes_named(node.nodes))
        kind = next((name for name in ("softmax", "norm") if name in named), kind)
    stored = (lowered.buffers[name].dtype for name in node.writes)
    return f"{kind}, wide" if any(one.is_float and one.itemsize > 2 for one in stored) else kind


def _is_narrow(node: SchedulerNode, lowered: Lowered) -> bool:
    """Whether an operand lies in 8 bits."""
    operands = (value for member in node.members for value in member.matrix_operands)
    loads = (part for value in operands for part in walk(value) if isinstance(part, Load))
    return any(lowered.buffers[one.buffer].dtype.itemsize == 1 for one in loads)


if __name__ == "__main__":
    sys.exit(main())
