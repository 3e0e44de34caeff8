"""The tuner by modelled times: selects a candidate for each problem on a GPU that is not present.

The search orders each problem's candidates, as in a measured run. Each candidate is compiled for
the GPU and for its emulation, checked on the emulation, and modelled in a worker process. There are
no last rounds: modelling again gives the same result. Results are told to the search in the order
of asking, so that a run with the same answers is the same run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from scheduler.build.model import Build
from scheduler.build.recipe import library_of, recipe_of
from scheduler.errors import Rejected
from scheduler.sandbox.process import Cancellation, Cancelled
from scheduler.targets import find
from scheduler.tuning.budget import Meter
from scheduler.tuning.compile_pool import CompilePool
from scheduler.tuning.ledger import CandidateState, Entry
from scheduler.tuning.modelled.decision import decide_modelled
from scheduler.tuning.modelled.gate import CheckedSizes, Gate
from scheduler.tuning.modelled.job import ModelJob, job_of
from scheduler.tuning.modelled_time import ModelledTime
from scheduler.tuning.problem_state import ProblemState, RunSettings
from scheduler.tuning.problems import TuningProblem
from scheduler.tuning.tuner import Event, ProblemResult, TuningResult

# Candidates of a problem in flight at once.
_AHEAD = 6
_LOOK_S = 0.2


def listing_of(build: Build) -> Path:
    """Return the path of a build's listing, next to its other files."""
    return build.directory / recipe_of(find(build.target), build.source_file).listing_file


class ModelPool(Protocol):
    """Models kernels, several at a time."""

    from_cache: int

    def submit(
        self, job: ModelJob, listing: Path, code_digest: str
    ) -> Future[ModelledTime | Rejected]: ...

    def close(self) -> None: ...


@dataclass
class _Trial:
    """A candidate in flight: its two builds, then the model's result."""

    index: int
    build: Future[Build | Rejected]
    emulation: Future[Build | Rejected]
    checked: CheckedSizes | None = None
    modelling: Future[ModelledTime | Rejected] | None = None
    outcome: ModelledTime | Rejected | None = None

    @property
    def is_built(self) -> bool:
        """Whether it waits for its check."""
        return (
            self.outcome is None
            and self.checked is None
            and self.build.done()
            and (isinstance(self.build.result(), Rejected) or self.emulation.done())
        )

    @property
    def built(self) -> Build:
        """The finished build for the GPU."""
        built = self.build.result()
        assert isinstance(built, Build)
        return built

    @property
    def pending_futures(self) -> list[Future[Any]]:
        if self.outcome is not None:
            return []
        if self.modelling is not None:
            return [self.modelling]
        return [one for one in (self.build, self.emulation) if not one.done()]


@dataclass
class _Problem:
    """The state of one problem."""

    state: ProblemState
    trials: deque[_Trial] = field(default_factory=deque)
    modelled: dict[int, ModelledTime] = field(default_factory=dict)
    libraries: dict[int, str] = field(default_factory=dict)
    begun_s: float | None = None

    def entry(self, index: int) -> Entry:
        """Return the ledger entry of a candidate in its current state."""
        entry = self.state.entry(index)
        if index in self.modelled and index not in self.state.rejected:
            modelled = self.modelled[index]
            return replace(entry, state=CandidateState.MODELLED, reason="", modelled=modelled)
        return entry

    @property
    def best_ns(self) -> float | None:
        return min((one.time_ns.mid for one in self.modelled.values()), default=None)


