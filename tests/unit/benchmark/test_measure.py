"""Measuring in a process that may die: each kind of bad kernel, and the good one beside it.

Real builds of the bundled compiler for the CPU emulation, real worker processes.
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.case import Case
from scheduler.benchmark.measure import (
    MAX_KILLS,
    Bench,
    Limits,
    Outcome,
    check_candidate,
    interrupt_on_cancel,
    sampler,
    summarise,
    wrong_result,
)
from scheduler.benchmark.measurement import Measurement
from scheduler.benchmark.timing import TimingPlan
from scheduler.benchmark.tolerance import Tolerance
from scheduler.benchmark.worker import BenchmarkWorker, WorkerLostError
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build, Toolchain
from scheduler.codegen.benchmark_request import BenchmarkRequest, ScalarArg, TensorArg
from scheduler.errors import Rejected, Stage
from scheduler.ir.dtypes import DType
from scheduler.ir.storage import BoundBuffer
from scheduler.sandbox.process import Cancellation, Cancelled
from scheduler.targets import find
from scheduler.tuning.halving import screen

N = 1000
# A budget that no machine uses up: a launch that takes long ends a first look early.
PLAN = TimingPlan(min_samples=3, max_samples=4, min_sample_ns=1.0, budget_s=60.0)
LIMITS = Limits(load_s=120.0, check_s=120.0, run_s=120.0)
SHORT = Limits(load_s=120.0, check_s=3.0, run_s=3.0)  # for what hangs: it is waited for

SOURCE = """
#include <hip/hip_runtime.h>
#include <kiln/types.h>

__global__ void double_it(const float* x, float* y, int32_t n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  BODY
}

extern "C" PT_EXPORT int NAME(const float* x, float* y, int32_t n, size_t* workspace_size,
                              uint8_t* workspace, hipStream_t stream) {
  if (workspace_size) { *workspace_size = 0; return 0; }
  hipLaunchKernelGGL(double_it, dim3((n + 255) / 256), dim3(256), 0, stream, x, y, n);
  return STATUS;
}
"""
GOOD = "if (i < n) y[i] = 2.0f * x[i];"
BODIES = {
    "good": GOOD,
    "wrong": "if (i < n) y[i] = 2.5f * x[i];",
    "forgets": "if (i < n - 1) y[i] = 2.0f * x[i];",
    "oversteps": "if (i <= n) y[i] = i < n ? 2.0f * x[i] : 0.0f;",
    "spoils": GOOD + " if (i == 3) const_cast<float*>(x)[i] = 0.0f;",
    "crashes": "*(volatile int*)8 = i;",
    "hangs": "for (volatile int spin = 1; spin; ) {}",
    "refuses": GOOD,
}


@pytest.fixture(scope="module")
def libraries(cache: CodeCache, toolchain: Toolchain) -> dict[str, str]:
    """A library for each kind of kernel."""
    made: dict[str, str] = {}
    for name, body in BODIES.items():
        source = SOURCE.replace("BODY", body).replace("NAME", name)
        source = source.replace("STATUS", "7" if name == "refuses" else "0")
        result = build(source, name, find("cpu"), toolchain, cache)
        assert isinstance(result, Build), result
        made[name] = str(result.directory / "kernel.so")
    return made


@pytest.fixture
def case() -> Case:
    """y = 2 x on a thousand numbers."""
    x = np.random.default_rng(0).standard_normal(N).astype(np.float32)
    buffers = {name: BoundBuffer(name, DType.F32, (N,), (1,)) for name in ("x", "y")}
    expected = {"y": 2.0 * x.astype(np.float64)}
    return Case(buffers, {"x": x}, expected, {"y": Tolerance(1e-6, 1e-6)}, {})


def candidate(name: str, libraries: dict[str, str]) -> BuiltCandidate:
    """The call of one kernel."""
    args = (
        TensorArg("x", "x", "f32", (N,), (1,), False),
        TensorArg("y", "y", "f32", (N,), (1,), True),
        ScalarArg("n", "i32", N),
    )
    request = BenchmarkRequest(name, name, "cpu", args, {})
    return BuiltCandidate(name, libraries[name], request)


def outcomes(case: Case, libraries: dict[str, str], *names: str) -> dict[str, Outcome]:
    """Check and time these kernels on one bench, one after the other."""
    with TemporaryDirectory() as folder, Bench("cpu", LIMITS) as bench:
        case.save(Path(folder))
        bench.use(Path(folder))
        return {name: outcome(bench, candidate(name, libraries)) for name in names}


def outcome(bench: Bench, candidate: BuiltCandidate) -> Outcome:
    """What becomes of one kernel, as in a tuner's first look."""
    limits = SHORT if candidate.key == "hangs" else LIMITS
    found = check_candidate(bench, candidate, limits)
    if isinstance(found, Rejected):
        return found
    if not found.passed:
        return wrong_result(found)
    sample = sampler(bench, {candidate.key: candidate}, limits)
    seen = screen(candidate.key, sample, PLAN, 0.0)
    if isinstance(seen, Rejected):
        return seen
    return summarise(candidate.key, "cpu", {}, seen, found, emulated=True)


