"""A real GPU through the same protocol and the same oracles as the emulation.

Where there is no GPU these are skipped, with the reason that the device list gives.
"""

from __future__ import annotations

import numpy as np
import pytest

from scheduler import targets
from scheduler.build.compile import build
from scheduler.build.model import Build
from scheduler.build.toolchains import bundled_clang
from scheduler.runtime import rocm
from scheduler.runtime.device import AbsentDevice, DeviceInfo
from scheduler.runtime.devices import open_device
from scheduler.targets.amd import amd_hardware
from tests.support.caches import KEPT
from tests.unit.runtime.conftest import PREAMBLE
from tests.unit.runtime.test_matrix_instructions import (
    BUILTINS,
    Array,
    expected_and_found,
)

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def gpu() -> DeviceInfo:
    first = rocm.DEVICES.probe()[0]
    if isinstance(first, AbsentDevice):
        pytest.skip(first.reason)
    return first


def _run(gpu: DeviceInfo, source: str, *args: Array | int) -> None:
    made = build(PREAMBLE + source, "go", targets.find(gpu.target), bundled_clang(KEPT), KEPT)
    assert isinstance(made, Build), made
    device = open_device(gpu.id)
    try:
        arrays = {
            place: (device.allocate(arg.nbytes), arg)
            for place, arg in enumerate(args)
            if isinstance(arg, np.ndarray)
        }
        for pointer, array in arrays.values():
            device.write(pointer, array)
        kinds = ["ptr" if place in arrays else "i32" for place in range(len(args))]
        kernel = device.load(made.directory / "kernel.so", "go", kinds)
        kernel(
            [arg if isinstance(arg, int) else arrays[place][0] for place, arg in enumerate(args)]
        )
        for pointer, array in arrays.values():
            device.read(pointer, array)
    finally:
        device.close()


def test_the_hardware_lays_matrices_out_as_the_emulation_does(gpu: DeviceInfo) -> None:
    emulated = {
        target.name
        for target in map(targets.find, targets.names())
        if target.emulates == gpu.target
    }
    builtins = [builtin for builtin in BUILTINS if builtin.target in emulated]
    assert builtins or not amd_hardware(targets.find(gpu.target)).matrix

    def run(source: str, symbol: str, *args: Array | int, target: str) -> None:
        _run(gpu, source, *args)

    for builtin in builtins:
        expected, found = expected_and_found(builtin, run)
        np.testing.assert_array_equal(found, expected, err_msg=builtin.name)


def test_a_kernel_adds(gpu: DeviceInfo) -> None:
    source = """
    __global__ void add(const float* x, float* y) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      y[i] = x[i] + 1;
    }
    EXPORT go(const float* x, float* y, size_t*, uint8_t*, hipStream_t stream) {
      hipLaunchKernelGGL(add, dim3(16), dim3(256), 0, stream, x, y);
      return hipGetLastError();
    }
    """
    x, y = np.arange(4096, dtype=np.float32), np.zeros(4096, np.float32)
    _run(gpu, source, x, y)
    np.testing.assert_array_equal(y, x + 1)
