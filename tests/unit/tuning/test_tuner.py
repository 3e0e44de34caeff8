"""The tuner's choices, given compilers and a device of the test's own making."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.measurement import Check
from scheduler.benchmark.timing import Sampler, TimingPlan
from scheduler.build.model import Build, Toolchain
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.errors import Rejected, Stage, UserError
from scheduler.ir.dtypes import DType
from scheduler.runtime.device import Timing
from scheduler.sandbox.process import Cancellation
from scheduler.targets import find
from scheduler.tuning.budget import Budget, Meter
from scheduler.tuning.ledger import CandidateState
from scheduler.tuning.measuring_timer import MeasuringTimer
from scheduler.tuning.problem_state import RunSettings
from scheduler.tuning.problems import TuningProblem, find_problems
from scheduler.tuning.strategies.registry import DEFAULT_STRATEGY
from scheduler.tuning.tuner import ChosenConfig, Event, Tuner, TuningResult
from scheduler.tuning.warm_start import PriorResult
from tests.unit.matrix.contractions import matmul

CPU = find("cpu")
PLAN = TimingPlan(min_samples=3, max_samples=6, min_sample_ns=1.0, budget_s=0.01)
PASSED = Check(True, 0.0, 1.0, 0.0, True)
UNLIMITED = Budget()
WRONG = Check(False, 9.0, 1.0, 9.0, True, "y[0] is 3, the reference 2")


@dataclass
class World:
    """What the compilers and the device do; the clock runs with what they take."""

    now: float = 0.0
    compile_errors: set[str] = field(default_factory=set)
    wrong: set[str] = field(default_factory=set)
    wrong_at_edges: set[str] = field(default_factory=set)
    crashing: set[str] = field(default_factory=set)
    try_s: float = 0.01
    times: dict[str, float] = field(default_factory=dict)
    checked: list[str] = field(default_factory=list)

    def time_of(self, kernel: str) -> float:
        """Any time between 10 and 20 us, the same for the same kernel and for no other."""
        digest = hashlib.sha256(kernel.encode()).digest()
        return self.times.get(kernel, 10_000 + 10_000 * int.from_bytes(digest[:6]) / 2**48)

    # -- compilers

    def submit(self, caller: TemplateCaller) -> Future[Build | Rejected]:
        future: Future[Build | Rejected] = Future()
        if caller.name in self.compile_errors:
            future.set_result(Rejected(Stage.COMPILE, "expected ';'", "the log"))
        else:
            chain = Toolchain("bundled", "1", "", (), ())
            facts = (caller.name, caller.name, 0.1, "", Path("/nowhere"))
            future.set_result(Build("cpu", chain, (), *facts, {}, False))
        return future

    def close(self) -> None: ...

    # -- evaluator

    def use(self, problem: TuningProblem) -> Rejected | None:
        return None

    def check(self, candidate: BuiltCandidate, max_s: float) -> Check | Rejected:
        self.now += self.try_s
        kernel = candidate.request.kernel
        self.checked.append(kernel)
        if kernel in self.crashing:
            return Rejected(Stage.CRASH, "killed by SIGSEGV, 2 times: quarantined")
        return WRONG if kernel in self.wrong else PASSED

    def check_edges(
        self, problem: TuningProblem, caller: TemplateCaller, library: str
    ) -> Rejected | None:
        at = caller.name in self.wrong_at_edges
        return Rejected(Stage.CHECK, "wrong result at s0=1: error 9") if at else None

    def sampler(self, candidates: Mapping[str, BuiltCandidate], max_s: float) -> Sampler:
        def sample(key: str, batch: int) -> Timing | Rejected:
            total_ns = self.time_of(candidates[key].request.kernel) * batch
            self.now += total_ns / 1e9
            return Timing(total_ns)

        return sample


def problems(*sizes: int) -> tuple[TuningProblem, ...]:
    """A product of each size."""
    found: list[TuningProblem] = []
    for size in sizes:
        schedule = matmul(size, 64, 64, DType.F16)
        found += find_problems(schedule, ROCmCPPScheduling(schedule, (CPU,)), CPU, {})
    return tuple(found)


def tune(
    world: World,
    what: tuple[TuningProblem, ...],
    budget: Budget = UNLIMITED,
    known: tuple[PriorResult, ...] = (),
    cancel_after: int | None = None,
    strategy: str = DEFAULT_STRATEGY,
    selected: str = "",
) -> tuple[TuningResult, list[Event]]:
    """A run in that world."""
    cancellation, events = Cancellation(), list[Event]()

    def on_event(event: Event) -> None:
        events.append(event)
        if len(events) == cancel_after:
            cancellation.cancel()

    meter = Meter(budget, clock=lambda: world.now)
    setting = RunSettings("cpu", CPU, True, PLAN, known=known, strategy=strategy, selected=selected)
    timer = MeasuringTimer(world, world, PLAN, meter)
    return Tuner(what, setting, timer, meter, on_event, cancellation).run(), events


@pytest.fixture(scope="module")
def one() -> tuple[TuningProblem, ...]:
    """One small product."""
    return problems(64)


@pytest.mark.full
def test_without_a_budget_everything_is_tried_and_the_fastest_is_chosen(
    one: tuple[TuningProblem, ...],
) -> None:
    world = World()
    result, events = tune(world, one)
    callers = one[0].callers
    fastest = min(callers, key=lambda caller: world.time_of(caller.name))
    assert result.configs == {"node0": ChosenConfig(fastest.kernel.template, fastest.kernel.config)}
    assert result.measurements == result.compiles == len(callers) == len(events)
    assert result.ended == ""
    states = [entry.state for entry in result.entries]
    assert states.count(CandidateState.CHOSEN) == 1
    assert states.count(CandidateState.REJECTED) == len(one[0].rejected)
    assert CandidateState.UNTRIED not in states
    assert all(e.reason for e in result.entries if e.state is CandidateState.REJECTED)


def test_the_default_is_first_and_the_curve_never_rises(one: tuple[TuningProblem, ...]) -> None:
    _, events = tune(World(), one)
    assert events[0].entry.is_default
    curve = [event.best_ns for event in events if event.best_ns is not None]
    assert curve == sorted(curve, reverse=True)
    assert [event.tried for event in events] == list(range(1, len(events) + 1))


def test_the_same_seed_gives_the_same_run(one: tuple[TuningProblem, ...]) -> None:
    budget = Budget(measurements=20)
    first, second = (tune(World(), one, budget)[0] for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    "budget", [Budget(measurements=5), Budget(compiles=5), Budget(seconds=0.08)]
)
def test_what_the_budget_leaves_out_is_in_the_ledger_with_the_reason(
    one: tuple[TuningProblem, ...], budget: Budget
) -> None:
    result, _ = tune(World(), one, budget)
    untried = [entry for entry in result.entries if entry.state is CandidateState.UNTRIED]
    assert len(untried) == len(one[0].callers) - result.measurements
    assert 2 <= result.measurements <= 6
    assert all("budget" in e.reason or "exploration time" in e.reason for e in untried)
    assert not any("0.0 s" in e.reason for e in untried)
    assert result.configs


@pytest.mark.full
def test_losses_are_kept_with_stage_and_reason_and_never_win(
    one: tuple[TuningProblem, ...],
) -> None:
    world = World()
    order = sorted((c.name for c in one[0].callers), key=world.time_of)
    world.wrong, world.crashing, world.compile_errors = {order[0]}, {order[1]}, {order[2]}
    result, _ = tune(world, one)
    by_kernel = {e.kernel: e for e in result.entries if e.kernel}
    assert by_kernel[order[0]].state is CandidateState.WRONG
    assert "reference" in by_kernel[order[0]].detail
    assert by_kernel[order[1]].state is CandidateState.CRASH
    assert by_kernel[order[2]].state is CandidateState.COMPILE_ERROR
    assert by_kernel[order[3]].state is CandidateState.CHOSEN


@pytest.mark.full
def test_a_winner_that_is_wrong_at_small_sizes_does_not_win(
    one: tuple[TuningProblem, ...],
) -> None:
    world = World()
    order = sorted((c.name for c in one[0].callers), key=world.time_of)
    world.wrong_at_edges = {order[0]}
    result, _ = tune(world, one)
    by_kernel = {e.kernel: e for e in result.entries if e.kernel}
    assert by_kernel[order[0]].state is CandidateState.WRONG
    assert by_kernel[order[1]].state is CandidateState.CHOSEN


def test_problems_share_the_time_and_defaults_come_early() -> None:
    world, two = World(), problems(64, 128)
    result, events = tune(world, two, Budget(seconds=0.5))
    assert sum(event.entry.is_default for event in events[:8]) == 2
    counts = [sum(1 for e in r.entries if e.order) for r in result.problems]
    assert abs(counts[0] - counts[1]) <= 8


def test_a_candidate_that_would_not_fit_is_not_begun() -> None:
    world = World(try_s=3.0)
    result, _ = tune(world, problems(64), Budget(seconds=10.0))
    assert world.now <= 10.0
    assert result.measurements == 2


def test_a_problem_too_large_to_compare_anything_is_not_begun() -> None:
    world = World(try_s=0.5)
    result, _ = tune(world, problems(64, 64 * 64), Budget(seconds=8.0))
    small, large = result.problems
    assert small.chosen is not None
    assert large.chosen is None
    reasons = {entry.reason for entry in large.entries if entry.state is CandidateState.UNTRIED}
    assert len(reasons) == 1
    assert "two candidates would take about 64 s" in reasons.pop()


def test_cancelling_ends_the_run_with_what_was_seen(one: tuple[TuningProblem, ...]) -> None:
    world = World()
    result, events = tune(world, one, cancel_after=4)
    assert len(events) == 4
    assert result.ended == "cancelled"
    best = min((e.entry for e in events), key=lambda e: e.median_ns or 0)
    assert result.configs == {"node0": ChosenConfig(best.template, best.config)}
    assert {e.reason for e in result.entries if e.state is CandidateState.UNTRIED} == {
        "the run was cancelled"
    }


@pytest.mark.full
def test_what_won_on_a_like_problem_is_tried_right_after_the_default(
    one: tuple[TuningProblem, ...],
) -> None:
    won = one[0].callers[-1].kernel.config
    _, events = tune(World(), one, known=(PriorResult(one[0].shape, won),))
    assert events[1].entry.config == won


def test_layers_that_repeat_are_one_problem_and_names_are_checked() -> None:
    schedule = matmul(64, 64, 64, DType.F16)
    backend = ROCmCPPScheduling(schedule, (CPU,))
    assert [p.nodes for p in find_problems(schedule, backend, CPU, {}, ["node0"])] == [("node0",)]
    with pytest.raises(UserError, match="no such kernel"):
        find_problems(schedule, backend, CPU, {}, ["node7"])


def test_the_strategy_that_is_named_says_in_which_order_candidates_are_tried(
    one: tuple[TuningProblem, ...],
) -> None:
    offered = [caller.kernel.config for caller in one[0].callers]
    budget = Budget(measurements=12)
    orders = {
        name: [event.entry.config for event in tune(World(), one, budget, strategy=name)[1]]
        for name in ("exhaustive", "random")
    }
    assert orders["exhaustive"] == offered[:12]
    assert orders["random"][0] == offered[0], "the default first, whatever the strategy"
    assert orders["random"] != orders["exhaustive"]


def test_the_kernel_in_use_is_timed_as_often_as_the_winner(one: tuple[TuningProblem, ...]) -> None:
    """However slow it is, and however few candidates the budget allows."""
    callers = [caller.name for caller in one[0].callers]
    slow = callers[len(callers) // 2]
    world = World(times={slow: 90_000.0})
    result, _ = tune(world, one, Budget(measurements=12), selected=slow)
    entries = {entry.kernel: entry for entry in result.problems[0].entries}
    chosen = result.problems[0].chosen
    assert chosen is not None and chosen.measurement is not None and chosen.kernel != slow
    selected = entries[slow].measurement
    assert selected is not None, "it was not timed"
    assert len(selected.samples_ns) == len(chosen.measurement.samples_ns) == PLAN.max_samples
