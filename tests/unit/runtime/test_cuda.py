"""NVIDIA's real bindings against a driver library that the test builds: no GPU needed.

The bindings open the library once a process, so that each case runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler import targets
from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.case import Case
from scheduler.benchmark.measure import Bench, Limits, check_candidate
from scheduler.benchmark.measurement import Check
from scheduler.benchmark.tolerance import Tolerance
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.cuda.toolchains import cuda_compilers
from scheduler.build.model import Build, Toolchain
from scheduler.build.toolchains import Search
from scheduler.codegen.benchmark_request import BenchmarkRequest, ScalarArg, TensorArg
from scheduler.ir.dtypes import DType
from scheduler.ir.storage import BoundBuffer
from scheduler.targets.generations import target_for
from tests.unit.runtime.test_rocm import EXPORT, KERNEL, LAUNCHER

HERE = Path(__file__).parent
N = 1000

TWICE = """
extern "C" __global__ void twice_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}
"""
TWICE_EXPORT = """
EXPORT twice(const float* x, float* y, int n, size_t* workspace_size, uint8_t*,
             hipStream_t stream) {
  if (workspace_size) { *workspace_size = 0; return 0; }
  hipLaunchKernelGGL(twice_kernel, dim3((n + 63) / 64), dim3(64), 0, stream, x, y, n);
  return hipGetLastError();
}
"""
TWICE_LAUNCHER = """
EXPORT launch_twice_kernel(const uint32_t* grid, const uint32_t* block, size_t lds, void** args) {
  hipLaunchKernelGGL(twice_kernel, dim3(grid[0]), dim3(block[0]), lds, nullptr,
                     *(const float**)args[0], *(float**)args[1], *(int*)args[2]);
  return hipGetLastError();
}
"""
# More kernels than any template has: their k-th adds k to y[k], and all are launched one after
# the other.
MANY = 40
MANY_KERNELS = "".join(
    f'extern "C" __global__ void many{k}_kernel(float* y) {{ y[{k}] += {k}.0f; }}\n'
    for k in range(MANY)
)
MANY_EXPORT = (
    "EXPORT many(float* y, size_t* workspace_size, uint8_t*, hipStream_t stream) {\n"
    "  if (workspace_size) { *workspace_size = 0; return 0; }\n"
    + "".join(
        f"  hipLaunchKernelGGL(many{k}_kernel, dim3(1), dim3(1), 0, stream, y);\n"
        f"  if (int status = hipGetLastError()) return status;\n"
        for k in range(MANY)
    )
    + "  return 0;\n}\n"
)
MANY_LAUNCHERS = "".join(
    f"EXPORT launch_many{k}_kernel(const uint32_t*, const uint32_t*, size_t, void** args) {{\n"
    f"  hipLaunchKernelGGL(many{k}_kernel, dim3(1), dim3(1), 0, nullptr, *(float**)args[0]);\n"
    "  return hipGetLastError();\n}\n"
    for k in range(MANY)
)


@dataclass(frozen=True)
class Fake:
    """A folder with the libraries, a kernel for them, and what they launch for it."""

    folder: Path
    kernel: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            "LD_LIBRARY_PATH": str(self.folder),
            "CUDA_FAKE_GPUS": "90 87 103",
            "CUDA_FAKE_KERNELS": str(self.folder / "kernels.so"),
            "KERNEL": str(self.kernel),
        }

    def run(self, code: str, **environment: str) -> Any:
        """Run Python in a process that finds the libraries; what it prints, as JSON."""
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env={**os.environ, **self.environment, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def fake(
    tmp_path_factory: pytest.TempPathFactory,
    toolchain: Toolchain,
    cache: CodeCache,
    compiled: Callable[..., Path],
) -> Fake:
    folder = tmp_path_factory.mktemp("cuda")
    environment = {
        "ZIG_GLOBAL_CACHE_DIR": str(cache.compiler_cache()),
        "ZIG_LOCAL_CACHE_DIR": str(cache.compiler_cache()),
        "PATH": "/usr/bin:/bin",
    }
    for source, library in (("fake_cuda.c", "libcuda.so.1"), ("fake_nvml.c", "libnvidia-ml.so.1")):
        command = [*toolchain.host, "-shared", "-fPIC", "-O1", str(HERE / source), "-o"]
        command += [str(folder / library), f"-Wl,-soname,{library}"]
        subprocess.run(command, check=True, env=environment, timeout=120)
    ptx = cuda_compilers(Search(cache=cache))[-1]
    assert isinstance(ptx, Toolchain), ptx
    source = (
        '#include <hip/hip_runtime.h>\n#define EXPORT extern "C" __attribute__('
        '(visibility("default"))) int\n'
    )
    made = build(
        source
        + KERNEL
        + TWICE
        + MANY_KERNELS
        + EXPORT.replace("hipErrorOutOfMemory", "2")
        + TWICE_EXPORT
        + MANY_EXPORT,
        "go",
        targets.find("sm_90"),
        ptx,
        cache,
    )
    assert isinstance(made, Build), made
    kernels = compiled(
        KERNEL + TWICE + MANY_KERNELS + LAUNCHER + TWICE_LAUNCHER + MANY_LAUNCHERS, "launch_axpy"
    )
    shutil.copy(kernels, folder / "kernels.so")
    return Fake(folder, made.directory / "kernel.so")


@pytest.mark.full
def test_a_kernel_runs_through_the_whole_protocol(fake: Fake) -> None:
    said = fake.run("""
        import ctypes, json, os
        from pathlib import Path
        import numpy as np
        from scheduler.runtime.devices import open_device
        device = open_device("cuda:0")
        x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
        px, py, pz = device.allocate(4000), device.allocate(4000), device.allocate(0)
        device.write(px, x[::-1])
        device.write(py, y)
        kernel = device.load(Path(os.environ["KERNEL"]), "go", ["ptr", "ptr", "f32", "i32"])
        need = kernel.workspace_bytes([px, py, 2.0, 1000])
        kernel([px, py, 2.0, 1000])
        device.synchronize()
        device.read(py, y)
        right = bool((y == 1 + 2 * x[::-1]).all())
        timing = device.time([(kernel, [px, py, 1.0, 1000], 0)] * 3)
        device.read(py, y)
        twice = bool((y == 1 + 5 * x[::-1]).all())
        device.fill(py, 0xff, 4000)
        device.read(py, y)
        device.free(px)
        device.free(pz)
        device.close()
        unloaded = ctypes.CDLL("libcuda.so.1").fake_unloaded()
        print(json.dumps([need, right, timing.total_ns > 0, twice, bool(np.isnan(y).all()), pz,
                          px % 256, unloaded, timing.readings]))
    """)
    readings = {
        "sm_clock_mhz": 1500.0,
        "memory_clock_mhz": 2600.0,
        "throttled_power": 1.0,
        "throttled_thermal": 0.0,
        "throttled_hardware": 0.0,
    }
    assert said == [64, True, True, True, True, 0, 0, 1, readings]


def test_a_library_may_have_any_number_of_kernels(fake: Fake) -> None:
    said = fake.run("""
        import json, os
        from pathlib import Path
        import numpy as np
        from scheduler.runtime.devices import open_device
        device = open_device("cuda:0")
        y = np.zeros(40, np.float32)
        p = device.allocate(160)
        device.write(p, y)
        kernel = device.load(Path(os.environ["KERNEL"]), "many", ["ptr"])
        kernel([p])
        kernel([p])
        device.synchronize()
        device.read(p, y)
        print(json.dumps(y.tolist()))
    """)
    assert said == [2.0 * k for k in range(MANY)]


@pytest.mark.full(but=["1000-True"])
@pytest.mark.parametrize(("written", "passed"), [(N, True), (N + 1, False)])
def test_the_worker_guards_and_judges_what_a_kernel_writes(
    fake: Fake, written: int, passed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guard bands, poison and gate, in a process behind the fence: one element too many shows."""
    for name, value in fake.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", str(fake.folder))  # which the fence lets it read
    x = np.arange(N, dtype=np.float32)
    buffers = {name: BoundBuffer(name, DType.F32, (N,), (1,)) for name in ("x", "y")}
    case = Case(buffers, {"x": x}, {"y": 2.0 * x}, {"y": Tolerance(1e-6, 1e-6)}, {})
    case.save(tmp_path)
    args = (
        TensorArg("x", "x", "f32", (N,), (1,), False),
        TensorArg("y", "y", "f32", (N,), (1,), True),
        ScalarArg("n", "i32", written),
    )
    request = BenchmarkRequest("twice", "twice", "sm_90", args, {})
    with Bench("cuda:0", Limits()) as bench:
        bench.use(tmp_path)
        found = check_candidate(bench, BuiltCandidate("twice", str(fake.kernel), request), Limits())
    assert isinstance(found, Check), found
    assert found.passed is passed
    assert ("y" in found.detail) is not passed


