"""The tuner: which candidate serves each problem, found by measuring, within a budget.

Candidates are compiled over the cores while others are checked and timed. Each problem's
candidates come in the order of its search; the turn to measure goes to the problem that will have
used the least time. Three quarters of the time are for trying candidates; then the best of each
problem are told apart by successive halving, with nothing compiling beside them.

Given the same times, the same seed gives the same run, problem by problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass, replace

from scheduler.benchmark.measurement import Check
from scheduler.benchmark.protocol import Samples
from scheduler.build.process import Cancellation, Cancelled
from scheduler.codegen.kernel import ConfigValue
from scheduler.outcome import Rejected, Stage
from scheduler.tuning.budget import Meter
from scheduler.tuning.compiling import CompilePool
from scheduler.tuning.contest import Contest, Setting, median
from scheduler.tuning.decision import decide
from scheduler.tuning.halving import first_look, halve
from scheduler.tuning.judge import Judge
from scheduler.tuning.ledger import Entry, autotune_text
from scheduler.tuning.problems import TuningProblem

# How many candidates of a problem are under way at once, and timed before the next problem's.
_AHEAD, _A_TURN = 6, 4
_FINALISTS = 8
# Of what is left when the last rounds begin, the share that they may take: the winners are still
# to be checked at their edges.
_FOR_FINALS = 0.8


@dataclass(frozen=True)
class Event:
    """Progress: a candidate that was timed or lost just now, and how far the run is."""

    problem: str
    entry: Entry
    tried: int
    total: int
    best_ns: float | None
    seconds: float


@dataclass(frozen=True)
class ProblemResult:
    """One problem's part of the ledger: its candidates, the default first, then what the rules
    refused. ``config`` is the chosen configuration; None where nothing could be measured."""

    problem: TuningProblem
    entries: tuple[Entry, ...]
    config: Mapping[str, ConfigValue] | None
    seconds: float

    def autotune_text(self) -> str:
        """The problem's log in Inductor's form."""
        return autotune_text(self.problem.title, self.problem.operands, self.entries, self.seconds)


@dataclass(frozen=True)
class TuningResult:
    """A run: its problems, what it spent, and why it ended ("" when everything was tried)."""

    problems: tuple[ProblemResult, ...]
    seconds: float
    compiles: int
    measurements: int
    ended: str

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The whole ledger."""
        return tuple(entry for result in self.problems for entry in result.entries)

    @property
    def configs(self) -> dict[str, Mapping[str, ConfigValue]]:
        """The chosen configuration of each scheduler node that has one; of several sizes those
        of the problems that came first."""
        return self._configs(self.problems)

    def configs_at(self, bindings: Mapping[str, int]) -> dict[str, Mapping[str, ConfigValue]]:
        """The same of the problems at these sizes alone."""
        return self._configs(one for one in self.problems if one.problem.bindings == bindings)

    def _configs(self, results: Iterable[ProblemResult]) -> dict[str, Mapping[str, ConfigValue]]:
        configs: dict[str, Mapping[str, ConfigValue]] = {}
        for result in results:
            if result.config is not None:
                for node in result.problem.nodes:
                    configs.setdefault(node, result.config)
        return configs


