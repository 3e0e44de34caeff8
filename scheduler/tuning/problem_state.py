"""One problem during a run: the candidates proposed, built, timed and rejected so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

import numpy as np

from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.measure import Outcome, summarise
from scheduler.benchmark.measurement import Check, Measurement
from scheduler.benchmark.timing import Samples, TimingPlan
from scheduler.build.model import Build
from scheduler.build.recipe import library_of
from scheduler.errors import Rejected
from scheduler.targets import Board, Target
from scheduler.tuning.budget import Meter
from scheduler.tuning.cost_model import expected_ns
from scheduler.tuning.ledger import CandidateState, Entry, build_facts, state_of
from scheduler.tuning.modelled_time import ModelledTime
from scheduler.tuning.problems import TuningProblem
from scheduler.tuning.search import Search
from scheduler.tuning.strategies.registry import DEFAULT_STRATEGY
from scheduler.tuning.warm_start import COLD_START, PriorResult, WarmStart, nearest_configs

# A build that the model puts this many times behind the best one waits until the others are done.
_POSTPONE_RATIO = 4.0


@dataclass(frozen=True)
class RunSettings:
    """The device and the settings of a run. ``floors_ns`` are speed-of-light bounds by problem,
    ``start`` the earlier modelled results, whose candidates are tried first; ``selected`` is the
    kernel in use."""

    device: str
    target: Target
    emulated: bool
    plan: TimingPlan
    board: Board | None = None
    floors_ns: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    known: Sequence[PriorResult] = ()
    strategy: str = DEFAULT_STRATEGY
    start: WarmStart = COLD_START
    selected: str = ""


class ProblemState:
    """Candidates are numbered by their index in the problem's callers; 0 is the default."""

    def __init__(self, problem: TuningProblem, setting: RunSettings, number: int) -> None:
        self.problem = problem
        self.setting = setting
        self.floor_ns = setting.floors_ns.get(problem.name, 0.0)
        names = [caller.name for caller in problem.callers]
        is_offered = setting.selected in names
        self.selected_index = names.index(setting.selected) if is_offered else None
        self.expected = [self._expected(index) for index in range(len(problem.callers))]
        self.search = Search(
            problem.configs,
            np.random.default_rng([setting.seed, number]),
            [time_ns for time_ns in self.expected if time_ns is not None] or None,
            [
                *([problem.configs[self.selected_index]] if self.selected_index else []),
                *(problem.configs[index] for index in setting.start.first_candidates(problem)),
                *nearest_configs(setting.known, problem.shape),
            ],
            setting.strategy,
        )
        self._predicted = setting.start.modelled_times(problem)
        self.waiting: deque[tuple[int, Future[Build | Rejected]]] = deque()
        self.postponed: deque[int] = deque()
        self.builds: dict[int, Build] = {}
        self.emulations: dict[int, Build] = {}  # in a run with modelled times
        self.modelled: dict[int, ModelledTime] = {}  # the same
        self.screened: dict[int, Samples] = {}
        self.finals: dict[int, Samples] = {}
        self.checks: dict[int, Check] = {}
        self.rejected: dict[int, Rejected] = {}
        self.order: dict[int, tuple[int, float]] = {}  # the count and the second of the run
        self.spent_s = 0.0
        self.trials_s: list[float] = []
        self.asked_all = False
        self.closed = False
        self.why_untried = ""

    def close(self, why: str) -> None:
        """Stop trying candidates."""
        self.closed = True
        self.why_untried = self.why_untried or why

    @property
    def trial_s(self) -> float:
        """Seconds that one more candidate will take; 0 before the first."""
        return float(np.median(self.trials_s)) if self.trials_s else 0.0

    @property
    def is_ready(self) -> bool:
        """Whether there is something to measure now."""
        if self.closed:
            return False
        if self.waiting:
            return self.waiting[0][1].done()
        return self.asked_all and bool(self.postponed)

    def next_built(self, meter: Meter) -> tuple[int, Build | Rejected] | None:
        """Return the next candidate to measure, or its rejection; None if its build is postponed
        because the model puts it too far behind. A build from the cache is credited to the
        meter."""
        if not self.waiting:
            index = self.postponed.popleft()
            return index, self.builds[index]
        index, future = self.waiting.popleft()
        built = future.result()
        if isinstance(built, Rejected):
            return index, built
        meter.compiles -= built.cached
        self.builds[index] = built
        self.expected[index] = refined_ns = self._expected(index, built)
        measured = [self.expected[screened_index] for screened_index in self.screened]
        best_expected_ns = min(
            (time_ns for time_ns in measured if time_ns is not None), default=None
        )
        if (
            refined_ns is not None
            and best_expected_ns is not None
            and refined_ns > _POSTPONE_RATIO * best_expected_ns
        ):
            self.search.tell(index, None)
            self.postponed.append(index)
            return None
        return index, built

    def candidate(self, index: int) -> BuiltCandidate:
        """Return a built candidate, as the worker process takes it."""
        caller = self.problem.callers[index]
        request = caller.benchmark_request(self.setting.target.name, self.problem.bindings)
        # Kernels are named by their text: configurations that render alike are one kernel.
        return BuiltCandidate(f"{index}:{caller.name}", self.library(index), request)

    def library(self, index: int) -> str:
        """Return the path of a built candidate."""
        return str(library_of(self.builds[index]))

    def fastest(self) -> list[int]:
        """Return the timed candidates, the fastest first."""
        return sorted(self.screened, key=lambda index: (self.screened[index].median_ns, index))

    @property
    def best_ns(self) -> float | None:
        """The fastest median, or modelled time, so far."""
        measured = [samples.median_ns for samples in self.screened.values() if samples.valid_ns]
        return min(
            [*measured, *(time.time_ns.mid for time in self.modelled.values())], default=None
        )

    @property
    def contenders(self) -> set[int]:
        """The candidates that may be selected: those of the last rounds, if there were any."""
        return set(self.finals or self.screened or self.modelled)

    def entries(self) -> list[Entry]:
        """Return the ledger entries of all candidates."""
        return [self.entry(index) for index in range(len(self.problem.callers))]

    def entry(self, index: int) -> Entry:
        """Return the ledger entry of a candidate in its current state."""
        caller = self.problem.callers[index]
        order, at_s = self.order.get(index, (0, 0.0))
        entry = Entry(
            problem=self.problem.title,
            node=self.problem.node.name,
            bindings=self.problem.bindings,
            kernel=caller.name,
            template=caller.kernel.template,
            config=caller.kernel.config,
            description=caller.description,
            state=CandidateState.UNTRIED,
            is_default=index == 0,
            order=order,
            at_s=at_s,
            expected_ns=self.expected[index],
            shape=self.problem.shape,
            modelled=self._predicted.get(index),
        )
        if index in self.builds:
            entry = replace(entry, **build_facts(self.builds[index]))
        outcome = self._outcome(index)
        if isinstance(outcome, Measurement):
            return replace(entry, state=CandidateState.MEASURED, measurement=outcome)
        if isinstance(outcome, ModelledTime):
            return replace(entry, state=CandidateState.MODELLED, modelled=outcome)
        if isinstance(outcome, Rejected):
            stage, state = str(outcome.stage), state_of(outcome)
            return replace(
                entry, state=state, stage=stage, reason=outcome.reason, detail=outcome.detail
            )
        return replace(entry, reason=self.why_untried)

    def rejected_by_rules(self) -> list[Entry]:
        """Return the entries of the configurations that the rules rejected."""
        problem, shape = self.problem, self.problem.shape
        return [
            Entry(
                problem=problem.title,
                node=problem.node.name,
                bindings=problem.bindings,
                kernel="",
                template=rejected_config.template,
                config=dict(rejected_config.config),
                description=" ".join(f"{key}={value}" for key, value in rejected_config.config),
                state=state_of(rejected_config.rejected),
                stage=str(rejected_config.rejected.stage),
                reason=rejected_config.rejected.reason,
                detail=rejected_config.rejected.detail,
                shape=shape,
            )
            for rejected_config in problem.rejected
        ]

    def _outcome(self, index: int) -> Outcome | ModelledTime | None:
        samples = self.finals.get(index) or self.screened.get(index)
        if index in self.rejected or samples is None:
            return self.rejected.get(index) or self.modelled.get(index)
        caller, setting = self.problem.callers[index], self.setting
        return summarise(
            *(caller.name, setting.device, self.problem.bindings),
            *(samples, self.checks[index], setting.emulated),
            moved_bytes=self.problem.work.bytes,
        )

    def _expected(self, index: int, build: Build | None = None) -> float | None:
        problem, setting = self.problem, self.setting
        caller = problem.callers[index]
        return expected_ns(
            caller, problem.work, setting.target, dict(problem.bindings), setting.board, build
        )