class ModelTuner:
    """One run over several problems. ``pool`` compiles for the GPU, ``emulations`` for its
    emulation; both and the models are closed at the end."""

    def __init__(
        self,
        problems: Sequence[TuningProblem],
        setting: RunSettings,
        gate: Gate,
        models: ModelPool,
        pool: CompilePool,
        emulations: CompilePool,
        meter: Meter,
        on_event: Callable[[Event], None] = lambda _: None,
        cancellation: Cancellation | None = None,
        listing: Callable[[Build], Path] = listing_of,
    ) -> None:
        self._listing = listing
        self._setting = setting
        self._gate = gate
        self._models = models
        self._pools = (pool, emulations)
        self._meter = meter
        self._on_event = on_event
        self._cancellation = cancellation or Cancellation()
        self._problems = [
            _Problem(ProblemState(one, setting, number)) for number, one in enumerate(problems)
        ]
        self._total = sum(len(problem.callers) for problem in problems)
        self._tried = 0

    def run(self) -> TuningResult:
        """Try candidates, then decide. A cancelled run decides from the results so far; so does one
        whose budget ends, and it reports the untried candidates.

        Exceptions of ``on_event`` end the run, as ``Cancelled`` from the build does.
        """
        try:
            self._explore()
            results = tuple(self._result(one) for one in self._problems)
        except Cancelled:
            for one in self._problems:
                one.state.close("the run was cancelled")
            results = tuple(self._decide(one) for one in self._problems)
        finally:
            self._close()
        why = next((p.state.why_untried for p in self._problems if p.state.why_untried), "")
        ended = "cancelled" if self._cancellation.cancelled else why
        meter = self._meter
        spent = (meter.seconds, meter.compiles, meter.measurements)
        return TuningResult(results, *spent, ended, from_cache=self._models.from_cache)

    def _close(self) -> None:
        self._models.close()
        for pool in self._pools:
            pool.close()

    def _stop_if_cancelled(self) -> None:
        if self._cancellation.cancelled:
            raise Cancelled

    # ---- trying candidates

    def _explore(self) -> None:
        while True:
            self._stop_if_cancelled()
            if self._meter.left_s <= 0:
                self._end(f"the budget of {self._meter.budget.seconds:g} s was spent")
                return
            for one in self._problems:
                self._settle(one)
                self._feed(one)
            if self._check_next():
                continue
            waiting = [
                f for p in self._problems for trial in p.trials for f in trial.pending_futures
            ]
            if not any(one.trials for one in self._problems):
                return
            if waiting:
                wait(waiting, timeout=_LOOK_S, return_when=FIRST_COMPLETED)

    def _end(self, why: str) -> None:
        """Stop trying; finished results that were not told yet count."""
        for one in self._problems:
            for trial in one.trials:
                if trial.modelling is not None and trial.modelling.done():
                    self._note(one, trial)
            one.trials.clear()
            one.state.close(why)

    def _feed(self, one: _Problem) -> None:
        """Keep candidates of a problem in flight; its default whatever the limits."""
        state = one.state
        while not (state.closed or state.asked_all) and len(one.trials) < _AHEAD:
            limit = self._limit() if state.order or one.trials else ""
            index = None if limit else state.search.ask()
            if index is None:
                state.asked_all = True
                state.why_untried = limit
                return
            if one.begun_s is None:
                one.begun_s = self._meter.seconds
            caller = state.problem.callers[index]
            self._meter.compiles += len(self._pools)
            self._meter.measurements += 1
            build, emulation = (pool.submit(caller) for pool in self._pools)
            one.trials.append(_Trial(index, build, emulation))

    def _limit(self) -> str:
        """Return which limit forbids another candidate; "" if none does."""
        budget, meter = self._meter.budget, self._meter
        if budget.compiles is not None and meter.compiles >= budget.compiles:
            return f"the budget of {budget.compiles} compiles was spent"
        if budget.measurements is not None and meter.measurements >= budget.measurements:
            return f"the budget of {budget.measurements} modelled candidates was spent"
        return ""

    def _check_next(self) -> bool:
        """Check one built candidate, of the problem with the fewest tried, and have it modelled;
        return False if there is none."""
        ready = [(len(p.state.order), p) for p in self._problems if _first_built(p) is not None]
        if not ready:
            return False
        one = min(ready, key=lambda item: item[0])[1]
        trial = _first_built(one)
        assert trial is not None
        found = self._check_result(one, trial)
        self._stop_if_cancelled()
        if isinstance(found, Rejected):
            trial.outcome = found
            return True
        trial.checked = found
        state, build = one.state, trial.built
        job = job_of(
            state.problem,
            state.problem.callers[trial.index],
            self._setting.target,
            self._setting.device,
        )
        listing = self._listing(build)
        trial.modelling = self._models.submit(job, listing, build.code_digest)
        return True

    def _check_result(self, one: _Problem, trial: _Trial) -> CheckedSizes | Rejected:
        """Return the emulation's verdict on a candidate's results."""
        state, index = one.state, trial.index
        for future in (trial.build, trial.emulation):
            built = future.result()
            if isinstance(built, Rejected):
                return built
            self._meter.compiles -= built.cached
        state.builds[index] = trial.built
        emulation = trial.emulation.result()
        assert isinstance(emulation, Build)
        one.libraries[index] = library = str(library_of(emulation))
        caller = state.problem.callers[index]
        return self._gate.check(state.problem, caller, library, self._meter.left_s)

    def _settle(self, one: _Problem) -> None:
        """Tell the search the known results, in the order of asking."""
        while one.trials:
            trial = one.trials[0]
            if trial.modelling is not None and trial.modelling.done():
                trial.outcome = trial.modelling.result()
            if trial.outcome is None:
                return
            one.trials.popleft()
            self._note(one, trial)

    def _note(self, one: _Problem, trial: _Trial) -> None:
        outcome = trial.outcome
        if outcome is None:
            assert trial.modelling is not None
            outcome = trial.modelling.result()
        state, index = one.state, trial.index
        self._tried += 1
        state.order[index] = (self._tried, self._meter.seconds)
        state.spent_s = self._meter.seconds - (one.begun_s or 0.0)
        time_ns: float | None = None
        if isinstance(outcome, Rejected):
            state.rejected[index] = outcome
        else:
            assert trial.checked is not None
            one.modelled[index] = _add_check(outcome, trial.checked)
            # A candidate that is not fully known is no guide to its neighbours.
            time_ns = None if outcome.unknown else outcome.time_ns.mid
        state.search.tell(index, time_ns)
        counts = (self._tried, self._total)
        self._on_event(
            Event(state.problem.name, one.entry(index), *counts, one.best_ns, self._meter.seconds)
        )

    # ---- deciding

    def _result(self, one: _Problem) -> ProblemResult:
        """Decide. A winner that is unchecked is first checked in full; a winner is also checked at
        sizes that fill no tile."""
        whole: set[int] = set()
        while True:
            self._stop_if_cancelled()
            place = self._next_to_check(one, whole)
            if place is None:
                return self._decide(one)
            whole.add(place)
            caller = one.state.problem.callers[place]
            found = self._gate.check_full(
                one.state.problem, caller, one.libraries[place], self._meter.left_s
            )
            if isinstance(found, Rejected):
                one.state.rejected[place] = found
                continue
            one.modelled[place] = _add_check(one.modelled[place], found)
            if not found.sizes:  # there will be no time for another one either
                return self._decide(one)

    def _next_to_check(self, one: _Problem, whole: set[int]) -> int | None:
        """Return the index to check next: the default if it is unchecked, else the one that would
        win if it is correct. None if all that is known, or the budget is spent."""
        if self._meter.left_s <= 0:
            return None
        kept = {p: m for p, m in one.modelled.items() if p not in one.state.rejected}
        default = kept.get(0)
        if default is not None and default.unchecked and not default.unknown and 0 not in whole:
            return 0
        supposed = _Problem(
            one.state,
            modelled={
                p: replace(m, unchecked="") if p not in whole else m for p, m in kept.items()
            },
        )
        entries = decide_modelled(self._entries(supposed))
        places = [p for p, e in enumerate(entries) if e.state is CandidateState.CHOSEN]
        place = places[0] if places else None
        if place is None or place in whole or (place == 0 and not kept[0].unchecked):
            return None
        return place

    def _entries(self, one: _Problem) -> list[Entry]:
        return [one.entry(index) for index in range(len(one.state.problem.callers))]

    def _decide(self, one: _Problem) -> ProblemResult:
        decided = decide_modelled(self._entries(one))
        lines = (*decided, *one.state.rejected_by_rules())
        return ProblemResult(one.state.problem, lines, one.state.spent_s)


def _first_built(one: _Problem) -> _Trial | None:
    return next((trial for trial in one.trials if trial.is_built), None)


def _add_check(modelled: ModelledTime, checked: CheckedSizes) -> ModelledTime:
    return replace(modelled, checked_at=checked.sizes, unchecked=checked.why)
