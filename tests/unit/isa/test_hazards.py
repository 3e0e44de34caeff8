"""Spills, scratch memory and large code are reported, from what the compiler really did."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from scheduler import targets
from scheduler.build.rocm.metadata import Resources, parse_kernels, parse_resources
from scheduler.isa.hazards import Hazard, HazardKind
from scheduler.isa.rocm.rules import RULES
from tests.unit.build.sources import GEMM
from tests.unit.isa.conftest import ListingOf

# 300 values that are all needed at once, where 1024 threads leave 128 registers to each.
SPILLING = """\
#include <hip/hip_runtime.h>
#include <kiln/types.h>
__global__ void __launch_bounds__(1024) spilling(float* x) {
  float v[300];
#pragma unroll
  for (int i = 0; i < 300; ++i) v[i] = x[i * 1024 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 300; ++i) x[i * 1024 + threadIdx.x] = v[299 - i] * v[i];
}
__global__ void indexed(float* x, int n) {
  float v[64];
  for (int i = 0; i < n; ++i) v[i & 63] = x[i];
  for (int i = 0; i < n; ++i) x[i] = v[(i * 7) & 63];
}
__global__ void dynamic(float* x) {
  extern __shared__ float lds[];
  __shared__ float fixed[128];
  fixed[threadIdx.x & 127] = x[0];
  lds[threadIdx.x] = fixed[threadIdx.x & 63];
  x[1] = lds[0];
}
extern "C" PT_EXPORT int none() { return 0; }
"""


def hazards(resources: Resources, target: str) -> tuple[Hazard, ...]:
    return RULES.hazards(asdict(resources), targets.find(target))


@pytest.mark.full
def test_what_spills_and_what_does_not(listing_of: ListingOf) -> None:
    text = listing_of(SPILLING, "none", "gfx942")
    found = parse_resources(text, targets.find("gfx942"))
    assert [name.split("P")[0] for name in found] == ["_Z8spilling", "_Z7indexed", "_Z7dynamic"]
    spilling, indexed, dynamic = found.values()
    assert spilling.vgpr_spills > 50
    assert spilling.vgpr + spilling.vgpr_spills >= 150
    assert [each.hazard for each in hazards(spilling, "gfx942")] == [
        HazardKind.SPILLS,
        HazardKind.SCRATCH,
    ]
    assert hazards(spilling, "gfx942")[0].text.startswith(f"{spilling.vgpr_spills} VGPRs")
    assert 256 <= indexed.scratch_bytes < 512  # the array, and what the frame is rounded to
    assert [each.hazard for each in hazards(indexed, "gfx942")] == [HazardKind.SCRATCH]
    assert dynamic.lds_bytes == 512  # what is asked for at the launch is not in it
    assert parse_kernels(text)["_Z7dynamicPf"].demand(256, 1024).lds_bytes == 1536
    assert hazards(dynamic, "gfx942") == ()


@pytest.mark.full
def test_large_code(listing_of: ListingOf) -> None:
    repeated = GEMM.replace(
        "    for (int kk", "#pragma unroll 64\n    for (int u = 0; u < 64; ++u)\n    for (int kk"
    )
    (one,) = parse_resources(
        listing_of(repeated, "product", "gfx1030"), targets.find("gfx1030")
    ).values()
    assert one.code_bytes > 32768
    assert hazards(one, "gfx1030")[-1].hazard is HazardKind.CODE_SIZE
    (small,) = parse_resources(
        listing_of(GEMM, "product", "gfx942"), targets.find("gfx942")
    ).values()
    assert hazards(small, "gfx942") == ()
    assert hazards(small, "cpu") == ()
