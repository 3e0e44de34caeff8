"""Times candidates by the model of a GPU that is not present.

Each candidate is compiled for the GPU and for its emulation, checked on the emulation, and modelled
in a worker process. There are no last rounds: modelling again gives the same result.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from scheduler.build.model import Build
from scheduler.build.recipe import library_of, listing_of
from scheduler.errors import Rejected
from scheduler.tuning.budget import Meter
from scheduler.tuning.compile_pool import CompilePool
from scheduler.tuning.decision import decide
from scheduler.tuning.ledger import CandidateState
from scheduler.tuning.modelled.gate import CheckedSizes, Gate
from scheduler.tuning.modelled.job import ModelJob, job_of
from scheduler.tuning.modelled_time import ModelledTime
from scheduler.tuning.problem_state import ProblemState
from scheduler.tuning.tuner import POLL_S, Tuner


class ModelPool(Protocol):
    """Models kernels, several at a time."""

    from_cache: int

    def submit(
        self, job: ModelJob, listing: Path, code_digest: str
    ) -> Future[ModelledTime | Rejected]: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class ModelTools:
    """What a run with modelled times uses besides the compilers for the GPU: compilers for the
    emulation, the model, and the path of a build's listing."""

    emulations: CompilePool
    models: ModelPool
    listing: Callable[[Build], Path] = listing_of

    def close(self) -> None:
        """End what still runs; may be called again."""
        self.models.close()
        self.emulations.close()


@dataclass
class _Trial:
    """A candidate in flight: its two builds, then the model's result."""

    index: int
    build: Future[Build | Rejected]
    emulation: Future[Build | Rejected]
    checked: CheckedSizes | None = None
    modelling: Future[ModelledTime | Rejected] | None = None
    result: ModelledTime | Rejected | None = None

    @property
    def is_built(self) -> bool:
        """Whether it waits for its check."""
        return (
            self.result is None
            and self.checked is None
            and self.build.done()
            and (isinstance(self.build.result(), Rejected) or self.emulation.done())
        )

    @property
    def pending_futures(self) -> list[Future[Any]]:
        if self.result is not None:
            return []
        if self.modelling is not None:
            return [self.modelling]
        return [future for future in (self.build, self.emulation) if not future.done()]


