"""The tuner: selects a candidate for each problem by measuring, within a budget.

Candidates are compiled on all cores while others are checked and timed. The search orders each
problem's candidates; the next turn to measure goes to the problem that will have used the least
time. Three quarters of the time are for trying candidates; then successive halving ranks the best
of each problem, with no compiler running.

With the same times, the same seed gives the same run, problem by problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass, replace

from scheduler.benchmark.measure import wrong_result
from scheduler.benchmark.measurement import Check
from scheduler.benchmark.timing import Samples
from scheduler.codegen.kernel import ConfigValue
from scheduler.errors import Rejected, Stage
from scheduler.sandbox.process import Cancellation, Cancelled
from scheduler.tuning.budget import Meter
from scheduler.tuning.compile_pool import CompilePool
from scheduler.tuning.decision import decide
from scheduler.tuning.evaluator import Evaluator
from scheduler.tuning.halving import halve, screen
from scheduler.tuning.ledger import CandidateState, Entry, autotune_text
from scheduler.tuning.modelled.log import modelled_text
from scheduler.tuning.problem_state import ProblemState, RunSettings
from scheduler.tuning.problems import TuningProblem

# Candidates of a problem in flight at once, and candidates timed before the next problem's turn.
_AHEAD, _TRIALS_PER_TURN = 6, 4
_FINALISTS = 8
# The share of the remaining time that the last rounds may take: the winners must still be checked
# at edge sizes.
_FINALS_SHARE = 0.8


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
        return next((one for one in self.entries if one.state is CandidateState.CHOSEN), None)

    @property
    def tied(self) -> tuple[Entry, ...]:
        """The candidates that cannot be called slower than the fastest; empty if it has no
        rival."""
        return tuple(one for one in self.entries if one.tied)

    @property
    def is_modelled(self) -> bool:
        """Whether the times are modelled, that is, none was measured."""
        return any(one.is_modelled for one in self.entries)

    def autotune_text(self) -> str:
        """Return the problem's log in Inductor's format; it says so if its times are modelled."""
        if self.is_modelled:
            return modelled_text(
                self.problem.title, self.problem.operands, self.entries, self.seconds
            )
        return autotune_text(self.problem.title, self.problem.operands, self.entries, self.seconds)


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
        return self._configs(one for one in self.problems if one.problem.bindings == bindings)

    def _configs(self, results: Iterable[ProblemResult]) -> dict[str, ChosenConfig]:
        configs: dict[str, ChosenConfig] = {}
        for result in results:
            if (chosen := result.chosen) is not None:
                for node in result.problem.nodes:
                    configs.setdefault(node, ChosenConfig(chosen.template, chosen.config))
        return configs


class Tuner:
    """One tuning run over several problems."""

    def __init__(
        self,
        problems: Sequence[TuningProblem],
        setting: RunSettings,
        evaluator: Evaluator,
        pool: CompilePool,
        meter: Meter,
        on_event: Callable[[Event], None] = lambda _: None,
        cancellation: Cancellation | None = None,
    ) -> None:
        self._setting = setting
        self._evaluator = evaluator
        self._pool = pool
        self._meter = meter
        self._on_event = on_event
        self._cancellation = cancellation or Cancellation()
        self._states = [ProblemState(p, setting, number) for number, p in enumerate(problems)]
        self._total = sum(len(problem.callers) for problem in problems)
        self._tried = 0
        self._screening = replace(
            setting.plan, min_samples=2, max_samples=4, budget_s=setting.plan.budget_s / 4
        )

    def run(self) -> TuningResult:
        """Try candidates, then decide. A cancelled run decides from the results so far.

        Exceptions of ``on_event`` end the run, as ``Cancelled`` from the build does.
        """
        try:
            self._explore()
            self._pool.close()
            self._run_finals()
            results = tuple(self._result(state) for state in self._states)
        except Cancelled:
            for state in self._states:
                state.close("the run was cancelled")
            results = tuple(self._decide(state) for state in self._states)
        finally:
            self._pool.close()
        ended = "cancelled" if self._cancellation.cancelled else self._end_reason()
        meter = self._meter
        return TuningResult(results, meter.seconds, meter.compiles, meter.measurements, ended)

    def _end_reason(self) -> str:
        return next((c.why_untried for c in self._states if c.why_untried), "")

    def _stop_if_cancelled(self) -> None:
        if self._cancellation.cancelled:
            raise Cancelled

    # ---- trying candidates

    def _explore(self) -> None:
        while True:
            self._stop_if_cancelled()
            self._feed_all()
            ready = [state for state in self._states if state.is_ready]
            if ready:
                # The problem that will have used the least time: the defaults of small problems
                # first.
                self._run_turn(min(ready, key=lambda c: c.spent_s + self._trial_s(c)))
                continue
            building = [c.waiting[0][1] for c in self._states if c.waiting and not c.closed]
            if not building:
                return
            with self._meter.waiting():
                wait(building, timeout=0.2, return_when=FIRST_COMPLETED)
            for state in self._states:
                self._close_if_over_budget(state)

    def _feed_all(self) -> None:
        """Keep candidates of every problem in flight: the defaults of all problems compile
        first."""
        for ahead in range(1, _AHEAD + 1):
            for state in self._states:
                self._feed(state, ahead)

    def _feed(self, state: ProblemState, ahead: int = _AHEAD) -> None:
        """Keep candidates of a problem in flight; its default is built whatever the budget."""
        while not (state.closed or state.asked_all) and len(state.waiting) < ahead:
            limit = self._meter.no_more_compiles()
            begun = state.waiting or state.order
            index = None if limit and begun else state.search.ask()
            if index is None:
                state.asked_all = True
                state.why_untried = limit
                return
            self._meter.compiles += 1
            state.waiting.append((index, self._pool.submit(state.problem.callers[index])))

    def _run_turn(self, state: ProblemState) -> None:
        """Check and time a few candidates of one problem."""
        start = self._meter.seconds
        in_use = False
        for _ in range(_TRIALS_PER_TURN if state.order else 1):
            self._stop_if_cancelled()
            self._close_if_over_budget(state)
            if not state.is_ready:
                break
            next_built = state.next_built(self._meter)
            if next_built is None:
                continue
            index, built = next_built
            if isinstance(built, Rejected):
                self._reject(state, index, built)
                continue
            unfit = None if in_use else self._evaluator.use(state.problem)
            self._stop_if_cancelled()
            if unfit is not None:
                self._reject(state, index, unfit)
                state.close(unfit.reason)
                break
            in_use = True
            self._try(state, index)
            self._feed(state)
        state.spent_s += self._meter.seconds - start

    def _try(self, state: ProblemState, index: int) -> None:
        start = self._meter.seconds
        self._meter.measurements += 1
        seen = self._screen(state, index)
        self._stop_if_cancelled()
        state.trials_s.append(self._meter.seconds - start)
        if isinstance(seen, Rejected):
            if seen.stage is Stage.TIMEOUT and self._meter.left_s <= 0:
                state.close("the budget ended during its measurement")
            else:
                self._reject(state, index, seen)
            return
        state.screened[index] = seen
        self._note(state, index, seen.median_ns if seen.kept else None)

    def _screen(self, state: ProblemState, index: int) -> Samples | Rejected:
        candidate = state.candidate(index)
        found = self._evaluator.check(candidate, self._meter.left_s)
        if isinstance(found, Check) and not found.passed:
            return wrong_result(found)
        if isinstance(found, Rejected):
            return found
        state.checks[index] = found
        sample = self._evaluator.sampler({candidate.key: candidate}, self._meter.left_s)
        return screen(candidate.key, sample, self._screening, state.floor_ns)

    def _reject(self, state: ProblemState, index: int, rejected: Rejected) -> None:
        state.rejected[index] = rejected
        self._note(state, index, None)

    def _note(self, state: ProblemState, index: int, time_ns: float | None) -> None:
        self._tried += 1
        state.order[index] = (self._tried, self._meter.seconds)
        state.search.tell(index, time_ns)
        entry = state.entry(index)
        counts = (self._tried, self._total)
        seconds = self._meter.seconds
        self._on_event(Event(state.problem.name, entry, *counts, state.best_ns, seconds))

    def _close_if_over_budget(self, state: ProblemState) -> None:
        """Close a problem if its next candidate would not fit into the budget. A problem that has
        not begun is closed unless two fit: one alone has nothing to be compared with."""
        meter = self._meter
        limit = meter.no_more_measurements()
        limit = limit or meter.no_time_for(state.trial_s, "another candidate takes")
        if limit and (state.order or meter.left_s <= 0):
            state.close(limit)
        if not state.order:
            expected_s = 2 * self._trial_s(state)
            if why := meter.no_time_for(expected_s, "two candidates would take"):
                state.close(why)

    def _trial_s(self, state: ProblemState) -> float:
        """Estimate the seconds that a problem's next candidate takes. Before its first, scale
        the time of the largest problem of its kind by the number of operations. 0 if nothing is
        known."""
        if state.trials_s:
            return state.trial_s
        kind = state.problem.node.kind
        peers = [c for c in self._states if c.trials_s and c.problem.node.kind is kind]
        peer = max(peers, key=lambda c: c.problem.work.size, default=None)
        if peer is None:
            return 0.0
        return peer.trial_s * state.problem.work.size / max(1, peer.problem.work.size)

    # ---- deciding

    def _run_finals(self) -> None:
        """Rank the best of each problem. Later problems may use what a problem leaves of its share
        of the time."""
        end_s = self._meter.seconds + _FINALS_SHARE * self._meter.left_s
        for place, state in enumerate(self._states):
            best = state.fastest()[:_FINALISTS]
            if 0 in state.screened and 0 not in best:
                best.append(0)  # the default: the baseline of the comparison
            self._stop_if_cancelled()
            if len(best) < 2 or self._meter.seconds >= end_s:
                continue
            if self._evaluator.use(state.problem) is not None:
                continue
            share = (end_s - self._meter.seconds) / (len(self._states) - place)
            self._rank_finalists(state, best, self._meter.seconds + share)

    def _rank_finalists(self, state: ProblemState, best: Sequence[int], until_s: float) -> None:
        candidates = {index: state.candidate(index) for index in best}
        places = {candidate.key: index for index, candidate in candidates.items()}

        def stop(key: str) -> bool:
            seen = state.screened[places[key]]
            next_s = seen.median_ns * seen.batch / 1e9 if seen.kept else 0.0
            return self._cancellation.cancelled or self._meter.seconds + next_s > until_s

        # Screening ran while compilers did: its times only select the finalists.
        fresh = {c.key: Samples(state.screened[i].batch) for i, c in candidates.items()}
        sample = self._evaluator.sampler(
            {c.key: c for c in candidates.values()}, self._meter.left_s
        )
        halved = halve(fresh, sample, self._setting.plan, state.floor_ns, stop)
        self._stop_if_cancelled()
        for key, rejected in halved.rejected.items():
            state.rejected[places[key]] = rejected
        if all(seen.kept for seen in halved.samples.values()):
            state.finals = {places[key]: seen for key, seen in halved.samples.items()}

    def _result(self, state: ProblemState) -> ProblemResult:
        """Decide, and check that the winner is correct at sizes that fill no tile."""
        result = self._decide(state)
        while (chosen := result.chosen) is not None and not chosen.is_default:
            place = result.entries.index(chosen)
            caller = state.problem.callers[place]
            wrong = self._evaluator.check_edges(state.problem, caller, state.library(place))
            self._stop_if_cancelled()
            if wrong is None:
                break
            state.rejected[place] = wrong
            result = self._decide(state)
        return result

    def _decide(self, state: ProblemState) -> ProblemResult:
        entries = [state.entry(index) for index in range(len(state.problem.callers))]
        decided = decide(entries, set(state.finals or state.screened))
        return ProblemResult(state.problem, (*decided, *state.rejected_by_rules()), state.spent_s)