class Tuner:
    """One run over several problems."""

    def __init__(
        self,
        problems: Sequence[TuningProblem],
        setting: Setting,
        judge: Judge,
        pool: CompilePool,
        meter: Meter,
        on_event: Callable[[Event], None] = lambda _: None,
        cancellation: Cancellation | None = None,
    ) -> None:
        self._setting = setting
        self._judge = judge
        self._pool = pool
        self._meter = meter
        self._on_event = on_event
        self._cancellation = cancellation or Cancellation()
        self._contests = [Contest(p, setting, number) for number, p in enumerate(problems)]
        self._total = sum(len(problem.callers) for problem in problems)
        self._tried = 0
        self._look = replace(
            setting.plan, min_samples=2, max_samples=4, budget_s=setting.plan.budget_s / 4
        )

    def run(self) -> TuningResult:
        """Try, then decide. A cancelled run decides by what it has seen.

        What ``on_event`` raises ends the run, as ``Cancelled`` of the build does.
        """
        try:
            self._explore()
            self._pool.close()
            self._finals()
            results = tuple(self._result(contest) for contest in self._contests)
        except Cancelled:
            for contest in self._contests:
                contest.close("the run was cancelled")
            results = tuple(self._decided(contest) for contest in self._contests)
        finally:
            self._pool.close()
        ended = "cancelled" if self._cancellation.cancelled else self._why_ended()
        meter = self._meter
        return TuningResult(results, meter.seconds, meter.compiles, meter.measurements, ended)

    def _why_ended(self) -> str:
        return next((c.why_untried for c in self._contests if c.why_untried), "")

    def _stop_if_cancelled(self) -> None:
        if self._cancellation.cancelled:
            raise Cancelled

    # ---- trying candidates

    def _explore(self) -> None:
        while True:
            self._stop_if_cancelled()
            self._feed_all()
            ready = [contest for contest in self._contests if contest.is_ready]
            if ready:
                # The one that will have used the least: the defaults of small problems first.
                self._turn(min(ready, key=lambda c: c.spent_s + self._a_try_s(c)))
                continue
            building = [c.waiting[0][1] for c in self._contests if c.waiting and not c.closed]
            if not building:
                return
            wait(building, timeout=0.2, return_when=FIRST_COMPLETED)
            for contest in self._contests:
                self._close_when_over(contest)

    def _feed_all(self) -> None:
        """Keep candidates of every problem under way: compilers get the defaults of all first."""
        for ahead in range(1, _AHEAD + 1):
            for contest in self._contests:
                self._feed(contest, ahead)

    def _feed(self, contest: Contest, ahead: int = _AHEAD) -> None:
        """Keep candidates of a problem under way; its default whatever the budget."""
        while not (contest.closed or contest.asked_all) and len(contest.waiting) < ahead:
            refused = self._meter.no_more_compiles()
            begun = contest.waiting or contest.order
            index = None if refused and begun else contest.search.ask()
            if index is None:
                contest.asked_all = True
                contest.why_untried = refused
                return
            self._meter.compiles += 1
            contest.waiting.append((index, self._pool.submit(contest.problem.callers[index])))

    def _turn(self, contest: Contest) -> None:
        """Check and time a few candidates of one problem."""
        start = self._meter.seconds
        in_use = False
        for _ in range(_A_TURN if contest.order else 1):
            self._stop_if_cancelled()
            self._close_when_over(contest)
            if not contest.is_ready:
                break
            taken = contest.take(self._meter)
            if taken is None:
                continue
            index, built = taken
            if isinstance(built, Rejected):
                self._lose(contest, index, built)
                continue
            unfit = None if in_use else self._judge.use(contest.problem)
            self._stop_if_cancelled()
            if unfit is not None:
                self._lose(contest, index, unfit)
                contest.close(unfit.reason)
                break
            in_use = True
            self._try(contest, index)
            self._feed(contest)
        contest.spent_s += self._meter.seconds - start

    def _try(self, contest: Contest, index: int) -> None:
        start = self._meter.seconds
        self._meter.measurements += 1
        seen = self._first_look(contest, index)
        self._stop_if_cancelled()
        contest.tries_s.append(self._meter.seconds - start)
        if isinstance(seen, Rejected):
            if seen.stage is Stage.TIMEOUT and self._meter.left_s <= 0:
                contest.close("the budget ended while it was measured")
            else:
                self._lose(contest, index, seen)
            return
        contest.looked[index] = seen
        self._note(contest, index, median(seen) if seen.kept else None)

    def _first_look(self, contest: Contest, index: int) -> Samples | Rejected:
        candidate = contest.candidate(index)
        found = self._judge.check(candidate, self._meter.left_s)
        if isinstance(found, Check) and not found.passed:
            reason = f"wrong result: error {found.max_error:.3g}, bound {found.bound:.3g}"
            return Rejected(Stage.CHECK, reason, found.detail)
        if isinstance(found, Rejected):
            return found
        contest.checks[index] = found
        sample = self._judge.sampler({candidate.key: candidate}, self._meter.left_s)
        return first_look(candidate.key, sample, self._look, contest.floor_ns)

    def _lose(self, contest: Contest, index: int, lost: Rejected) -> None:
        contest.lost[index] = lost
        self._note(contest, index, None)

    def _note(self, contest: Contest, index: int, time_ns: float | None) -> None:
        self._tried += 1
        contest.order[index] = (self._tried, self._meter.seconds)
        contest.search.tell(index, time_ns)
        entry = contest.entry(index)
        counts = (self._tried, self._total)
        seconds = self._meter.seconds
        self._on_event(Event(contest.problem.name, entry, *counts, contest.best_ns, seconds))

    def _close_when_over(self, contest: Contest) -> None:
        """Close a problem whose next candidate would not fit into the budget, and do not begin
        one of which two would not fit: there would be nothing to compare."""
        refused = self._meter.no_more_measurements()
        if not refused and contest.a_try_s > self._meter.exploring_left_s:
            refused = f"a candidate takes {contest.a_try_s:.1f} s, more than is left"
        if refused and (contest.order or self._meter.left_s <= 0):
            contest.close(refused)
        expected_s = 2 * self._a_try_s(contest)
        if not contest.order and expected_s > self._meter.exploring_left_s:
            contest.close(f"two candidates would take about {expected_s:.0f} s, more than is left")

    def _a_try_s(self, contest: Contest) -> float:
        """Seconds that a problem's next candidate will take; before its first by what the largest
        problem of its kind took, for each operation. 0 where nothing is known."""
        if contest.tries_s:
            return contest.a_try_s
        kind = contest.problem.node.kind
        peers = [c for c in self._contests if c.tries_s and c.problem.node.kind is kind]
        peer = max(peers, key=lambda c: c.problem.work.size, default=None)
        if peer is None:
            return 0.0
        return peer.a_try_s * contest.problem.work.size / max(1, peer.problem.work.size)

    # ---- deciding

    def _finals(self) -> None:
        """Tell the best of each problem apart. What a problem leaves of its share of the time is
        for those after it."""
        end_s = self._meter.seconds + _FOR_FINALS * self._meter.left_s
        for place, contest in enumerate(self._contests):
            best = contest.fastest()[:_FINALISTS]
            if 0 in contest.looked and 0 not in best:
                best.append(0)  # the default: what the winner is compared with
            self._stop_if_cancelled()
            if len(best) < 2 or self._meter.seconds >= end_s:
                continue
            if self._judge.use(contest.problem) is not None:
                continue
            share = (end_s - self._meter.seconds) / (len(self._contests) - place)
            self._final(contest, best, self._meter.seconds + share)

    def _final(self, contest: Contest, best: Sequence[int], until_s: float) -> None:
        candidates = {index: contest.candidate(index) for index in best}
        places = {candidate.key: index for index, candidate in candidates.items()}

        def stop(key: str) -> bool:
            seen = contest.looked[places[key]]
            next_s = median(seen) * seen.batch / 1e9 if seen.kept else 0.0
            return self._cancellation.cancelled or self._meter.seconds + next_s > until_s

        # First impressions were taken while compilers ran: here they only say who comes.
        fresh = {c.key: Samples(contest.looked[i].batch) for i, c in candidates.items()}
        sample = self._judge.sampler({c.key: c for c in candidates.values()}, self._meter.left_s)
        halved = halve(fresh, sample, self._setting.plan, contest.floor_ns, stop)
        self._stop_if_cancelled()
        for key, lost in halved.lost.items():
            contest.lost[places[key]] = lost
        if all(seen.kept for seen in halved.samples.values()):
            contest.finals = {places[key]: seen for key, seen in halved.samples.items()}

    def _result(self, contest: Contest) -> ProblemResult:
        """Decide, and see that the winner is right at sizes that fill no tile."""
        result = self._decided(contest)
        while (chosen := self._chosen_place(contest, result)) is not None and chosen != 0:
            caller = contest.problem.callers[chosen]
            wrong = self._judge.check_edges(contest.problem, caller, contest.library(chosen))
            self._stop_if_cancelled()
            if wrong is None:
                break
            contest.lost[chosen] = wrong
            result = self._decided(contest)
        return result

    def _chosen_place(self, contest: Contest, result: ProblemResult) -> int | None:
        if result.config is None:
            return None
        return contest.problem.configs.index(result.config)

    def _decided(self, contest: Contest) -> ProblemResult:
        entries = [contest.entry(index) for index in range(len(contest.problem.callers))]
        marked, chosen = decide(entries, set(contest.finals or contest.looked))
        config = None if chosen is None else contest.problem.configs[chosen]
        lines = (*marked, *contest.refused())
        return ProblemResult(contest.problem, lines, config, contest.spent_s)
