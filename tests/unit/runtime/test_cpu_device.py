"""The device protocol on CPU emulation: memory, loading, arguments, timing, faults."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from scheduler import targets
from scheduler.errors import UserError
from scheduler.runtime.cpu import CpuDevice
from scheduler.runtime.device import AbsentDevice, Device, DeviceError, DeviceInfo
from scheduler.runtime.devices import open_device, probe_devices

SOURCE = """
__global__ void add(const float* x, double* y, int64_t wide, int narrow, float f, double d) {
  y[0] = x[0]; y[1] = wide; y[2] = narrow; y[3] = f; y[4] = d;
}
EXPORT go(const float* x, double* y, int64_t wide, int narrow, float f, double d,
          size_t* workspace_size, uint8_t* workspace, hipStream_t stream) {
  if (workspace_size) { *workspace_size = narrow * 8; return 0; }
  if (narrow < 0) return 1;
  if (workspace) workspace[0] = 42;
  hipLaunchKernelGGL(add, dim3(1), dim3(1), 0, stream, x, y, wide, narrow, f, d);
  return hipGetLastError();
}
EXPORT odd(size_t*, uint8_t*, hipStream_t) { return 1234; }
"""
TYPES = ["ptr", "ptr", "i64", "i32", "f32", "f64"]


@pytest.fixture
def device() -> Iterator[CpuDevice]:
    opened = CpuDevice(targets.find("cpu"), threads=1)
    yield opened
    opened.close()


@pytest.fixture
def library(compiled: Callable[..., Path]) -> Path:
    return compiled(SOURCE, "go")


def test_memory_is_aligned_and_0_bytes_are_a_null_pointer(device: CpuDevice) -> None:
    pointers = [device.allocate(nbytes) for nbytes in (1, 255, 256, 257, 1_000_003)]
    assert all(pointer % 256 == 0 for pointer in pointers)
    assert len(set(pointers)) == 5
    assert device.allocate(0) == 0
    device.free(0)
    for pointer in pointers:
        device.free(pointer)


def test_what_is_written_is_read_and_guards_around_it_stay(device: CpuDevice) -> None:
    base = device.allocate(3000)
    device.fill(base, 0x5A, 3000)
    data = np.arange(500, dtype=np.int16)
    device.write(base + 1000, data)
    out = np.zeros(500, np.int16)
    device.read(base + 1000, out)
    np.testing.assert_array_equal(out, data)
    whole = np.zeros(3000, np.uint8)
    device.read(base, whole)
    assert (whole[:1000] == 0x5A).all()
    assert (whole[2000:] == 0x5A).all()


def test_an_array_that_is_not_contiguous_is_written_in_its_order(device: CpuDevice) -> None:
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    pointer = device.allocate(48)
    device.write(pointer, data.T)
    out = np.zeros((4, 3), np.float32)
    device.read(pointer, out)
    np.testing.assert_array_equal(out, data.T)
    with pytest.raises(ValueError, match="contiguous"):
        device.read(pointer, np.zeros((3, 4), np.float32).T)


def test_copies_outside_of_an_allocation_are_rejected(device: CpuDevice) -> None:
    pointer = device.allocate(64)
    for start, nbytes in ((pointer, 65), (pointer + 60, 8), (pointer - 4, 8), (0, 1), (1 << 40, 1)):
        with pytest.raises(DeviceError) as caught:
            device.write(start, np.zeros(nbytes, np.uint8))
        assert caught.value.status == "hipErrorInvalidValue"
    device.free(pointer)
    with pytest.raises(DeviceError):
        device.fill(pointer, 0, 1)
    with pytest.raises(DeviceError, match="was not allocated here"):
        device.free(pointer)


def test_more_memory_than_there_is_is_an_error_with_its_name(device: CpuDevice) -> None:
    with pytest.raises(DeviceError) as caught:
        device.allocate(1 << 60)
    assert caught.value.status == "hipErrorOutOfMemory"


def test_arguments_of_every_type_arrive(device: CpuDevice, library: Path) -> None:
    kernel = device.load(library, "go", TYPES)
    x, y, workspace = device.allocate(4), device.allocate(40), device.allocate(8)
    device.write(x, np.array([0.5], np.float32))
    args = [x, y, 2**62 + 1, 7, 0.1, 0.1]
    assert kernel.workspace_bytes(args) == 56
    kernel(args, workspace)
    out, mark = np.zeros(5), np.zeros(1, np.uint8)
    device.read(y, out)
    device.read(workspace, mark)
    assert out.tolist() == [0.5, float(2**62), 7, float(np.float32(0.1)), 0.1]
    assert mark[0] == 42


@pytest.mark.parametrize(
    ("place", "value"), [(3, 2**31), (3, -(2**31) - 1), (2, 2**63), (0, -1), (3, 0.5)]
)
def test_a_number_that_does_not_fit_is_rejected_not_cut(
    device: CpuDevice, library: Path, place: int, value: float
) -> None:
    args: list[int | float] = [0, 0, 0, 0, 0.0, 0.0]
    args[place] = value
    with pytest.raises(ValueError, match="does not fit"):
        device.load(library, "go", TYPES)(args)


def test_a_wrong_number_of_arguments_is_rejected(device: CpuDevice, library: Path) -> None:
    with pytest.raises(ValueError, match="takes 6 arguments, not 1"):
        device.load(library, "go", TYPES)([0])
    with pytest.raises(ValueError, match="f16"):
        device.load(library, "go", ["f16"])


def test_what_a_function_returns_is_an_error(device: CpuDevice, library: Path) -> None:
    with pytest.raises(DeviceError, match=r"returned 1$") as caught:
        device.load(library, "go", TYPES)([0, 0, 0, -1, 0.0, 0.0])
    assert caught.value.status == "hipErrorInvalidValue"
    with pytest.raises(DeviceError, match="returned 1234") as caught:
        device.load(library, "odd", [])([])
    assert caught.value.status == "hipErrorUnknown"


def test_a_library_that_is_not_one_is_named(device: CpuDevice, tmp_path: Path) -> None:
    (tmp_path / "kernel.so").write_bytes(b"not a library")
    with pytest.raises(DeviceError, match=r"kernel\.so"):
        device.load(tmp_path / "kernel.so", "go", [])
    with pytest.raises(DeviceError, match=r"missing\.so"):
        device.load(tmp_path / "missing.so", "go", [])


def test_a_function_that_is_not_there_is_named(device: CpuDevice, library: Path) -> None:
    with pytest.raises(DeviceError, match="exports no function 'come'"):
        device.load(library, "come", [])


def test_time_is_of_all_launches(device: CpuDevice, compiled: Callable[..., Path]) -> None:
    counting = """
    __global__ void count(int* out) { out[0] += 1; }
    EXPORT go(int* out, size_t*, uint8_t*, hipStream_t stream) {
      hipLaunchKernelGGL(count, dim3(1), dim3(1), 0, stream, out);
      return hipGetLastError();
    }
    """
    kernel = device.load(compiled(counting, "go"), "go", ["ptr"])
    pointer = device.allocate(4)
    device.fill(pointer, 0, 4)
    assert device.time([(kernel, [pointer], 0)] * 7).total_ns > 0
    out = np.zeros(1, np.int32)
    device.read(pointer, out)
    assert out[0] == 7


def test_a_device_opens_again_after_it_was_closed(library: Path) -> None:
    for _ in range(3):
        device = open_device("cpu", threads=2)
        pointer = device.allocate(40)
        device.write(pointer, np.ones(10, np.float32))
        device.load(library, "go", TYPES)([pointer, pointer, 1, 1, 1.0, 1.0])
        device.close()


def test_every_emulated_target_is_listed_and_opens() -> None:
    found = [one for one in probe_devices() if isinstance(one, DeviceInfo) and one.emulated]
    expected = [name for name in targets.names() if targets.find(name).emulates]
    assert [one.id for one in found] == expected
    for one in found:
        device: Device = open_device(one.id)
        assert device.info == one
        assert one.compute_units >= 1
        assert one.memory_bytes > 2**20
        device.close()
    for one in probe_devices():
        assert not isinstance(one, AbsentDevice) or "\n" not in one.reason


@pytest.mark.parametrize("name", ["", "gpu", "gfx942", "rocm", "rocm:", "rocm:-1", "cpu:0"])
def test_a_name_that_is_not_known_gets_the_list(name: str) -> None:
    with pytest.raises(UserError, match=r"unknown device .*; available: .*\bcpu\b"):
        open_device(name)


@pytest.mark.full(but=3)
@pytest.mark.parametrize(
    "body",
    [
        # Deeper than a thread's stack: the guard page, not the neighbour's memory.
        "volatile char deep[200000]; deep[threadIdx.x] = 1; out[0] = deep[0];",
        "HIP_DYNAMIC_SHARED(char, lds) lds[1024] = 1; out[0] = 1;",
        "*(volatile int*)8 = 1;",
    ],
)
def test_a_fault_kills_the_process_it_is_in(compiled: Callable[..., Path], body: str) -> None:
    source = f"""
    __global__ void k(int* out) {{ {body} }}
    EXPORT go(int* out, size_t*, uint8_t*, hipStream_t stream) {{
      hipLaunchKernelGGL(k, dim3(1), dim3(64), 1024, stream, out);
      return hipGetLastError();
    }}
    """
    child = f"""
        from pathlib import Path
        from scheduler.runtime.devices import open_device
        device = open_device("cpu", threads=1)
        pointer = device.allocate(4)
        device.load(Path({str(compiled(source, "go"))!r}), "go", ["ptr"])([pointer])
        print("survived")
    """
    command = [sys.executable, "-c", textwrap.dedent(child)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == -signal.SIGSEGV, done.stdout + done.stderr
