"""The tuner: selects a candidate for each problem, within a budget.

The search orders each problem's candidates. A ``Timer`` builds, checks and times them: by measuring
(``measuring_timer.py``), or by a model of a GPU that is not present (``modelled/timer.py``). Either
way the search is told the results in the order in which it proposed the candidates.

With the same times, the same seed gives the same run, problem by problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from scheduler.codegen.kernel import ConfigValue
from scheduler.errors import Rejected
from scheduler.sandbox.process import Cancellation, Cancelled
from scheduler.tuning.autotune_log import autotune_text
from scheduler.tuning.budget import Meter
from scheduler.tuning.decision import decide
from scheduler.tuning.ledger import CandidateState, Entry
from scheduler.tuning.problem_state import ProblemState, RunSettings
from scheduler.tuning.problems import TuningProblem

_MAX_IN_FLIGHT = 6  # candidates of a problem in flight at once
POLL_S = 0.2  # the longest wait for a build until the budget is looked at again


@dataclass(frozen=True)
class Event:
    """Progress: the candidate that was just timed or rejected, and how far the run is."""

    problem: str
    entry: Entry
    tried: int
    total: int
    best_ns: float | None
    seconds: float


@dataclass(frozen=True)
class ProblemResult:
    """One problem's part of the ledger: its candidates, the default first, then the configurations
    that the rules rejected. The selected candidate is marked; none is if nothing was measured."""

    problem: TuningProblem
    entries: tuple[Entry, ...]
    seconds: float

    @property
    def chosen(self) -> Entry | None:
        """The selected candidate."""
        return next((entry for entry in self.entries if entry.state is CandidateState.CHOSEN), None)

    @property
    def tied(self) -> tuple[Entry, ...]:
        """The candidates that cannot be called slower than the fastest; empty if it has no
        rival."""
        return tuple(entry for entry in self.entries if entry.tied)

    @property
    def is_modelled(self) -> bool:
        """Whether the times are modelled, that is, none was measured."""
        return any(entry.is_modelled for entry in self.entries)

    def autotune_text(self) -> str:
        """Return the problem's log in Inductor's format; it says so if its times are modelled."""
        title, operands = self.problem.title, self.problem.operands
        modelled = self.is_modelled
        return autotune_text(title, operands, self.entries, self.seconds, modelled=modelled)


@dataclass(frozen=True)
class ChosenConfig:
    """A selected configuration and its template."""

    template: str
    config: Mapping[str, ConfigValue]


@dataclass(frozen=True)
class TuningResult:
    """A run: its problems, what it spent, and why it ended ("" if everything was tried)."""

    problems: tuple[ProblemResult, ...]
    seconds: float
    compiles: int
    measurements: int
    ended: str
    from_cache: int = 0  # in a run with modelled times: candidates answered from the cache

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(entry for result in self.problems for entry in result.entries)

    @property
    def configs(self) -> dict[str, ChosenConfig]:
        """The selected configuration of each scheduler node that has one. If a node was tuned at
        several sizes, the first problem's."""
        return self._configs(self.problems)

    def configs_at(self, bindings: Mapping[str, int]) -> dict[str, ChosenConfig]:
        """Return the same as ``configs``, for the problems at these sizes only."""
        return self._configs(
            result for result in self.problems if result.problem.bindings == bindings
        )

    def _configs(self, results: Iterable[ProblemResult]) -> dict[str, ChosenConfig]:
        configs: dict[str, ChosenConfig] = {}
        for result in results:
            if (chosen := result.chosen) is not None:
                for node in result.problem.nodes:
                    configs.setdefault(node, ChosenConfig(chosen.template, chosen.config))
        return configs