@pytest.mark.full
def test_a_right_kernel_is_measured_with_every_sample_kept(
    case: Case, libraries: dict[str, str]
) -> None:
    found = outcomes(case, libraries, "good")["good"]
    assert isinstance(found, Measurement)
    assert found.check.passed
    assert found.emulated
    assert len(found.samples_ns) == PLAN.min_samples
    assert found.low_ns <= found.median_ns <= found.high_ns
    assert found.median_ns == float(np.median(found.samples_ns))


@pytest.mark.full(but=["wrong-check-wrong result"])
@pytest.mark.parametrize(
    ("kind", "stage", "says"),
    [
        ("wrong", Stage.CHECK, "wrong result"),
        ("forgets", Stage.CHECK, "wrong result"),
        ("oversteps", Stage.CHECK, "wrong result"),
        ("spoils", Stage.CHECK, "wrong result"),
        ("crashes", Stage.CRASH, "SIGSEGV, 2 times: quarantined"),
        ("hangs", Stage.TIMEOUT, "within 3 s"),
        ("refuses", Stage.RUN, "7"),
    ],
)
def test_a_bad_kernel_is_recorded_and_takes_nothing_else_along(
    kind: str, stage: Stage, says: str, case: Case, libraries: dict[str, str]
) -> None:
    found = outcomes(case, libraries, kind, "good")
    rejected = found[kind]
    assert isinstance(rejected, Rejected)
    assert rejected.stage is stage
    assert says in rejected.reason
    assert isinstance(found["good"], Measurement)


def test_a_library_that_is_not_there_is_one_clear_line(
    case: Case, libraries: dict[str, str]
) -> None:
    absent = libraries | {"good": str(Path(libraries["good"]).with_name("absent.so"))}
    rejected = outcomes(case, absent, "good")["good"]
    assert isinstance(rejected, Rejected)
    assert rejected.stage is Stage.LOAD
    assert "absent.so" in rejected.reason


def test_cancelling_ends_a_kernel_that_hangs_and_nothing_more_is_begun(
    case: Case, libraries: dict[str, str], tmp_path: Path
) -> None:
    """Without the hook this test waits for the limits: an hour."""
    patient = Limits(load_s=3600.0, check_s=3600.0, run_s=3600.0)
    cancellation = Cancellation()
    case.save(tmp_path)
    with (
        Bench("cpu", patient, cancellation) as bench,
        interrupt_on_cancel(cancellation, bench),
    ):
        bench.use(tmp_path)
        threading.Timer(0.5, cancellation.cancel).start()
        for name in ("hangs", "good"):
            with pytest.raises(Cancelled):
                check_candidate(bench, candidate(name, libraries), patient)


@pytest.mark.parametrize("kills", [1, MAX_KILLS - 1, MAX_KILLS])
def test_a_process_that_somebody_else_ended_says_nothing_of_the_candidate(
    kills: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it was ended so often that what is asked of it must be why (its memory, for one)."""
    bench = Bench("cpu", Limits())
    monkeypatch.setattr(Bench, "_opened", lambda _: None)
    calls = 0

    def step(_: object) -> str:
        nonlocal calls
        calls += 1
        if calls <= kills:
            killed = Rejected(Stage.CRASH, "killed by SIGKILL")
            raise WorkerLostError(killed, interrupted=True)
        return "answer"

    if kills < MAX_KILLS:
        assert bench._with_retries(step) == "answer"
    else:
        with pytest.raises(WorkerLostError, match=f"killed by SIGKILL, {MAX_KILLS} times"):
            bench._with_retries(step)


def test_a_killed_process_is_told_from_one_that_crashed() -> None:
    for number, interrupted in ((signal.SIGKILL, True), (signal.SIGSEGV, False)):
        with BenchmarkWorker("cpu") as worker:
            os.kill(worker._child.process.pid, number)
            with pytest.raises(WorkerLostError, match=number.name) as raised:
                worker.request(120.0, op="open")
        assert raised.value.interrupted == interrupted
