"""One problem to decide, independent of who assigns it and who receives the results.

``run_assignment`` is all of a measuring worker's work on it. A ``TuningHost`` supplies the work and
takes the results: rows of the database (the application's own workers), or a server reached over
HTTPS (``scheduler/agent``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from scheduler import targets
from scheduler.codegen.scheduling import BaseScheduling
from scheduler.fusion.nodes import Schedule
from scheduler.runtime.device import DeviceInfo
from scheduler.sandbox.process import Cancellation, Cancelled
from scheduler.tuning.budget import Budget, Meter
from scheduler.tuning.compile_pool import CompilePool
from scheduler.tuning.ledger import CandidateState, Entry
from scheduler.tuning.modelled.timer import ModelTools
from scheduler.tuning.problems import TuningProblem, find_problems
from scheduler.tuning.run import SearchOptions, tune
from scheduler.tuning.tuner import Event, ProblemResult

NO_LIMIT = Budget()


@dataclass(frozen=True)
class Assignment:
    """The problem to decide. ``planned`` are the kernels to choose among; None: all that the
    generator offers. Unless ``waiting_counts``, time spent waiting for builds is not charged to the
    budget: a worker whose server is unreachable for a while keeps it."""

    node: str
    target: str
    bindings: Mapping[str, int]
    planned: frozenset[str] | None
    budget: Budget = NO_LIMIT
    waiting_counts: bool = True


@dataclass(frozen=True)
class PreparedSchedule:
    """The graph in execution order, the scheduling that generates its kernels for all targets (the
    untuned defaults), and the scheduling for the assignment's target."""

    schedule: Schedule
    for_all_targets: BaseScheduling
    for_target: BaseScheduling


class TuningHost(Protocol):
    """Supplies the work and takes the results."""

    def begin(self, problem: TuningProblem, /) -> None:
        """The problem is known; none of its candidates was tried yet."""

    def options(self, problem: TuningProblem, /) -> SearchOptions:
        """Return how its candidates are searched for, and what is known about them."""

    def pool(self, problem: TuningProblem, /) -> CompilePool:
        """Return the pool that builds the candidates. ``problem`` is the assignment's, restricted
        to the candidates to try."""

    def note(self, event: Event) -> None:
        """A candidate was just timed or rejected. Raises ``Cancelled`` if the result is no longer
        wanted."""


@dataclass(frozen=True)
class AssignmentResult:
    """The candidates with their indices, each kernel once; the names of all kernels that this
    version of the generator offers for the problem; and the seconds charged."""

    lines: tuple[tuple[int, Entry], ...]
    offered: frozenset[str]
    seconds: float = 0.0


def run_assignment(
    assignment: Assignment,
    prepared: PreparedSchedule,
    host: TuningHost,
    device: DeviceInfo,
    cancellation: Cancellation,
    model_tools: ModelTools | None = None,
) -> AssignmentResult:
    """Try the candidates, and decide; with ``model_tools``, by modelled times.

    Raises ``Cancelled``, and ``UserError`` for sizes that nothing holds.
    """
    (problem,) = find_problems(
        prepared.schedule,
        prepared.for_target,
        targets.find(assignment.target),
        dict(assignment.bindings),
        [assignment.node],
        prepared.for_all_targets,
    )
    offered = frozenset(caller.name for caller in problem.callers)
    host.begin(problem)
    meter = Meter(assignment.budget, waiting_counts=assignment.waiting_counts)
    planned = assignment.planned
    remaining = problem if planned is None else problem.restrict_to(planned)
    if remaining is None:
        return AssignmentResult((), offered)
    options = host.options(remaining)
    result = tune(
        prepared.schedule,
        [remaining],
        device,
        host.pool(remaining),
        meter,
        options,
        host.note,
        cancellation,
        model_tools,
    )
    if cancellation.cancelled:
        raise Cancelled
    return AssignmentResult(unique_entries(result.problems[0]), offered, result.seconds)


def unique_entries(result: ProblemResult) -> tuple[tuple[int, Entry], ...]:
    """Return the candidates with their indices, each kernel once: configurations that render alike
    are one kernel, represented by the selected entry, else by the first."""
    callers = enumerate(result.problem.callers)
    index_of = {caller.name: index for index, caller in reversed(list(callers))}
    entries: dict[str, Entry] = {}
    for entry in result.entries:
        if entry.kernel and (entry.state is CandidateState.CHOSEN or entry.kernel not in entries):
            entries[entry.kernel] = entry
    return tuple((index_of[kernel], entry) for kernel, entry in entries.items())