PROBE = """
    import json
    from dataclasses import asdict
    from scheduler.runtime.cuda import DEVICES
    print(json.dumps([asdict(one) for one in DEVICES.probe()]))
"""


def test_each_gpu_is_listed_with_what_is_compiled_for_it(fake: Fake) -> None:
    first, second, third = fake.run(PROBE)
    assert (first["id"], first["target"], first["name"]) == ("cuda:0", "sm_90", "NVIDIA Fake 90")
    assert (first["compute_units"], first["memory_bytes"]) == (132, 80 << 30)
    assert (first["driver"], first["runtime"]) == ("NVIDIA 595.71.05", "CUDA 13.2")
    assert first["attributes"]["readings"] == "clocks and throttling, by NVML"
    shown = [(one["attributes"]["architecture"], one["target"]) for one in (second, third)]
    assert shown == [("sm_87", "sm_86"), ("sm_103", "sm_100")]
    assert [one["attributes"]["target"] for one in (second, third)] == ["sm_86", "sm_100"]


def test_a_driver_whose_version_is_not_said_is_named_by_its_cuda(fake: Fake) -> None:
    first = fake.run(PROBE, CUDA_FAKE_NVML_FAIL="nvmlSystemGetDriverVersion=999")[0]
    assert first["driver"] == "CUDA driver 13.2"
    assert first["attributes"]["readings"] == "clocks and throttling, by NVML"


