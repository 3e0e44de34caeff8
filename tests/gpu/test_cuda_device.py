"""A real NVIDIA GPU through the same protocol as the emulation, and its matrix instructions
against the rows of the table. Where there is no GPU these are skipped with the device list's
reason."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import float32_to_bfloat16
from scheduler.matrix_instructions import (
    INSTRUCTIONS,
    Layout,
    MatrixInstruction,
)
from scheduler.runtime.cuda import CudaDevice
from scheduler.runtime.device import DeviceInfo
from scheduler.targets import Target
from scheduler.targets.nvidia import nvidia_hardware
from tests.gpu.running import Array

pytestmark = pytest.mark.gpu

ADD = """
__global__ void add(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i] + 1;
}
EXPORT go(const float* x, float* y, size_t*, uint8_t*, hipStream_t stream) {
  hipLaunchKernelGGL(add, dim3(16), dim3(256), 0, stream, x, y);
  return hipGetLastError();
}
"""
MULTIPLY = """
using I = kiln::instruction::NAME;
__global__ void multiply(const I::A* a, const I::B* b, I::D* c) {
  const int lane = threadIdx.x;
  // Twice, so that the second one meets what the first one left behind.
  const I::D once = kiln::mma::multiply_add(I{}, a[lane], b[lane], c[lane]);
  c[lane] = kiln::mma::multiply_add(I{}, a[lane], b[lane], once);
}
EXPORT go(void* a, void* b, void* c, size_t*, uint8_t*, hipStream_t stream) {
  hipLaunchKernelGGL(multiply, dim3(1), dim3(I::kLanes), 0, stream, (const I::A*)a,
                     (const I::B*)b, (I::D*)c);
  return hipGetLastError();
}
"""


def test_a_kernel_adds(run: Callable[..., None]) -> None:
    x, y = np.arange(4096, dtype=np.float32), np.zeros(4096, np.float32)
    run(ADD, x, y)
    np.testing.assert_array_equal(y, x + 1)


def test_the_device_says_what_it_is(nvidia: DeviceInfo) -> None:
    assert nvidia.compute_units > 0
    assert nvidia.memory_bytes > 1 << 30
    assert nvidia.attributes["wavefront"] == "32"
    assert nvidia.attributes["target"] == nvidia.target


def test_its_limits_are_those_of_the_target(nvidia: DeviceInfo, target: Target) -> None:
    if nvidia.attributes["architecture"] != target.name:
        pytest.skip(f"{target.name} stands for {nvidia.attributes['architecture']} here")
    shared = int(nvidia.attributes["lds_bytes_per_block"])
    assert shared == nvidia_hardware(target).max_lds_per_block_bytes


def test_clocks_and_throttling_are_read_with_each_sample(device: CudaDevice) -> None:
    said = device.info.attributes["readings"]
    readings = device.time([]).readings
    if said.startswith("none"):
        assert readings == {}
        pytest.skip(f"readings: {said}")
    assert readings["sm_clock_mhz"] > 0
    assert readings["memory_clock_mhz"] > 0
    throttled = {name: value for name, value in readings.items() if "throttled" in name}
    assert set(throttled) == {"throttled_power", "throttled_thermal", "throttled_hardware"}
    assert set(throttled.values()) <= {0.0, 1.0}


def _encode(values: Array, dtype: DType) -> Array:
    if dtype is DType.BF16:
        return float32_to_bfloat16(values.astype(np.float32))
    return values.astype(dtype.numpy)


def _lanes(one: MatrixInstruction, layout: Layout, matrix: Array, values: int) -> Array:
    """What each lane holds of a matrix."""
    places = [[layout.evaluate(lane, v) for v in range(values)] for lane in range(one.lanes)]
    return np.array([[matrix[place] for place in row] for row in places])


NVIDIA_ROWS = [one for one in INSTRUCTIONS if one.family == "mma"]


@pytest.mark.parametrize("one", NVIDIA_ROWS, ids=lambda one: one.name)
def test_the_hardware_lays_matrices_out_as_the_table_says(
    one: MatrixInstruction, target: Target, run: Callable[..., None]
) -> None:
    """Small integers: the sums are exact in any order, so that the comparison is for equality."""
    if one not in nvidia_hardware(target).matrix_instructions:
        pytest.skip(f"{target.name} has no {one.name}")
    rng = np.random.default_rng(one.m * 1000 + one.k)
    a, b = rng.integers(-8, 9, (one.m, one.k)), rng.integers(-8, 9, (one.k, one.n))
    c = rng.integers(-99, 100, (one.m, one.n))
    element, accumulator = DType.from_label(one.register_type), DType.from_label(one.accumulator)
    held = _encode(_lanes(one, one.d, c, one.d_values), accumulator)
    run(
        MULTIPLY.replace("NAME", one.name),
        _encode(_lanes(one, one.a, a, one.a_values), element),
        _encode(_lanes(one, one.b, b, one.b_values), element),
        held,
    )
    expected = _lanes(one, one.d, 2 * (a @ b) + c, one.d_values)
    np.testing.assert_array_equal(held, expected)


def test_tf32_rounds_to_nearest_as_the_emulation_does(
    target: Target, run: Callable[..., None]
) -> None:
    """As ``tests/unit/runtime/test_matrix_instructions.py`` holds the emulation to: operands to 10
    bits of mantissa, ties away from zero."""
    (one,) = (row for row in NVIDIA_ROWS if row.element == "tf32")
    if one not in nvidia_hardware(target).matrix_instructions:
        pytest.skip(f"{target.name} has no {one.name}")
    rng = np.random.default_rng(1688)
    a = rng.standard_normal((one.m, one.k)).astype(np.float32)
    b = rng.standard_normal((one.k, one.n)).astype(np.float32)
    a[0, :2] = 1 + 2.0**-11, -(1 + 2.0**-11)  # halfway between two neighbours
    held = np.zeros((one.lanes, one.d_values), np.float32)
    run(
        MULTIPLY.replace("NAME", one.name),
        _lanes(one, one.a, a, one.a_values),
        _lanes(one, one.b, b, one.b_values),
        held,
    )
    expected = _lanes(one, one.d, 2 * (_tf32(a) @ _tf32(b)), one.d_values)
    np.testing.assert_allclose(held, expected, rtol=1e-5, atol=1e-5)


def _tf32(values: Array) -> Array:
    mantissa, exponent = np.frexp(values.astype(np.float64))
    return np.ldexp(np.copysign(np.trunc(np.abs(mantissa) * 2**11 + 0.5), mantissa), exponent - 11)
