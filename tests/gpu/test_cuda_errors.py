"""What goes wrong on a real GPU, each in a worker process that takes nothing else along: the error
has the driver's name, and the next kernel is right."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.case import Case
from scheduler.benchmark.measure import Bench, Limits, check_candidate, sampler
from scheduler.benchmark.measurement import Check
from scheduler.benchmark.tolerance import Tolerance
from scheduler.benchmark.worker import BenchmarkWorker, WorkerLostError
from scheduler.build.compile import build
from scheduler.build.cuda.toolchains import CudaToolchain, cuda_compilers
from scheduler.build.model import Build
from scheduler.build.toolchains import Search
from scheduler.codegen.benchmark_request import BenchmarkRequest, ScalarArg, TensorArg
from scheduler.errors import Rejected, Stage
from scheduler.ir.dtypes import DType
from scheduler.ir.storage import BoundBuffer
from scheduler.runtime.cuda import CudaDevice
from scheduler.runtime.device import DeviceError, DeviceInfo, Timing
from scheduler.targets import Target
from tests.gpu.running import PREAMBLE
from tests.support.caches import KEPT

pytestmark = pytest.mark.gpu

N = 1000
LIMITS = Limits(load_s=60.0, check_s=5.0, run_s=5.0)
SOURCE = """
__global__ void __launch_bounds__(1024) double_it(const float* x, float* y, int32_t n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  BODY
}
EXPORT go(const float* x, float* y, int32_t n, size_t* workspace_size, uint8_t*,
          hipStream_t stream) {
  if (workspace_size) { *workspace_size = 0; return 0; }
  hipLaunchKernelGGL(double_it, LAUNCH, stream, x, y, n);
  return hipGetLastError();
}
"""
GOOD, USUAL = "if (i < n) y[i] = 2.0f * x[i];", "dim3((n + 255) / 256), dim3(256), 0"
# As many values as a thread can hold, all alive at once: with 1024 threads more registers than the
# SM has. Launch bounds would have the assembler spill instead.
MANY = """
  float v[200];
#pragma unroll
  for (int j = 0; j < 200; ++j) v[j] = x[i + j * n];
  __syncthreads();
#pragma unroll
  for (int j = 0; j < 200; ++j) y[i + j * n] = v[j] * v[199 - j];
