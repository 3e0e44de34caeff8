"""hip-python's real bindings against a libamdhip64.so that the test builds: no GPU needed.

hip-python opens the library once a process, so that each case runs in a process of its own.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hip import hip

from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build, Toolchain
from scheduler.runtime.device import DeviceError
from scheduler.runtime.rocm import absence_reason

HERE = Path(__file__).parent

KERNEL = """
extern "C" __global__ void axpy(const float* x, float* y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
"""
EXPORT = """
EXPORT go(const float* x, float* y, float a, int n, size_t* workspace_size, uint8_t* workspace,
          hipStream_t stream) {
  if (workspace_size) { *workspace_size = 64; return 0; }
  hipLaunchKernelGGL(axpy, dim3((n + 63) / 64), dim3(64), 0, stream, x, y, a, n);
  return hipGetLastError();
}
EXPORT refuse(hipStream_t stream) { return hipErrorOutOfMemory; }
"""
LAUNCHER = """
EXPORT launch_axpy(const uint32_t* grid, const uint32_t* block, size_t lds, void** args) {
  hipLaunchKernelGGL(axpy, dim3(grid[0], grid[1], grid[2]), dim3(block[0], block[1], block[2]),
                     lds, nullptr, *(const float**)args[0], *(float**)args[1], *(float*)args[2],
                     *(int*)args[3]);
  return hipGetLastError();
}
"""


@dataclass(frozen=True)
class Fake:
    """A folder with the library, what it is to say, and a kernel for it."""

    folder: Path
    kernel: Path
    emulated: Path

    def run(self, code: str, **environment: str) -> Any:
        """Run Python in a process that finds the library; what it prints, as JSON."""
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env={
                **os.environ,
                "LD_LIBRARY_PATH": str(self.folder),
                "FAKE_HIP_PROPERTIES": str(self.folder / "properties"),
                "FAKE_HIP_KERNELS": str(self.emulated),
                "KERNEL": str(self.kernel),
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def _properties(architecture: bytes, name: bytes) -> bytes:
    """A hipDeviceProp_t by the bindings' own layout, which has no setter for text."""
    properties = hip.hipDeviceProp_t()
    properties.multiProcessorCount = 304
    properties.totalGlobalMem = 192 * 2**30
    properties.warpSize = 64
    size = properties.c_sizeof()
    memory = (ctypes.c_char * size).from_address(properties.as_c_void_p().value)
    for place in range(size):
        before, memory[place] = memory[place], b"g"
        if properties.gcnArchName == "g":
            memory[place : place + len(architecture)] = architecture
            break
        memory[place] = before
    memory[: len(name)] = name
    assert properties.gcnArchName == architecture.decode()
    return bytes(memory)


@pytest.fixture(scope="module")
def fake(
    tmp_path_factory: pytest.TempPathFactory,
    toolchain: Toolchain,
    cache: CodeCache,
    compiled: Callable[..., Path],
) -> Fake:
    folder = tmp_path_factory.mktemp("rocm")
    environment = {
        "ZIG_GLOBAL_CACHE_DIR": str(cache.compiler_cache()),
        "ZIG_LOCAL_CACHE_DIR": str(cache.compiler_cache()),
        "PATH": "/usr/bin:/bin",
    }
    command = [*toolchain.host, "-shared", "-fPIC", "-O1", str(HERE / "fake_amdhip64.c")]
    subprocess.run(
        [*command, "-o", str(folder / "libamdhip64.so")], check=True, env=environment, timeout=120
    )
    both = _properties(b"gfx942:sramecc+:xnack-", b"AMD Instinct MI300X")
    (folder / "properties").write_bytes(both + _properties(b"gfx1100", b"Radeon"))
    made = build(
        '#include <hip/hip_runtime.h>\n#define EXPORT extern "C" __attribute__('
        '(visibility("default"))) int\n' + KERNEL + EXPORT,
        "go",
        targets.find("gfx942"),
        toolchain,
        cache,
    )
    assert isinstance(made, Build), made
    emulated = compiled(KERNEL + LAUNCHER, "launch_axpy")
    return Fake(folder, made.directory / "kernel.so", emulated)


def test_a_kernel_runs_through_the_whole_protocol(fake: Fake) -> None:
    said = fake.run("""
        import json, os
        from pathlib import Path
        import numpy as np
        from scheduler.runtime.devices import open_device
        device = open_device("rocm:0")
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
        ns = device.time([(kernel, [px, py, 1.0, 1000], 0)] * 3).total_ns
        device.read(py, y)
        twice = bool((y == 1 + 5 * x[::-1]).all())
        device.fill(py, 0xff, 4000)
        device.read(py, y)
        device.free(px)
        device.close()
        print(json.dumps([need, right, ns > 0, twice, bool(np.isnan(y).all()), pz, px % 256]))
    """)
    assert said == [64, True, True, True, True, 0, 0]


def test_each_gpu_is_listed_with_its_architecture(fake: Fake) -> None:
    said = fake.run("""
        import json
        from dataclasses import asdict
        from scheduler.runtime.devices import open_device, probe_devices
        found = [asdict(one) for one in probe_devices() if not getattr(one, "emulated", True)]
        found.append(asdict(open_device("rocm:1").info))
        print(json.dumps(found))
    """)
    assert [one["id"] for one in said] == ["rocm:0", "rocm:1", "rocm:1"]
    first = said[0]
    assert (first["target"], first["name"]) == ("gfx942", "AMD Instinct MI300X")
    assert (first["compute_units"], first["memory_bytes"]) == (304, 192 * 2**30)
    assert first["attributes"]["architecture"] == "gfx942:sramecc+:xnack-"
    assert first["attributes"]["wavefront"] == "64"
    assert first["runtime"] == "HIP 7.15.26043"
    assert said[1]["target"] == "gfx1100"


@pytest.mark.full(but=["hipMalloc-2-hipErrorOutOfMemory"])
@pytest.mark.parametrize(
    ("function", "status", "name"),
    [
        ("hipMalloc", 2, "hipErrorOutOfMemory"),
        ("hipFree", 1, "hipErrorInvalidValue"),
        ("hipMemcpyAsync", 700, "hipErrorIllegalAddress"),
        ("hipMemsetAsync", 1, "hipErrorInvalidValue"),
        ("hipStreamCreate", 3, "hipErrorNotInitialized"),
        ("hipStreamSynchronize", 719, "hipErrorLaunchFailure"),
        ("hipEventElapsedTime", 600, "hipErrorNotReady"),
        ("hipLaunchKernel", 209, "hipErrorNoBinaryForGpu"),
        ("hipMalloc", 77777, "hipErrorUnknown"),
        ("hipLaunchKernel", 77777, "hipErrorUnknown"),
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
            device = open_device("rocm:0")
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
        FAKE_HIP_FAIL=f"{function}={status}",
    )
    assert said == name


def test_what_a_kernel_function_returns_is_named(fake: Fake) -> None:
    said = fake.run("""
        import json, os
        from pathlib import Path
        from scheduler.runtime.device import DeviceError
        from scheduler.runtime.devices import open_device
        device, said = open_device("rocm:0"), []
        for symbol in ("refuse", "missing"):
            try:
                device.load(Path(os.environ["KERNEL"]), symbol, [])([])
            except DeviceError as error:
                said.append(str(error))
        print(json.dumps(said))
    """)
    assert said[0] == "hipErrorOutOfMemory: out of memory"
    assert said[1].startswith("hipErrorSharedObjectSymbolNotFound: kernel.so exports no function")


PROBE = """
    import json
    from dataclasses import asdict
    from scheduler.runtime.device import AbsentDevice, DeviceError
    from scheduler.runtime.devices import open_device, probe_devices
    absent = [asdict(one) for one in probe_devices() if isinstance(one, AbsentDevice)]
    absent = [one for one in absent if one["kind"] == "rocm"]
    try:
        open_device("rocm:0")
    except DeviceError as error:
        absent.append(str(error))
    print(json.dumps(absent))
"""


def test_no_library_is_one_clear_line(fake: Fake, tmp_path: Path) -> None:
    (absent, error) = fake.run(PROBE, LD_LIBRARY_PATH=str(tmp_path))
    assert absent["kind"] == "rocm"
    assert absent["reason"].startswith("ROCm's runtime is not installed, or not usable: ")
    assert "libamdhip64.so" in absent["reason"]
    assert "\n" not in absent["reason"]
    assert absent["reason"] in error


def test_no_gpu_is_one_clear_line(fake: Fake, tmp_path: Path) -> None:
    (tmp_path / "none").touch()
    (absent, error) = fake.run(PROBE, FAKE_HIP_PROPERTIES=str(tmp_path / "none"))
    assert "\n" not in absent["reason"]
    assert error == f"hipErrorNoDevice: {absent['reason']}"


def test_a_gpu_that_is_not_there_is_named(fake: Fake) -> None:
    said = fake.run("""
        import json
        from scheduler.runtime.device import DeviceError
        from scheduler.runtime.devices import open_device
        try:
            open_device("rocm:7")
        except DeviceError as error:
            print(json.dumps(error.status))
    """)
    assert said == "hipErrorInvalidDevice"


def test_the_reason_for_no_device_says_what_to_do(tmp_path: Path) -> None:
    error = DeviceError("hipErrorNoDevice", "no ROCm-capable device is detected")
    missing = tmp_path / "kfd"
    assert absence_reason(error, missing) == (
        f"no AMD GPU: {missing} does not exist (is the amdgpu driver loaded?)"
    )
    missing.touch()
    assert absence_reason(error, missing) == "no GPU that ROCm supports (hipErrorNoDevice)"
    other = DeviceError("hipErrorOutOfMemory", "out of memory")
    assert absence_reason(other, missing) == "out of memory"


def test_no_permission_names_the_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = tmp_path / "kfd"
    driver.touch()
    # Root may open anything, so that permissions alone cannot show it.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    said = absence_reason(DeviceError("hipErrorNoDevice", "no device"), driver)
    assert said.startswith(f"no permission for {driver}: add this user to the group ")
