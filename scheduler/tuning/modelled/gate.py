"""Checks a candidate's results without its GPU: the CPU emulation runs the same source.

The emulation takes some seconds for ten billion operations, so a large problem is checked at
smaller sizes of its symbols. If it has no symbols, or is large at those sizes too, it is checked in
full only if it is about to be preferred (``check_full``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.measure import wrong_result
from scheduler.benchmark.measurement import Check
from scheduler.codegen.caller import TemplateCaller
from scheduler.errors import Rejected, Stage
from scheduler.ir.bindings import Bindings, format_bindings
from scheduler.ir.operations import Lowered
from scheduler.targets import Target
from scheduler.tuning.evaluator import BenchEvaluator, edge_bindings
from scheduler.tuning.problems import TuningProblem
from scheduler.tuning.work import Work, work_of

# What the emulation can do within some seconds on two cores: operations, and bytes.
_MOST_OPERATIONS, _MOST_BYTES = 2 * 10**10, 1 << 28


@dataclass(frozen=True)
class CheckedSizes:
    """The sizes at which a candidate was correct; if empty, ``why`` it was not checked."""

    sizes: tuple[Mapping[str, int], ...]
    why: str = ""


class Gate(Protocol):
    """Checks results in a run with modelled times."""

    def check(
        self, problem: TuningProblem, caller: TemplateCaller, library: str, max_s: float
    ) -> CheckedSizes | Rejected:
        """Compare with the reference if that takes some seconds; return the failure, or the sizes
        at which it is correct."""

    def check_full(
        self, problem: TuningProblem, caller: TemplateCaller, library: str, max_s: float
    ) -> CheckedSizes | Rejected:
        """Compare at the problem's own sizes, and at sizes that fill no tile, for up to ``max_s``
        seconds."""


class EmulationGate:
    """Checks with an evaluator of the emulation, which its creator closes."""

    def __init__(self, evaluator: BenchEvaluator, target: Target, lowered: Lowered) -> None:
        self._evaluator = evaluator
        self._target = target
        self._lowered = lowered
        self._used: TuningProblem | None = None

    def check(
        self, problem: TuningProblem, caller: TemplateCaller, library: str, max_s: float
    ) -> CheckedSizes | Rejected:
        if _is_small(problem.work):
            return self._check_own_sizes(problem, caller, library, max_s)
        small = self._reduced_sizes(problem)
        if not small:
            return CheckedSizes(
                (), f"the CPU emulation takes too long{_at_sizes(problem.bindings)}"
            )
        self._used = None
        wrong = self._evaluator.check_edges(problem, caller, library)
        return wrong or CheckedSizes(small)

    def check_full(
        self, problem: TuningProblem, caller: TemplateCaller, library: str, max_s: float
    ) -> CheckedSizes | Rejected:
        found = self._check_own_sizes(problem, caller, library, max_s)
        if isinstance(found, Rejected) or not found.sizes:
            return found
        small = self._reduced_sizes(problem)
        if not small:
            return found
        self._used = None
        wrong = self._evaluator.check_edges(problem, caller, library)
        return wrong or CheckedSizes((*found.sizes, *small))

    def _check_own_sizes(
        self, problem: TuningProblem, caller: TemplateCaller, library: str, max_s: float
    ) -> CheckedSizes | Rejected:
        """Check at the problem's own sizes."""
        if self._used is not problem:
            unfit = self._evaluator.use(problem)
            if unfit is not None:
                return unfit
            self._used = problem
        request = caller.benchmark_request(self._target.name, problem.bindings)
        candidate = BuiltCandidate(f"model:{caller.name}", library, request)
        found = self._evaluator.check(candidate, max_s)
        if isinstance(found, Check):
            return CheckedSizes((dict(problem.bindings),)) if found.passed else wrong_result(found)
        if found.stage is Stage.TIMEOUT:
            where = _at_sizes(problem.bindings)
            return CheckedSizes((), f"the CPU emulation gave no result in time{where}")
        return found

    def _reduced_sizes(self, problem: TuningProblem) -> tuple[Bindings, ...]:
        """Return the sizes of ``check_edges``; empty if there are none or even they are large."""
        edges = [
            bindings
            for bindings in edge_bindings(self._lowered.graph.symbols)
            if problem.identity.key(bindings) != problem.key
        ]
        works = [work_of(problem.node, self._lowered, bindings) for bindings in edges]
        return tuple(edges) if all(map(_is_small, works)) else ()


def _is_small(work: Work) -> bool:
    operations = work.matrix_flops + work.vector_ops
    return operations <= _MOST_OPERATIONS and work.bytes <= _MOST_BYTES


def _at_sizes(bindings: Mapping[str, int]) -> str:
    return f" at {format_bindings(dict(bindings))}" if bindings else ""
