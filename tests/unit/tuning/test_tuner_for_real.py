"""The tuner with real compilers and worker processes: a right kernel, and each kind of bad one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace

import pytest

from scheduler.benchmark.measure import Limits
from scheduler.benchmark.measurement import Measurement
from scheduler.benchmark.protocol import TimingPlan
from scheduler.build.cache import CodeCache
from scheduler.build.model import Build
from scheduler.build.process import Cancellation
from scheduler.build.toolchains import bundled
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import SymbolInfo
from scheduler.outcome import Rejected
from scheduler.targets import find
from scheduler.tuning.budget import Budget, Meter
from scheduler.tuning.compiling import Compilers
from scheduler.tuning.evaluator import BenchEvaluator, edge_bindings
from scheduler.tuning.ledger import CandidateState
from scheduler.tuning.problem_state import Setting
from scheduler.tuning.problems import TuningProblem, find_problems
from scheduler.tuning.tuner import Event, Tuner, TuningResult
from tests.unit.matrix.contractions import matmul

CPU = find("cpu")
PLAN = TimingPlan(min_samples=3, max_samples=4, min_sample_ns=1.0, budget_s=0.01)
LIMITS = Limits(load_s=30.0, check_s=3.0, run_s=3.0)
ENTRY = "if (workspace_size"  # in every exported function, before anything is launched


class Saboteur:
    """Compiles what it is given, with a fault put into the candidates that are told."""

    def __init__(self, compilers: Compilers, faults: dict[str, str]) -> None:
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
    limits: Limits = LIMITS,
) -> TuningResult:
    """A whole run on CPU emulation."""
    compilers = Saboteur(Compilers(CPU, lambda *_: bundled(cache), cache, 2), faults)
    setting = Setting("cpu", CPU, True, PLAN)
    with BenchEvaluator(
        "cpu", CPU, schedule.lowered, limits, cancellation=cancellation
    ) as evaluator:
        meter = Meter(Budget())
        tuner = Tuner([problem], setting, evaluator, compilers, meter, on_event, cancellation)
        return tuner.run()


def test_faults_are_distinguished_and_the_best_of_the_right_ones_is_chosen(
    schedule: Schedule, cache: CodeCache
) -> None:
    problem = problem_of(schedule, 7)
    names = [caller.name for caller in problem.callers]
    faults = {
        names[1]: "for (volatile int spin = 1; spin; ) {}",
        names[2]: "*(volatile int*)8 = 1;",
        names[3]: "return 0;",
        names[4]: "return 7;",
        names[5]: "this does not compile;",
    }
    result = tune(schedule, problem, cache, faults)
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


def test_what_was_compiled_once_costs_no_compile_the_second_time(
    schedule: Schedule, cache: CodeCache
) -> None:
    problem = problem_of(schedule, 2)
    assert tune(schedule, problem, cache, {}).measurements == 2
    assert tune(schedule, problem, cache, {}).compiles == 0


def test_cancelling_takes_effect_while_a_kernel_hangs(schedule: Schedule, cache: CodeCache) -> None:
    problem = problem_of(schedule, 2)
    hangs = {problem.callers[1].name: "for (volatile int spin = 1; spin; ) {}"}
    cancellation, cancelled_at = Cancellation(), list[float]()

    def cancel() -> None:
        cancelled_at.append(time.monotonic())
        cancellation.cancel()

    def on_event(event: Event) -> None:
        threading.Timer(1.0, cancel).start()  # by then the other candidate hangs, or is compiled

    patient = Limits(load_s=300.0, check_s=300.0, run_s=300.0)
    result = tune(schedule, problem, cache, hangs, on_event, cancellation, patient)
    total_ns = time.monotonic() - cancelled_at[0]
    assert result.ended == "cancelled"
    assert total_ns < 60  # and not the 300 s that the limits give
    assert result.configs["node0"].config == problem.configs[0]


def test_edges_are_the_least_and_a_small_prime() -> None:
    symbols = {"s0": SymbolInfo("s0", 128, 2, 1024), "s1": SymbolInfo("s1", 8, 1, 16)}
    assert edge_bindings(symbols) == ({"s0": 2, "s1": 1}, {"s0": 37, "s1": 16})
    assert edge_bindings({}) == ({},)
