"""Kernels that the compiler made, on every target: a pointwise one of all kinds of integers, a
reduction through LDS and atomics, arrays in scratch, loops that lanes leave one by one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from scheduler.isa.rocm.emulator.launch import Launch
from scheduler.isa.rocm.emulator.memory import Memory
from scheduler.isa.rocm.emulator.program import program_of
from scheduler.isa.rocm.emulator.run import run
from tests.unit.isa.conftest import ListingOf

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
N = 1000
THREADS = 256
BLOCKS = 4
X, Y, OUT = 0x10_0000, 0x20_0000, 0x30_0000

SOURCE = """\
#include <hip/hip_runtime.h>
#include <kiln/types.h>
__global__ void __launch_bounds__(256) integers(const int* x, const int* y, long long* out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  int a = x[i], b = y[i] == 0 ? 1 : y[i];
  unsigned u = a, v = b;
  long long wide = (long long)a * b + ((long long)b << 33);
  out[i] = wide;
  out[n + i] = a / b;
  out[2 * n + i] = u % v;
  out[3 * n + i] = wide / (b | 1);
  out[4 * n + i] = (unsigned long long)wide % (v | 1u);
  out[5 * n + i] = __builtin_popcount(u) + 100 * __builtin_clz(u | 1u) + 10000 * __builtin_ctz(v);
  out[6 * n + i] = (short)(a + (short)b) + (unsigned char)(u >> 5) * (signed char)v;
  out[7 * n + i] = __builtin_bitreverse32(u) ^ ((u << 13) | (u >> 19)) ^ __builtin_bswap32(v);
  out[8 * n + i] = (a < b ? a : b) + (u > v ? u : v) + (wide >> (b & 63));
  int steps = 0;
  for (unsigned w = u & 0xffff; w != 1 && steps < 300; ++steps) w = w & 1 ? 3 * w + 1 : w >> 1;
  out[9 * n + i] = steps;
}
__global__ void __launch_bounds__(256) reduce(const int* x, float* sums, int* most, int n) {
  __shared__ float lds[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  float value = i < n ? x[i] * 0.25f : 0.0f;
  lds[threadIdx.x] = value;
  for (int step = 128; step > 0; step >>= 1) {
    __syncthreads();
    if (threadIdx.x < step) lds[threadIdx.x] += lds[threadIdx.x + step];
  }
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = lds[0];
    __hip_atomic_fetch_add(sums + 8, lds[0], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  }
  if (i < n) __hip_atomic_fetch_max(most, x[i], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
__global__ void __launch_bounds__(256) scratch(const int* x, const int* y, int* out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  int kept[37];
  for (int j = 0; j < 37; ++j) kept[j] = j * j + i;
  for (int j = 0; j < 5; ++j) kept[(unsigned)(x[i] >> j) % 37u] += y[i] + j;
  int total = 0;
  for (int j = 0; j < 37; ++j) total = total * 31 + kept[((unsigned)y[i] + j) % 37u];
  out[i] = total;
}
extern "C" PT_EXPORT int all(const int* x, const int* y, void* out, int n, size_t* workspace_size,
                             uint8_t* workspace, hipStream_t stream) {
  if (workspace_size) { *workspace_size = 0; return 0; }
  hipLaunchKernelGGL(integers, dim3(4), dim3(256), 0, stream, x, y, (long long*)out, n);
  hipLaunchKernelGGL(reduce, dim3(4), dim3(256), 0, stream, x, (float*)out, (int*)out, n);
  hipLaunchKernelGGL(scratch, dim3(4), dim3(256), 0, stream, x, y, (int*)out, n);
  return hipGetLastError();
}
"""

Ints = npt.NDArray[np.int64]


def numbers() -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Edges first, then at random."""
    draw = np.random.default_rng(11)
    x, y = (draw.integers(-(1 << 31), 1 << 31, N, dtype=np.int64).astype(np.int32) for _ in "xy")
    edges = np.array([0, 1, -1, 2, 7, 255, 32768, 65535, 1 << 24, (1 << 31) - 1, -(1 << 31)])
    pairs = [(a, b) for a in edges for b in edges if not (a == -(1 << 31) and b == -1)]
    x[: len(pairs)], y[: len(pairs)] = np.array(pairs).T
    y[500:700] = draw.integers(-50, 50, 200)
    return x, y


def emulated(text: str, kernel: str, arguments: tuple[int, ...], size: int) -> bytes:
    x, y = numbers()
    memory = Memory()
    memory.map("x", X, x.nbytes, x.tobytes())
    memory.map("y", Y, y.nbytes, y.tobytes())
    memory.map("out", OUT, size)
    name = next(
        line.split()[1]
        for line in text.splitlines()
        if line.strip().startswith(".amdhsa_kernel") and kernel in line
    )
    launch = Launch(name, (BLOCKS, 1, 1), (THREADS, 1, 1), 0, arguments)
    done = run(program_of(text, name), launch, memory, range(BLOCKS))
    assert not done.unknown
    assert not done.findings
    assert not done.cut
    return memory.read(OUT, size)


def truncated(a: int, b: int) -> int:
    """C's division."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - ((value >> (bits - 1)) << bits)


def integers(a: int, b: int) -> list[int]:
    """What one thread writes, as C has it."""
    b = b or 1
    u, v = a & 0xFFFF_FFFF, b & 0xFFFF_FFFF
    wide = signed(a * b + (b << 33), 64)
    steps, w = 0, u & 0xFFFF
    while w != 1 and steps < 300:
        w = 3 * w + 1 if w & 1 else w >> 1
        steps += 1
    small = signed(a + signed(b, 16), 16) + (u >> 5 & 255) * signed(v, 8)
    bits = int(f"{u:032b}"[::-1], 2) ^ (u << 13 | u >> 19) & 0xFFFF_FFFF
    leading, trailing = 32 - (u | 1).bit_length(), (v & -v).bit_length() - 1
    return [
        wide,
        truncated(a, b),
        u % v,
        truncated(wide, b | 1),
        (wide & (1 << 64) - 1) % (v | 1),
        u.bit_count() + 100 * leading + 10000 * trailing,
        small,
        bits ^ int.from_bytes(v.to_bytes(4, "little"), "big"),
        (min(a, b) + max(u, v) & 0xFFFF_FFFF) + (wide >> (b & 63)),
        steps,
    ]


@pytest.mark.full
@pytest.mark.parametrize("target", TARGETS)
def test_integers_of_all_kinds(target: str, listing_of: ListingOf) -> None:
    data = emulated(listing_of(SOURCE, "all", target), "integers", (X, Y, OUT, N), 80 * N)
    found = np.frombuffer(data, np.int64).reshape(10, N)
    x, y = (each.tolist() for each in numbers())
    expected = np.array(
        [[signed(each, 64) for each in integers(a, b)] for a, b in zip(x, y, strict=True)]
    ).T
    for row in range(10):
        assert found[row].tolist() == expected[row].tolist(), row


@pytest.mark.full(but=["gfx90a"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_reduction_through_lds_and_atomics(target: str, listing_of: ListingOf) -> None:
    text = listing_of(SOURCE, "all", target)
    data = emulated(text, "reduce", (X, OUT, OUT + 64, N), 256)
    x, _ = numbers()
    values = np.zeros(BLOCKS * THREADS, np.float32)
    values[:N] = x.astype(np.float32) * np.float32(0.25)
    sums = values.reshape(BLOCKS, THREADS)
    while sums.shape[1] > 1:
        half = sums.shape[1] // 2
        sums = sums[:, :half] + sums[:, half:]
    found = np.frombuffer(data, np.float32)
    assert found[:BLOCKS].tolist() == sums[:, 0].tolist()
    assert np.isclose(found[8], values.astype(np.float64).sum(), rtol=1e-5)
    assert np.frombuffer(data, np.int32)[16] == x.max()


@pytest.mark.parametrize("target", TARGETS)
def test_arrays_of_a_lane(target: str, listing_of: ListingOf) -> None:
    text = listing_of(SOURCE, "all", target)
    found = np.frombuffer(emulated(text, "scratch", (X, Y, OUT, N), 4 * N), np.int32)
    for i, (a, b) in enumerate(zip(*(each.tolist() for each in numbers()), strict=True)):
        kept = [j * j + i for j in range(37)]
        for j in range(5):
            kept[((a >> j) & 0xFFFF_FFFF) % 37] += b + j
        total = 0
        for j in range(37):
            total = total * 31 + kept[((b & 0xFFFF_FFFF) + j & 0xFFFF_FFFF) % 37]
        assert found[i] == signed(total, 32), i
