"""Libraries made of CuteDSL sources, on an NVIDIA GPU of this machine: loaded with NVIDIA's own
runtime, called like any kernel's; they give back what they took."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from scheduler.runtime.cuda import CudaDevice
from scheduler.runtime.device import DeviceError
from tests.gpu.running import Array, call
from tests.support.cutedsl_sources import ADD, TWO, named

pytestmark = pytest.mark.gpu


Library = Callable[[str, str], Path]


@pytest.mark.parametrize("count", [1, 255, 256, 100_003])
def test_a_sum_is_right(device: CudaDevice, cutedsl_library: Library, count: int) -> None:
    rng = np.random.default_rng(count)
    x, y = (rng.standard_normal(count).astype(np.float32) for _ in range(2))
    out: Array = np.zeros(count, np.float32)
    call(device, cutedsl_library(named(ADD, "go"), "go"), "go", x, y, out, count)
    np.testing.assert_array_equal(out, x + y)


def test_two_kernels_hand_over_through_the_workspace(
    device: CudaDevice, cutedsl_library: Library
) -> None:
    count = 1000
    kernel = device.load(cutedsl_library(named(TWO, "go"), "go"), "go", ["ptr", "ptr", "i32"])
    x: Array = np.arange(count, dtype=np.float32)
    out: Array = np.zeros_like(x)
    pointers = [device.allocate(x.nbytes) for _ in range(2)]
    device.write(pointers[0], x)
    needed = kernel.workspace_bytes([*pointers, count])
    assert needed == 4 * count
    workspace = device.allocate(needed)
    kernel([*pointers, count], workspace)
    device.read(pointers[1], out)
    np.testing.assert_array_equal(out, x * 3 + 1)
    with pytest.raises(DeviceError, match="CUDA_ERROR_INVALID_VALUE"):
        kernel([*pointers, count], 0)
    for pointer in (*pointers, workspace):
        device.free(pointer)


def test_nothing_is_launched_for_nothing_and_bad_pointers_are_errors(
    device: CudaDevice, cutedsl_library: Library
) -> None:
    kernel = device.load(
        cutedsl_library(named(ADD, "go"), "go"), "go", ["ptr", "ptr", "ptr", "i32"]
    )
    kernel([0, 0, 0, 0])
    pointer = device.allocate(4096)
    for wrong in (0, pointer + 4):
        with pytest.raises(DeviceError, match="CUDA_ERROR_INVALID_VALUE"):
            kernel([pointer, wrong, pointer, 8])
    device.synchronize()
    device.free(pointer)
