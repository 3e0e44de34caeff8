"""Reductions over the lanes of a wave, by the instructions that the compiler made of them: what
moves within 16 lanes goes from register to register, where CPU emulation has no say."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.isa.rocm.emulator.launch import Launch
from scheduler.isa.rocm.emulator.memory import Memory
from scheduler.isa.rocm.emulator.program import program_of
from scheduler.isa.rocm.emulator.run import run
from scheduler.targets import find
from tests.unit.isa.conftest import ListingOf

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201")
WIDTHS = (2, 4, 8, 16, 32)
THREADS = 128
X, OUT = 0x10_0000, 0x20_0000

SOURCE = """\
#include <hip/hip_runtime.h>
#include <kiln/wave.h>
struct First {  // the greatest value and where it first is, as argmax has it
  int value, at;
};
struct Later {
  __device__ First operator()(First a, First b) const {
    return b.value > a.value || (b.value == a.value && b.at < a.at) ? b : a;
  }
};
template <int Width>
__device__ void reduce(const int* x, long long* out) {
  const int i = threadIdx.x;
  const First first = kiln::wave_reduce<Width>(First{x[i], i}, Later{});
  out[i] = kiln::wave_reduce<Width>(x[i], kiln::Sum<int>());
  out[128 + i] = kiln::wave_reduce<Width>(1ll << 40 | x[i], kiln::Sum<long long>());
  out[256 + i] = first.value;
  out[384 + i] = first.at;
}
extern "C" __global__ void __launch_bounds__(128) sums(const int* x, long long* out) {
  reduce<2>(x, out);
  reduce<4>(x, out + 512);
  reduce<8>(x, out + 1024);
  reduce<16>(x, out + 1536);
  reduce<32>(x, out + 2048);
  reduce<kiln::wave_size>(x, out + 2560);
}
extern "C" PT_EXPORT int all(const int* x, long long* out, size_t* workspace_size,
                             uint8_t* workspace, hipStream_t stream) {
  if (workspace_size) { *workspace_size = 0; return 0; }
  hipLaunchKernelGGL(sums, dim3(1), dim3(128), 0, stream, x, out);
  return hipGetLastError();
}
"""


@pytest.mark.full(but=["gfx90a"])
@pytest.mark.parametrize("target", TARGETS)
def test_every_lane_has_what_its_segment_has(target: str, listing_of: ListingOf) -> None:
    text = listing_of(SOURCE, "all", target)
    x = np.random.default_rng(5).integers(0, 40, THREADS, dtype=np.int32)  # some twice
    memory = Memory()
    memory.map("x", X, x.nbytes, x.tobytes())
    size = 8 * 4 * THREADS * (len(WIDTHS) + 1)
    memory.map("out", OUT, size)
    launch = Launch("sums", (1, 1, 1), (THREADS, 1, 1), 0, (X, OUT))
    done = run(program_of(text, "sums"), launch, memory, range(1))
    assert not (done.unknown or done.findings or done.cut)
    found = np.frombuffer(memory.read(OUT, size), np.int64).reshape(-1, 4, THREADS)
    for width, (sums, wide, greatest, first) in zip(
        (*WIDTHS, find(target).wavefront), found, strict=True
    ):
        segments = x.reshape(-1, width).astype(np.int64)
        total = np.repeat(segments.sum(axis=1), width)
        at = segments.argmax(axis=1) + np.arange(len(segments)) * width
        assert sums.tolist() == total.tolist(), width
        assert greatest.tolist() == np.repeat(segments.max(axis=1), width).tolist(), width
        assert first.tolist() == np.repeat(at, width).tolist(), width
        ored = np.repeat(np.sum((1 << 40) | segments, axis=1), width)
        assert wide.tolist() == ored.tolist(), width
    assert "row_half_mirror" in text
    assert "row_mirror" in text