class Timer(Protocol):
    """Builds, checks and times a tuner's candidates."""

    @property
    def from_cache(self) -> int:
        """How many candidates had a cached time."""

    def limit(self) -> str:
        """Return which limit forbids another candidate; "" if none does."""

    def submit(self, state: ProblemState, index: int) -> None:
        """Start to build a candidate."""

    def in_flight(self, state: ProblemState) -> int:
        """Return how many candidates of a problem were submitted and still need its time."""

    def collect(self, tuner: Tuner, /) -> bool:
        """Report results that came in by themselves; return False if the run's time is over."""

    def advance(self, tuner: Tuner) -> bool:
        """Check and time what is built, for one turn, or wait for it; return False if nothing is
        in flight."""

    def compare_fastest(self, tuner: Tuner) -> None:
        """Rank the fastest candidates of each problem, when no more are tried."""

    def confirm_winner(self, tuner: Tuner, state: ProblemState) -> None:
        """Check further what would be selected; reject it if it is wrong, and so on."""

    def close(self) -> None:
        """End what still runs; may be called again."""


class Tuner:
    """One tuning run over several problems; the timer is closed at its end."""

    def __init__(
        self,
        problems: Sequence[TuningProblem],
        setting: RunSettings,
        timer: Timer,
        meter: Meter,
        on_event: Callable[[Event], None] = lambda _: None,
        cancellation: Cancellation | None = None,
    ) -> None:
        self.states = [ProblemState(problem, setting, n) for n, problem in enumerate(problems)]
        self._timer = timer
        self._meter = meter
        self._on_event = on_event
        self.cancellation = cancellation or Cancellation()
        self._total = sum(len(problem.callers) for problem in problems)
        self._tried = 0

    def run(self) -> TuningResult:
        """Try candidates, then decide. A cancelled run decides from the results so far; so does one
        whose budget ends, and it reports the untried candidates.

        Exceptions of ``on_event`` end the run, as ``Cancelled`` from the build does.
        """
        try:
            self._explore()
            self._timer.compare_fastest(self)
            for state in self.states:
                self._timer.confirm_winner(self, state)
        except Cancelled:
            for state in self.states:
                state.close("the run was cancelled")
        finally:
            self._timer.close()
        results = tuple(
            ProblemResult(
                state.problem,
                (*decide(state.entries(), state.contenders), *state.rejected_by_rules()),
                state.spent_s,
            )
            for state in self.states
        )
        ended = next((state.why_untried for state in self.states if state.why_untried), "")
        return TuningResult(
            results,
            self._meter.seconds,
            self._meter.compiles,
            self._meter.measurements,
            "cancelled" if self.cancellation.cancelled else ended,
            self._timer.from_cache,
        )

    def stop_if_cancelled(self) -> None:
        """Raise ``Cancelled`` if the run was cancelled."""
        if self.cancellation.cancelled:
            raise Cancelled

    def _explore(self) -> None:
        while True:
            self.stop_if_cancelled()
            if not self._timer.collect(self):
                return
            for ahead in range(1, _MAX_IN_FLIGHT + 1):  # the defaults of all problems compile first
                for state in self.states:
                    self.feed(state, ahead)
            if not self._timer.advance(self):
                return

    def feed(self, state: ProblemState, ahead: int = _MAX_IN_FLIGHT) -> None:
        """Keep candidates of a problem in flight; its default is built whatever the budget."""
        while not (state.closed or state.asked_all):
            in_flight = self._timer.in_flight(state)
            if in_flight >= ahead:
                return
            limit = self._timer.limit() if in_flight or state.order else ""
            index = None if limit else state.search.ask()
            if index is None:
                state.asked_all = True
                state.why_untried = limit
                return
            self._timer.submit(state, index)

    def reject(self, state: ProblemState, index: int, rejected: Rejected) -> None:
        """Record that a candidate cannot be selected."""
        state.rejected[index] = rejected
        self.note(state, index, None)

    def note(self, state: ProblemState, index: int, time_ns: float | None) -> None:
        """Tell the search a candidate's time, None if it has none, and report the event."""
        self._tried += 1
        state.order[index] = (self._tried, self._meter.seconds)
        state.search.tell(index, time_ns)
        entry = state.entry(index)
        counts = (self._tried, self._total)
        seconds = self._meter.seconds
        self._on_event(Event(state.problem.name, entry, *counts, state.best_ns, seconds))