"""


def _source(body: str = GOOD, launch: str = USUAL, bounds: str = "__launch_bounds__(1024)") -> str:
    source = SOURCE.replace("BODY", body).replace("LAUNCH", launch)
    return source.replace("__launch_bounds__(1024)", bounds)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """y = 2 x on a thousand numbers, saved."""
    x = np.random.default_rng(0).standard_normal(N).astype(np.float32)
    buffers = {name: BoundBuffer(name, DType.F32, (N,), (1,)) for name in ("x", "y")}
    expected = {"y": 2.0 * x.astype(np.float64)}
    folder = tmp_path_factory.mktemp("case")
    Case(buffers, {"x": x}, expected, {"y": Tolerance(1e-6, 1e-6)}, {}).save(folder)
    return folder


@pytest.fixture(scope="module")
def built(compiled: Callable[[str, str], Build]) -> Callable[..., BuiltCandidate]:
    """``built(key, body, launch, bounds)``: the call of such a kernel."""

    def make(key: str, *parts: str) -> BuiltCandidate:
        args = (
            TensorArg("x", "x", "f32", (N,), (1,), False),
            TensorArg("y", "y", "f32", (N,), (1,), True),
            ScalarArg("n", "i32", N),
        )
        made = compiled(_source(*parts), "go")
        request = BenchmarkRequest(key, "go", made.target, args, {})
        return BuiltCandidate(key, str(made.directory / "kernel.so"), request)

    return make


@pytest.mark.parametrize(
    ("parts", "stage", "says"),
    [
        (("*(volatile int*)8 = i;",), Stage.RUN, "CUDA_ERROR_ILLEGAL_ADDRESS"),
        (("while (((volatile const float*)x)[0] < 1e30f) {}",), Stage.TIMEOUT, "within 5 s"),
        ((GOOD, "dim3(1), dim3(2048), 0"), Stage.RUN, "CUDA_ERROR_INVALID_VALUE"),
        ((GOOD, "dim3(1, 70000), dim3(32), 0"), Stage.RUN, "CUDA_ERROR_INVALID_VALUE"),
        ((GOOD, "dim3(4), dim3(256), 300 << 10"), Stage.RUN, "CUDA_ERROR_INVALID_VALUE"),
        (
            (MANY, "dim3(1), dim3(1024), 0", ""),
            Stage.RUN,
            "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        ),
        (("if (i < n) y[i] = 2.5f * x[i];",), None, ""),
        (("if (i <= n) y[i] = i < n ? 2.0f * x[i] : 0.0f;",), None, ""),
    ],
    ids=[
        *("illegal address", "hang", "block too large", "grid too large"),
        *("too much shared memory", "too many registers", "wrong", "oversteps"),
    ],
)
def test_a_bad_kernel_is_named_and_takes_nothing_else_along(
    parts: tuple[str, ...],
    stage: Stage | None,
    says: str,
    nvidia: DeviceInfo,
    case: Path,
    built: Callable[..., BuiltCandidate],
    say: Callable[[str], None],
) -> None:
    with Bench(nvidia.id, LIMITS) as bench:
        bench.use(case)
        bad = check_candidate(bench, built("bad", *parts), LIMITS)
        good = check_candidate(bench, built("good"), LIMITS)
    if stage is None:
        assert isinstance(bad, Check) and not bad.passed, bad
        say(bad.detail)
    else:
        say(f"{getattr(bad, 'stage', '')}: {getattr(bad, 'reason', bad)}")
        assert isinstance(bad, Rejected), bad
        assert (bad.stage, says in bad.reason) == (stage, True), bad
    assert isinstance(good, Check) and good.passed, good


def test_more_memory_than_there_is_is_out_of_memory(
    nvidia: DeviceInfo, tmp_path: Path, say: Callable[[str], None]
) -> None:
    """Asked for at once, so that none is taken from whoever else uses the GPU."""
    elements = nvidia.memory_bytes  # of four bytes each
    buffers = {"x": BoundBuffer("x", DType.F32, (elements,), (1,))}
    Case(buffers, {}, {}, {}, {}).save(tmp_path)
    with BenchmarkWorker(nvidia.id) as worker, pytest.raises(WorkerLostError) as lost:
        worker.open(tmp_path)
    assert "CUDA_ERROR_OUT_OF_MEMORY" in lost.value.rejected.reason, lost.value.rejected
    say(lost.value.rejected.reason)


def test_two_processes_use_the_gpu_at_once(
    nvidia: DeviceInfo,
    case: Path,
    built: Callable[..., BuiltCandidate],
    say: Callable[[str], None],
) -> None:
    good, wrong = built("good"), built("wrong", "if (i < n) y[i] = 2.5f * x[i];")
    with Bench(nvidia.id, LIMITS) as first, Bench(nvidia.id, LIMITS) as second:
        first.use(case)
        second.use(case)
        for _ in range(3):  # in turn, both open
            ours, theirs = (
                check_candidate(first, good, LIMITS),
                check_candidate(second, wrong, LIMITS),
            )
            assert isinstance(ours, Check) and ours.passed, ours
            assert isinstance(theirs, Check) and not theirs.passed, theirs
    say("both were open, one's kernels right and the other's wrong, three times in turn")


def test_a_driver_that_is_too_old_for_the_code_says_what_to_do(
    device: CudaDevice, target: Target, tmp_path: Path, say: Callable[[str], None]
) -> None:
    """Simulated by PTX of a version that no driver has: the library holds its text."""
    clang = cuda_compilers(Search(cache=KEPT))[-1]
    assert isinstance(clang, CudaToolchain) and not clang.ptxas
    made = build(PREAMBLE + _source(), "go", target, clang, KEPT)
    assert isinstance(made, Build), made
    library = tmp_path / "kernel.so"
    code = (made.directory / "kernel.so").read_bytes()
    (version,) = set(re.findall(rb"\.version \d\.\d", code))
    library.write_bytes(code.replace(version, b".version 9.9"))
    kernel = device.load(library, "go", ["ptr", "ptr", "i32"])
    with pytest.raises(DeviceError) as error:
        kernel([0, 0, N])
    assert error.value.status == "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
    assert "the driver is older than the PTX: update it" in error.value.message
    say(str(error.value))


def test_a_right_kernel_is_timed_with_readings(
    nvidia: DeviceInfo, case: Path, built: Callable[..., BuiltCandidate]
) -> None:
    good = built("good")
    with Bench(nvidia.id, LIMITS) as bench:
        bench.use(case)
        timing = sampler(bench, {"good": good}, LIMITS)("good", 100)
    assert isinstance(timing, Timing), timing
    assert timing.total_ns > 0
    if nvidia.attributes["readings"].startswith("none"):
        pytest.skip(f"readings: {nvidia.attributes['readings']}")
    assert timing.readings["sm_clock_mhz"] > 0, "the worker's fence keeps NVML out"
