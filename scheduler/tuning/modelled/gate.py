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
_MAX_OPERATIONS, _MAX_BYTES = 2 * 10**10, 1 << 28


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
        self._prepared_problem: TuningProblem | None = None

    def check(
        self, problem: TuningProblem, caller: TemplateCaller, library: str, max_s: float
    ) -> CheckedSizes | Rejected:
        if _is_small(problem.work):
            return self._check_own_sizes(problem, caller, library, max_s)
        edge_sizes = self._reduced_sizes(problem)
        if not edge_sizes:
            return CheckedSizes(
                (), f"the CPU emulation takes too long{_size_note(problem.bindings)}"
            )
        self._prepared_problem = None
        rejected = self._evaluator.check_edges(problem, caller, library)
        return rejected or CheckedSizes(edge_sizes)

    def check_full(
        self, problem: TuningProblem, caller: TemplateCaller, library: str, max_s: float
    ) -> CheckedSizes | Rejected:
        result = self._check_own_sizes(problem, caller, library, max_s)
        if isinstance(result, Rejected) or not result.sizes:
            return result
        edge_sizes = self._reduced_sizes(problem)
        if not edge_sizes:
            return result
        self._prepared_problem = None
        rejected = self._evaluator.check_edges(problem, caller, library)
        return rejected or CheckedSizes((*result.sizes, *edge_sizes))

    def _check_own_sizes(
        self, problem: TuningProblem, caller: TemplateCaller, library: str, max_s: float
    ) -> CheckedSizes | Rejected:
        """Check at the problem's own sizes."""
        if self._prepared_problem is not problem:
            rejected = self._evaluator.use(problem)
            if rejected is not None:
                return rejected
            self._prepared_problem = problem
        request = caller.benchmark_request(self._target.name, problem.bindings)
        candidate = BuiltCandidate(f"model:{caller.name}", library, request)
        result = self._evaluator.check(candidate, max_s)
        if isinstance(result, Check):
            return (
                CheckedSizes((dict(problem.bindings),)) if result.passed else wrong_result(result)
            )
        if result.stage is Stage.TIMEOUT:
            size_note = _size_note(problem.bindings)
            return CheckedSizes((), f"the CPU emulation gave no result in time{size_note}")
        return result

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
    return operations <= _MAX_OPERATIONS and work.bytes <= _MAX_BYTES


def _size_note(bindings: Mapping[str, int]) -> str:
    return f" at {format_bindings(dict(bindings))}" if bindings else ""
