"""The tuner with real compilers and worker processes: a right kernel, and each kind of bad one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace

import pytest

from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.measure import Limits
from scheduler.benchmark.measurement import Check, Measurement
from scheduler.benchmark.timing import TimingPlan
from scheduler.build.cache import CodeCache
from scheduler.build.model import Build
from scheduler.build.toolchains import bundled_clang
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.errors import Rejected
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import SymbolInfo
from scheduler.sandbox.process import Cancellation
from scheduler.targets import find
from scheduler.tuning.budget import Budget, Meter
from scheduler.tuning.compile_pool import LocalCompilePool
from scheduler.tuning.evaluator import BenchEvaluator, edge_bindings
from scheduler.tuning.ledger import CandidateState
from scheduler.tuning.measuring_timer import MeasuringTimer
from scheduler.tuning.problem_state import RunSettings
from scheduler.tuning.problems import TuningProblem, find_problems
from scheduler.tuning.tuner import Event, Tuner, TuningResult
from tests.unit.matrix.contractions import matmul

CPU = find("cpu")
PLAN = TimingPlan(min_samples=3, max_samples=4, min_sample_ns=1.0, budget_s=0.01)
LIMITS = Limits(load_s=300.0, check_s=300.0, run_s=300.0)
HANGS = "for (volatile int spin = 1; spin; ) {}"
HANGING_S = 3.0  # what hangs is waited for
ENTRY = "if (workspace_size"  # in every exported function, before anything is launched


class Saboteur:
    """Compiles what it is given, with a fault put into the candidates that are told."""

    def __init__(self, compilers: LocalCompilePool, faults: dict[str, str]) -> None:
        self._compilers = compilers
        self._faults = faults

    def submit(self, caller: TemplateCaller) -> Future[Build | Rejected]:
        fault = self._faults.get(caller.name)
        if fault is not None:
            before, found, after = caller.kernel.source.rpartition(ENTRY)
            assert found
            source = f"{before}if (!workspace_size) {{ {fault} }}\n  {found}{after}"
            caller = replace(caller, kernel=replace(caller.kernel, source=source))
        return self._compilers.submit(caller)

    def close(self) -> None:
        self._compilers.close()


class Impatient(BenchEvaluator):
    """Gives less time to the candidates that hang, and to no other."""

    hanging: frozenset[str] = frozenset()

    def check(self, candidate: BuiltCandidate, max_s: float) -> Check | Rejected:
        hangs = candidate.request.kernel in self.hanging
        return super().check(candidate, HANGING_S if hangs else max_s)


@pytest.fixture(scope="module")
def schedule() -> Schedule:
    """A small product."""
    return matmul(32, 32, 32, DType.F16)


def problem_of(schedule: Schedule, count: int) -> TuningProblem:
    """The product with its first few candidates."""
    (problem,) = find_problems(schedule, ROCmCPPScheduling(schedule, (CPU,)), CPU, {})
    return replace(problem, callers=problem.callers[:count])


def tune(
    schedule: Schedule,
    problem: TuningProblem,
    cache: CodeCache,
    faults: dict[str, str],
    on_event: Callable[[Event], None] = lambda _: None,
    cancellation: Cancellation | None = None,
    hanging: frozenset[str] = frozenset(),
) -> TuningResult:
    """A whole run on CPU emulation."""
    compilers = Saboteur(LocalCompilePool(CPU, lambda *_: bundled_clang(cache), cache, 2), faults)
    setting = RunSettings("cpu", CPU, True, PLAN)
    with Impatient("cpu", CPU, schedule.lowered, LIMITS, cancellation=cancellation) as evaluator:
        evaluator.hanging = hanging
        meter = Meter(Budget())
        timer = MeasuringTimer(evaluator, compilers, PLAN, meter)
        return Tuner([problem], setting, timer, meter, on_event, cancellation).run()


@pytest.mark.full
def test_faults_are_distinguished_and_the_best_of_the_right_ones_is_chosen(
    schedule: Schedule, cache: CodeCache
) -> None:
    problem = problem_of(schedule, 7)
    names = [caller.name for caller in problem.callers]
    faults = {
        names[1]: HANGS,
        names[2]: "*(volatile int*)8 = 1;",
        names[3]: "return 0;",
        names[4]: "return 7;",
        names[5]: "this does not compile;",
    }
    result = tune(schedule, problem, cache, faults, hanging=frozenset(names[1:2]))
    entries = {entry.kernel: entry for entry in result.entries}
    assert [entries[name].state for name in names[1:6]] == [
        CandidateState.TIMEOUT,
        CandidateState.CRASH,
        CandidateState.WRONG,
        CandidateState.FAILED,
        CandidateState.COMPILE_ERROR,
    ]
    assert all(entries[name].reason for name in names[1:6])
    for name in (names[0], names[6]):
        assert entries[name].state in {CandidateState.MEASURED, CandidateState.CHOSEN}
        assert isinstance(entries[name].measurement, Measurement)
        assert entries[name].code_digest
    assert result.configs["node0"].config in (problem.configs[0], problem.configs[6])
    assert "AUTOTUNE mm(32x32, 32x32)" in result.problems[0].autotune_text()


@pytest.mark.full
def test_what_was_compiled_once_costs_no_compile_the_second_time(
    schedule: Schedule, cache: CodeCache
) -> None:
    problem = problem_of(schedule, 2)
    assert tune(schedule, problem, cache, {}).measurements == 2
    assert tune(schedule, problem, cache, {}).compiles == 0


@pytest.mark.full
def test_cancelling_takes_effect_while_a_kernel_hangs(schedule: Schedule, cache: CodeCache) -> None:
    problem = problem_of(schedule, 2)
    hangs = problem.callers[1].name
    cancellation = Cancellation()

    def on_event(event: Event) -> None:
        # By then the other candidate hangs, or is compiled.
        threading.Timer(1.0, cancellation.cancel).start()

    result = tune(schedule, problem, cache, {hangs: HANGS}, on_event, cancellation)
    assert result.ended == "cancelled"
    assert result.configs["node0"].config == problem.configs[0]
    (entry,) = (one for one in result.entries if one.kernel == hangs)
    assert entry.state is CandidateState.UNTRIED, "it was not waited for until its limit"


def test_edges_are_the_least_and_a_small_prime() -> None:
    symbols = {"s0": SymbolInfo("s0", 128, 2, 1024), "s1": SymbolInfo("s1", 8, 1, 16)}
    assert edge_bindings(symbols) == ({"s0": 2, "s1": 1}, {"s0": 37, "s1": 16})
    assert edge_bindings({}) == ({},)
