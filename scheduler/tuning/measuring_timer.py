"""Measures candidates on a device, within the budget.

Candidates are compiled on all cores while others are checked and timed. The next turn to measure
goes to the problem that will have used the least time. Three quarters of the time are for trying
candidates; then successive halving ranks the best of each problem, with no compiler running.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import replace
from itertools import cycle

from scheduler.benchmark.measure import wrong_result
from scheduler.benchmark.measurement import Measurement
from scheduler.benchmark.timing import Sampler, Samples, TimingPlan
from scheduler.errors import Rejected, Stage
from scheduler.runtime.device import Timing
from scheduler.tuning.budget import Meter
from scheduler.tuning.compile_pool import CompilePool
from scheduler.tuning.decision import decide
from scheduler.tuning.evaluator import Evaluator
from scheduler.tuning.halving import halve, screen
from scheduler.tuning.ledger import CandidateState
from scheduler.tuning.problem_state import ProblemState
from scheduler.tuning.tuner import POLL_S, Tuner

_TRIALS_PER_TURN = 4  # candidates timed before the next problem's turn
_FINALISTS = 8
# The share of the remaining time that the last rounds may take: the winners must still be checked
# at edge sizes.
_FINALS_SHARE = 0.8


class MeasuringTimer:
    """Checks and times with an evaluator, which its creator closes; closes the pool.

    ``measured`` has, by kernel, the results of an earlier attempt at the run: they are reused until
    the last rounds, which compare, so that all their candidates are timed together.
    """

    from_cache = 0

    def __init__(
        self,
        evaluator: Evaluator,
        pool: CompilePool,
        plan: TimingPlan,
        meter: Meter,
        measured: Mapping[str, Measurement | Rejected] | None = None,
    ) -> None:
        self._evaluator = evaluator
        self._pool = pool
        self._plan = plan
        self._screening = replace(plan, min_samples=2, max_samples=4, budget_s=plan.budget_s / 4)
        self._meter = meter
        self._measured = measured or {}

    def limit(self) -> str:
        return self._meter.no_more_compiles()

    def submit(self, state: ProblemState, index: int) -> None:
        self._meter.compiles += 1
        state.waiting.append((index, self._pool.submit(state.problem.callers[index])))

    def in_flight(self, state: ProblemState) -> int:
        return len(state.waiting)

    def collect(self, _: Tuner, /) -> bool:
        return True  # ``advance`` reports all results

    def close(self) -> None:
        self._pool.close()

    # ---- trying candidates

    def advance(self, tuner: Tuner) -> bool:
        """Give a turn to the problem that will have used the least time: the defaults of small
        problems first."""
        states = tuner.states
        ready = [state for state in states if state.is_ready]
        if ready:
            self._run_turn(
                tuner,
                min(
                    ready,
                    key=lambda candidate_state: (
                        candidate_state.spent_s + _trial_s(candidate_state, states)
                    ),
                ),
            )
            return True
        building_futures = [
            state.waiting[0][1] for state in states if state.waiting and not state.closed
        ]
        if not building_futures:
            return False
        with self._meter.waiting():
            wait(building_futures, timeout=POLL_S, return_when=FIRST_COMPLETED)
        for state in states:
            self._close_if_over_budget(state, states)
        return True

    def _run_turn(self, tuner: Tuner, state: ProblemState) -> None:
        """Check and time a few candidates of one problem."""
        start = self._meter.seconds
        in_use = False
        for _ in range(_TRIALS_PER_TURN if state.order else 1):
            tuner.stop_if_cancelled()
            self._close_if_over_budget(state, tuner.states)
            if not state.is_ready:
                break
            next_built = state.next_built(self._meter)
            if next_built is None:
                continue
            index, built = next_built
            if isinstance(built, Rejected):
                tuner.reject(state, index, built)
                continue
            rejected = None if in_use else self._evaluator.use(state.problem)
            tuner.stop_if_cancelled()
            if rejected is not None:
                tuner.reject(state, index, rejected)
                state.close(rejected.reason)
                break
            in_use = True
            self._try(tuner, state, index)
            tuner.feed(state)
        state.spent_s += self._meter.seconds - start

    def _try(self, tuner: Tuner, state: ProblemState, index: int) -> None:
        start = self._meter.seconds
        self._meter.measurements += 1
        samples = self._screen(state, index)
        tuner.stop_if_cancelled()
        state.trials_s.append(self._meter.seconds - start)
        if isinstance(samples, Samples):
            state.screened[index] = samples
            tuner.note(state, index, samples.median_ns if samples.valid_ns else None)
        elif samples.stage is Stage.TIMEOUT and self._meter.left_s <= 0:
            state.close("the budget ended during its measurement")
        else:
            tuner.reject(state, index, samples)

    def _screen(self, state: ProblemState, index: int) -> Samples | Rejected:
        candidate = state.candidate(index)
        recorded = self._measured.get(candidate.request.kernel)
        if isinstance(recorded, Rejected):
            return recorded
        if recorded is not None:
            state.checks[index] = recorded.check
            return screen(candidate.key, _replay(recorded), self._screening, state.floor_ns)
        check = self._evaluator.check(candidate, self._meter.left_s)
        if isinstance(check, Rejected):
            return check
        if not check.passed:
            return wrong_result(check)
        state.checks[index] = check
        sample = self._evaluator.sampler({candidate.key: candidate}, self._meter.left_s)
        return screen(candidate.key, sample, self._screening, state.floor_ns)

    def _close_if_over_budget(self, state: ProblemState, states: Sequence[ProblemState]) -> None:
        """Close a problem if its next candidate would not fit into the budget. A problem that has
        not begun is closed unless two fit: one alone has nothing to be compared with."""
        meter = self._meter
        limit = meter.no_more_measurements()
        limit = limit or meter.no_time_for(state.trial_s, "another candidate takes")
        if limit and (state.order or meter.left_s <= 0):
            state.close(limit)
        if not state.order:
            expected_s = 2 * _trial_s(state, states)
            if why := meter.no_time_for(expected_s, "two candidates would take"):
                state.close(why)

    # ---- deciding

    def compare_fastest(self, tuner: Tuner) -> None:
        """Rank the best of each problem. Later problems may use what a problem leaves of its share
        of the time."""
        self._pool.close()
        end_s = self._meter.seconds + _FINALS_SHARE * self._meter.left_s
        for number, state in enumerate(tuner.states):
            best = state.fastest()[:_FINALISTS]
            for baseline in (0, state.selected_index):  # the default, and the kernel in use
                if baseline is not None and baseline in state.screened and baseline not in best:
                    best.append(baseline)
            tuner.stop_if_cancelled()
            if len(best) < 2 or self._meter.seconds >= end_s:
                continue
            if self._evaluator.use(state.problem) is not None:
                continue
            share = (end_s - self._meter.seconds) / (len(tuner.states) - number)
            self._rank_finalists(tuner, state, best, self._meter.seconds + share)

    def _rank_finalists(
        self, tuner: Tuner, state: ProblemState, best: Sequence[int], until_s: float
    ) -> None:
        candidates = {index: state.candidate(index) for index in best}
        index_of = {candidate.key: index for index, candidate in candidates.items()}

        def stop(key: str) -> bool:
            samples = state.screened[index_of[key]]
            next_s = samples.median_ns * samples.batch / 1e9 if samples.valid_ns else 0.0
            return tuner.cancellation.cancelled or self._meter.seconds + next_s > until_s

        # Screening ran while compilers did: its times only select the finalists.
        new_samples = {c.key: Samples(state.screened[i].batch) for i, c in candidates.items()}
        sample = self._evaluator.sampler(
            {c.key: c for c in candidates.values()}, self._meter.left_s
        )
        keep = {key for key, index in index_of.items() if index == state.selected_index}
        halved = halve(new_samples, sample, self._plan, state.floor_ns, stop, keep)
        tuner.stop_if_cancelled()
        for key, rejected in halved.rejected.items():
            state.rejected[index_of[key]] = rejected
        if all(samples.valid_ns for samples in halved.samples.values()):
            state.finals = {index_of[key]: samples for key, samples in halved.samples.items()}

    def confirm_winner(self, tuner: Tuner, state: ProblemState) -> None:
        """Check that the winner is correct at sizes that fill no tile."""
        while True:
            entries = decide(state.entries(), state.contenders)
            states = [entry.state for entry in entries]
            if CandidateState.CHOSEN not in states:
                return
            index = states.index(CandidateState.CHOSEN)
            if index == 0:
                return
            caller = state.problem.callers[index]
            wrong = self._evaluator.check_edges(state.problem, caller, state.library(index))
            tuner.stop_if_cancelled()
            if wrong is None:
                return
            state.rejected[index] = wrong


def _replay(measurement: Measurement) -> Sampler:
    """Return a sampler that repeats the samples of a measurement, which are of one launch each."""
    telemetry = measurement.readings
    timings = cycle(
        Timing(
            ns, {name: values[index] for name, values in telemetry.items() if index < len(values)}
        )
        for index, ns in enumerate(measurement.samples_ns)
    )

    def sample(_candidate_key: str, batch: int) -> Timing:
        timing = next(timings)
        return replace(timing, total_ns=timing.total_ns * batch)

    return sample


def _trial_s(state: ProblemState, states: Sequence[ProblemState]) -> float:
    """Estimate the seconds that a problem's next candidate takes. Before its first, scale the time
    of the largest problem of its kind by the number of operations. 0 if nothing is known."""
    if state.trials_s:
        return state.trial_s
    kind = state.problem.node.kind
    peers = [
        peer_state
        for peer_state in states
        if peer_state.trials_s and peer_state.problem.node.kind is kind
    ]
    peer = max(peers, key=lambda peer_state: peer_state.problem.work.size, default=None)
    if peer is None:
        return 0.0
    return peer.trial_s * state.problem.work.size / max(1, peer.problem.work.size)