class ModelTimer:
    """Checks with a gate, and models; closes the pool, which compiles for the GPU, and the
    tools."""

    def __init__(self, gate: Gate, pool: CompilePool, tools: ModelTools, meter: Meter) -> None:
        self._gate = gate
        self._pool = pool
        self._tools = tools
        self._meter = meter
        self._trials: defaultdict[ProblemState, deque[_Trial]] = defaultdict(deque)
        self._start_s: dict[ProblemState, float] = {}

    @property
    def from_cache(self) -> int:
        return self._tools.models.from_cache

    def limit(self) -> str:
        budget, meter = self._meter.budget, self._meter
        if budget.compiles is not None and meter.compiles >= budget.compiles:
            return f"the budget of {budget.compiles} compiles was spent"
        if budget.measurements is not None and meter.measurements >= budget.measurements:
            return f"the budget of {budget.measurements} modelled candidates was spent"
        return ""

    def submit(self, state: ProblemState, index: int) -> None:
        self._start_s.setdefault(state, self._meter.seconds)
        caller = state.problem.callers[index]
        self._meter.compiles += 2
        self._meter.measurements += 1
        build, emulation = self._pool.submit(caller), self._tools.emulations.submit(caller)
        self._trials[state].append(_Trial(index, build, emulation))

    def in_flight(self, state: ProblemState) -> int:
        return len(self._trials[state])

    def close(self) -> None:
        self._tools.close()
        self._pool.close()

    # ---- trying candidates

    def collect(self, tuner: Tuner) -> bool:
        """Report the known results in the order of the proposals. When the budget ends, only
        those that the model finished."""
        if self._meter.left_s <= 0:
            for state in tuner.states:
                trials = self._trials.pop(state, deque())
                for trial in trials:
                    if trial.modelling is not None and trial.modelling.done():
                        self._report(tuner, state, trial, trial.modelling.result())
                state.close(f"the budget of {self._meter.budget.seconds:g} s was spent")
            return False
        for state in tuner.states:
            trials = self._trials[state]
            while trials:
                trial = trials[0]
                if trial.modelling is not None and trial.modelling.done():
                    trial.result = trial.modelling.result()
                if trial.result is None:
                    break
                trials.popleft()
                self._report(tuner, state, trial, trial.result)
        return True

    def _report(
        self, tuner: Tuner, state: ProblemState, trial: _Trial, result: ModelledTime | Rejected
    ) -> None:
        state.spent_s = self._meter.seconds - self._start_s[state]
        if isinstance(result, Rejected):
            tuner.reject(state, trial.index, result)
            return
        assert trial.checked is not None
        state.modelled[trial.index] = _add_check(result, trial.checked)
        # A candidate that is not fully known is no guide to its neighbours.
        tuner.note(state, trial.index, None if result.unknown else result.time_ns.mid)

    def advance(self, tuner: Tuner) -> bool:
        """Check one built candidate, of the problem with the fewest tried, and have it modelled."""
        ready = [
            (state, trial)
            for state in tuner.states
            for trial in self._trials[state]
            if trial.is_built
        ]
        if ready:
            state, trial = min(ready, key=lambda candidate: len(candidate[0].order))
            self._check(tuner, state, trial)
            return True
        trials = [trial for state in tuner.states for trial in self._trials[state]]
        pending = [future for trial in trials for future in trial.pending_futures]
        wait(pending, timeout=POLL_S, return_when=FIRST_COMPLETED)
        return bool(trials)

    def _check(self, tuner: Tuner, state: ProblemState, trial: _Trial) -> None:
        """Check a candidate on the emulation; if it is correct, have it modelled."""
        builds = []
        for future in (trial.build, trial.emulation):
            built = future.result()
            if isinstance(built, Rejected):
                trial.result = built
                return
            self._meter.compiles -= built.cached
            builds.append(built)
        build, emulation = builds
        state.builds[trial.index], state.emulations[trial.index] = build, emulation
        problem, caller = state.problem, state.problem.callers[trial.index]
        gate_result = self._gate.check(
            problem, caller, str(library_of(emulation)), self._meter.left_s
        )
        tuner.stop_if_cancelled()
        if isinstance(gate_result, Rejected):
            trial.result = gate_result
            return
        trial.checked = gate_result
        job = job_of(problem, caller, state.setting.target, state.setting.device)
        listing = self._tools.listing(build)
        trial.modelling = self._tools.models.submit(job, listing, build.code_digest)

    # ---- deciding

    def compare_fastest(self, tuner: Tuner) -> None:
        """Nothing to do: equal inputs give equal modelled times."""

    def confirm_winner(self, tuner: Tuner, state: ProblemState) -> None:
        """Check a winner in full, and at sizes that fill no tile. The default is checked first if
        it was not: nothing can be compared with it before."""
        confirmed: set[int] = set()
        while True:
            tuner.stop_if_cancelled()
            index = self._next_to_confirm(state, confirmed)
            if index is None:
                return
            confirmed.add(index)
            library = str(library_of(state.emulations[index]))
            gate_result = self._gate.check_full(
                state.problem, state.problem.callers[index], library, self._meter.left_s
            )
            if isinstance(gate_result, Rejected):
                state.rejected[index] = gate_result
                continue
            state.modelled[index] = _add_check(state.modelled[index], gate_result)
            if not gate_result.sizes:  # there will be no time for another one either
                return

    def _next_to_confirm(self, state: ProblemState, confirmed: set[int]) -> int | None:
        """Return the index to check next: the default if it is unchecked, else the one that would
        win if it is correct. None if all that is known, or the budget is spent."""
        if self._meter.left_s <= 0:
            return None
        modelled = {
            candidate_index: time
            for candidate_index, time in state.modelled.items()
            if candidate_index not in state.rejected
        }
        default = modelled.get(0)
        unchecked = default is not None and bool(default.unchecked)
        if default is not None and unchecked and not default.unknown and 0 not in confirmed:
            return 0
        entries = state.entries()
        for index in modelled.keys() - confirmed:
            assumed_correct = replace(modelled[index], unchecked="")
            entries[index] = replace(entries[index], modelled=assumed_correct)
        states = [entry.state for entry in decide(entries, modelled)]
        if CandidateState.CHOSEN not in states:
            return None
        index = states.index(CandidateState.CHOSEN)
        return None if index in confirmed or (index == 0 and not unchecked) else index


def _add_check(modelled: ModelledTime, checked: CheckedSizes) -> ModelledTime:
    return replace(modelled, checked_at=checked.sizes, unchecked=checked.why)