@pytest.mark.parametrize(
    ("capability", "target"),
    [
        (75, None),
        (80, "sm_80"),
        (86, "sm_86"),
        (87, "sm_86"),
        (89, "sm_89"),
        (90, "sm_90"),
        (100, "sm_100"),
        (103, "sm_100"),
        (110, None),
        (120, "sm_120"),
        (121, "sm_120"),
    ],
)
def test_a_gpu_takes_code_of_its_own_generation_and_of_none_newer(
    capability: int, target: str | None
) -> None:
    found = target_for(capability)
    assert (found.name if found else None) == target


def test_a_gpu_that_nothing_is_compiled_for_is_one_clear_line_beside_the_others(fake: Fake) -> None:
    old, usable = fake.run(PROBE, CUDA_FAKE_GPUS="75 90")
    assert old == {
        "kind": "cuda",
        "reason": "cuda:0 (NVIDIA Fake 75) is sm_75, not one of sm_80, sm_86, sm_89, sm_90,"
        " sm_100, sm_120",
    }
    assert usable["id"] == "cuda:1"


@pytest.mark.full
@pytest.mark.parametrize(
    ("function", "status", "name"),
    [
        ("cuInit", 803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
        ("cuDevicePrimaryCtxRetain", 2, "CUDA_ERROR_OUT_OF_MEMORY"),
        ("cuMemAlloc_v2", 2, "CUDA_ERROR_OUT_OF_MEMORY"),
        ("cuMemFree_v2", 1, "CUDA_ERROR_INVALID_VALUE"),
        ("cuMemcpyHtoD_v2", 700, "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("cuMemsetD8Async", 1, "CUDA_ERROR_INVALID_VALUE"),
        ("cuStreamCreate", 3, "CUDA_ERROR_NOT_INITIALIZED"),
        ("cuStreamSynchronize", 719, "CUDA_ERROR_LAUNCH_FAILED"),
        ("cuEventElapsedTime_v2", 600, "CUDA_ERROR_NOT_READY"),
        ("cuModuleLoadData", 222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
        ("cuModuleLoadData", 209, "CUDA_ERROR_NO_BINARY_FOR_GPU"),
        ("cuLaunchKernel", 701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
        ("cuLaunchKernel", 77777, "CUDA_ERROR_UNKNOWN"),
        ("cuMemAlloc_v2", 77777, "CUDA_ERROR_UNKNOWN"),
    ],
)
def test_every_status_becomes_an_error_with_its_name(
    fake: Fake, function: str, status: int, name: str
) -> None:
    said = fake.run(
        """
        import json, os
        from pathlib import Path
        import numpy as np
        from scheduler.runtime.device import DeviceError
        from scheduler.runtime.devices import open_device
        y = np.zeros(4, np.float32)
        try:
            device = open_device("cuda:0")
            p = device.allocate(4096)
            device.fill(p, 0, 16)
            device.write(p, y)
            kernel = device.load(Path(os.environ["KERNEL"]), "go", ["ptr", "ptr", "f32", "i32"])
            device.time([(kernel, [p, p, 1.0, 4], 0)])
            device.synchronize()
            device.free(p)
            print(json.dumps("no error"))
        except DeviceError as error:
            print(json.dumps(error.status))
        """,
        CUDA_FAKE_FAIL=f"{function}={status}",
    )
    assert said == name


def test_what_a_kernel_function_returns_is_named(fake: Fake) -> None:
    said = fake.run("""
        import json, os
        from pathlib import Path
        from scheduler.runtime.device import DeviceError
        from scheduler.runtime.devices import open_device
        device, said = open_device("cuda:0"), []
        for file, symbol in (("kernel.so", "refuse"), ("kernel.so", "missing"), ("none", "go")):
            try:
                device.load(Path(os.environ["KERNEL"]).with_name(file), symbol, [])([])
            except DeviceError as error:
                said.append(str(error))
        print(json.dumps(said))
    """)
    refused, missing, unopened = said
    assert refused == "CUDA_ERROR_OUT_OF_MEMORY: out of memory"
    assert missing.startswith(
        "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND: kernel.so exports no function 'missing'"
    )
    assert unopened.startswith("CUDA_ERROR_SHARED_OBJECT_INIT_FAILED: ")


OPEN = """
    import json
    from dataclasses import asdict
    from scheduler.runtime.cuda import DEVICES
    from scheduler.runtime.device import AbsentDevice, DeviceError
    from scheduler.runtime.devices import open_device
    absent = [one.reason for one in DEVICES.probe() if isinstance(one, AbsentDevice)]
    try:
        open_device("cuda:0")
    except DeviceError as error:
        absent.append(str(error))
    print(json.dumps(absent))
"""


@pytest.mark.full(but=["no GPU"])
@pytest.mark.parametrize(
    ("environment", "status", "reason"),
    [
        ({"CUDA_FAKE_GPUS": ""}, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"),
        (
            {"CUDA_FAKE_FAIL": "cuInit=803"},
            "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
            "system has unsupported display driver / cuda driver combination",
        ),
        (
            {"LD_LIBRARY_PATH": "/nowhere"},
            "CUDA_ERROR_NO_DEVICE",
            "NVIDIA's driver is not installed, or not usable: ",
        ),
        (
            {"CUDA_FAKE_LACKS": "cuDevicePrimaryCtxRetain"},
            "CUDA_ERROR_NO_DEVICE",
            "NVIDIA's driver is not installed, or not usable: ",
        ),
    ],
    ids=["no GPU", "driver mismatch", "no driver", "driver too old"],
)
def test_why_there_is_no_gpu_is_one_clear_line(
    fake: Fake, environment: dict[str, str], status: str, reason: str
) -> None:
    *absent, error = fake.run(OPEN, **environment)
    assert "\n" not in error
    assert error.startswith(f"{status}: {reason}")
    if absent:  # a driver that lacks a function is known by its GPUs until that is called
        assert error == f"{status}: {absent[0]}"


def test_ptx_that_is_newer_than_the_driver_says_what_to_do(fake: Fake) -> None:
    """A driver that is too old is met only here: it has all functions, and knows the GPU."""
    said = fake.run(
        """
        import json, os
        from pathlib import Path
        from scheduler.runtime.device import DeviceError
        from scheduler.runtime.devices import open_device
        device = open_device("cuda:0")
        p = device.allocate(4096)
        kernel = device.load(Path(os.environ["KERNEL"]), "go", ["ptr", "ptr", "f32", "i32"])
        try:
            device.time([(kernel, [p, p, 1.0, 4], 0)])
        except DeviceError as error:
            print(json.dumps(str(error)))
        """,
        CUDA_FAKE_FAIL="cuModuleLoadData=222",
    )
    assert said.startswith("CUDA_ERROR_UNSUPPORTED_PTX_VERSION: ")
    assert "the driver is older than the PTX: update it, or" in said
    assert "\n" not in said


def test_no_package_names_the_extra(fake: Fake) -> None:
    without = "import sys\nsys.modules['cuda.bindings'] = None\n"
    absent, error = fake.run(without + textwrap.dedent(OPEN))
    assert absent == "the Python package cuda-bindings is not installed: pip install 'kiln[nvidia]'"
    assert error == f"CUDA_ERROR_NOT_FOUND: {absent}"


def test_a_gpu_that_is_not_there_is_named(fake: Fake) -> None:
    said = fake.run("""
        import json
        from scheduler.runtime.device import DeviceError
        from scheduler.runtime.devices import open_device
        try:
            open_device("cuda:7")
        except DeviceError as error:
            print(json.dumps(error.status))
    """)
    assert said == "CUDA_ERROR_INVALID_DEVICE"


@pytest.mark.parametrize(
    ("failing", "said"),
    [
        ("nvmlInit_v2=9", "none: NVML (libnvidia-ml.so.1) is not installed, or not usable: "),
        ("nvmlDeviceGetHandleByPciBusId_v2=6", "none: NVML does not know the GPU at 0000:01:00.0"),
        ("nvmlDeviceGetCurrentClocksEventReasons=3", "none: NVML does not read this GPU: "),
    ],
)
def test_without_nvml_there_are_no_readings_and_the_device_says_so(
    fake: Fake, failing: str, said: str
) -> None:
    attribute, readings = fake.run(
        """
        import json
        from scheduler.runtime.devices import open_device
        device = open_device("cuda:0")
        print(json.dumps([device.info.attributes["readings"], device.time([]).readings]))
        """,
        CUDA_FAKE_NVML_FAIL=failing,
    )
    assert attribute.startswith(said)
    assert "\n" not in attribute
    assert readings == {}


def test_the_list_of_devices_says_what_a_gpu_lacks_and_whose_code_it_takes(fake: Fake) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scheduler", "devices"],
        env={**os.environ, **fake.environment, "CUDA_FAKE_NVML_FAIL": "nvmlInit_v2=9"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    own, other = (
        next(line for line in done.stdout.splitlines() if line.startswith(device))
        for device in ("cuda:0", "cuda:1")
    )
    assert "NVIDIA Fake 90; readings: none: NVML" in own
    assert "runs code for" not in own
    assert "NVIDIA Fake 87; sm_87, which runs code for sm_86; readings: none" in other
