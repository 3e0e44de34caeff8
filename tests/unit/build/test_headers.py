"""The kernels' own headers, run on CPU emulation: conversions of 16-bit floats, reductions."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build, Toolchain

Array = np.ndarray[Any, Any]

SOURCE = """\
#include <hip/hip_runtime.h>
#include <kiln/types.h>
#include <kiln/wave.h>
__global__ void narrow(const float* x, uint16_t* bf, uint16_t* half, float* back, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  const __bf16 b = kiln::from_float<__bf16>(x[i]);
  const _Float16 h = kiln::from_float<_Float16>(x[i]);
  bf[i] = kiln::bit_cast<uint16_t>(b);
  half[i] = kiln::bit_cast<uint16_t>(h);
  back[2 * i] = kiln::to_float(b);
  back[2 * i + 1] = kiln::to_float(h);
}
template <typename T>
__global__ void __launch_bounds__(256) reduce(const T* x, T* y) {
  __shared__ T scratch[3][256 / kiln::wave_size];
  const T v = x[blockIdx.x * 256 + threadIdx.x];
  const T sum = kiln::block_reduce<256>(v, kiln::Sum<T>{}, scratch[0]);
  const T most = kiln::block_reduce<256>(v, kiln::Max<T>{}, scratch[1]);
  const T least = kiln::block_reduce<256>(v, kiln::Min<T>{}, scratch[2]);
  const T eight = kiln::wave_reduce<8>(v, kiln::Sum<T>{});
  T* row = y + (blockIdx.x * 256 + threadIdx.x) * 4;
  row[0] = sum, row[1] = most, row[2] = least, row[3] = eight;
}
extern "C" PT_EXPORT int convert(const float* x, uint16_t* bf, uint16_t* half, float* back, int n,
                                 size_t*, uint8_t*, hipStream_t stream) {
  hipLaunchKernelGGL(narrow, dim3((n + 255) / 256), dim3(256), 0, stream, x, bf, half, back, n);
  return hipGetLastError();
}
extern "C" PT_EXPORT int reductions(const void* x, void* y, int blocks, int ints, size_t*,
                                    uint8_t*, hipStream_t stream) {
  if (ints)
    hipLaunchKernelGGL(reduce<int>, dim3(blocks), dim3(256), 0, stream, (const int*)x, (int*)y);
  else
    hipLaunchKernelGGL(reduce<float>, dim3(blocks), dim3(256), 0, stream, (const float*)x,
                       (float*)y);
  return hipGetLastError();
}
"""


def library(target: str, toolchain: Toolchain, cache: CodeCache) -> ctypes.CDLL:
    result = build(SOURCE, "convert", targets.find(target), toolchain, cache)
    assert isinstance(result, Build), result
    return ctypes.CDLL(str(result.directory / "kernel.so"))


def pointer(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def nearest_bfloat16(x: Array) -> Array:
    """By comparing the distances to both neighbours, in double."""
    bits = x.view(np.uint32)
    low = (bits & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)
    high_bits = (bits & np.uint32(0xFFFF0000)) + np.uint32(0x10000)
    high = high_bits.view(np.float32).astype(np.float64)
    # Beyond the largest number the next step stands for infinity.
    high = np.where(np.isfinite(high), high, np.copysign(2.0**128, low))
    exact = x.astype(np.float64)
    down, up = np.abs(exact - low), np.abs(high - exact)
    odd = (bits >> np.uint32(16)) & np.uint32(1) == 1
    take_up = (up < down) | ((up == down) & odd)
    return np.where(take_up, high_bits, bits) >> np.uint32(16)


def test_sixteen_bit_floats_are_rounded_to_nearest_even(
    toolchain: Toolchain, shared_cache: CodeCache
) -> None:
    top = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    lows = (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF, 0x1000, 0x3000)
    bits = np.concatenate([top | np.uint32(low) for low in lows])
    x = bits.view(np.float32)
    bf, half = np.empty(len(x), np.uint16), np.empty(len(x), np.uint16)
    back = np.empty((len(x), 2), np.float32)
    convert = library("cpu", toolchain, shared_cache).convert
    assert convert(*map(pointer, (x, bf, half, back)), len(x), None, None, None) == 0
    nan = np.isnan(x)
    with np.errstate(all="ignore"):
        want_half = x.astype(np.float16)
        finite = np.isfinite(x)
        assert (bf[finite] == nearest_bfloat16(x[finite])).all()
    assert (half[~nan] == want_half.view(np.uint16)[~nan]).all()
    assert (bf[np.isinf(x)] == (bits[np.isinf(x)] >> 16)).all()
    assert np.isnan(back[nan]).all()
    assert not np.isnan(back[~nan]).any()
    widened = (bf.astype(np.uint32) << np.uint32(16)).view(np.float32)
    assert np.array_equal(back[:, 0], widened, equal_nan=True)
    assert np.array_equal(back[:, 1], half.view(np.float16).astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("target", ["cpu", "cpu-gfx1100"])
def test_reductions_over_waves_and_blocks(
    target: str, toolchain: Toolchain, shared_cache: CodeCache
) -> None:
    reductions = library(target, toolchain, shared_cache).reductions
    rng = np.random.default_rng(0)
    blocks = 5
    ints = rng.integers(-(2**31), 2**31, (blocks, 256)).astype(np.int32)
    floats = rng.normal(size=(blocks, 256)).astype(np.float32)
    floats[1, 77] = np.nan
    floats[2] = -np.inf
    floats[3, 5] = np.inf
    for x in (ints, floats):
        y = np.empty((blocks, 256, 4), x.dtype)
        kind = int(x.dtype == np.int32)
        assert reductions(pointer(x), pointer(y), blocks, kind, None, None, None) == 0
        wide = x.astype(np.int64 if kind else np.float64)
        sums = wide.sum(axis=1, keepdims=True)
        eights = wide.reshape(blocks, 32, 8).sum(axis=2).repeat(8, axis=1)
        for column, want in enumerate((sums, x.max(1)[:, None], x.min(1)[:, None], eights)):
            got = y[:, :, column]
            expected = np.broadcast_to(want, got.shape)
            if kind:
                assert (got == expected.astype(np.int32)).all(), column
            else:
                np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
