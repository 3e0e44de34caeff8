"""The occupancy formula says what the compiler says, and the next step is really the next."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler import targets
from scheduler.build.flags import Flags
from scheduler.build.rocm.metadata import parse_kernels
from scheduler.build.rocm.occupancy import Demand, Limiter, occupancy, resident_groups
from scheduler.isa.rocm.next_step import next_step
from scheduler.targets import Target
from scheduler.targets.amd import amd_hardware
from tests.unit.isa.conftest import GPUS, ListingOf

BLOCKS = [32, 64, 96, 128, 192, 256, 320, 512, 640, 768, 1024]
CONFIGURATIONS = [(name, "") for name in GPUS] + [
    (name, "-mcumode") for name in GPUS if amd_hardware(targets.find(name)).architecture == "rdna"
]


def synthetic(target: Target, rng: random.Random, count: int) -> str:
    """Kernels that take chosen registers (by an empty assembly that clobbers them) and LDS."""
    gpu = amd_hardware(target)
    lines = ["#include <hip/hip_runtime.h>", "#include <kiln/types.h>"]
    for number in range(count):
        block = rng.choice(BLOCKS)
        waves = -(-block // target.wavefront)
        vgprs = min(256, gpu.vgprs_per_simd // -(-waves // 4) - gpu.vgpr_granule)
        highest = rng.randrange(vgprs)
        clobbers = [f"v{highest}", f"s{rng.choice([16, 64, 90, 96, 97, 99, 100, 101])}"]
        spare = min(256, vgprs - highest - 5)
        if amd_hardware(target).architecture == "cdna" and spare > 0 and rng.random() < 0.4:
            clobbers.append(f"a{rng.randrange(spare)}")
        lds = rng.choice(
            [
                0,
                0,
                rng.randrange(1, 4096) * 4,
                rng.randrange(4, gpu.max_lds_per_block_bytes) & ~3,
            ]
        )
        names = ", ".join(f'"{each}"' for each in clobbers)
        body = f'asm volatile("" ::: {names});'
        if lds:
            body += f" __shared__ volatile char m[{lds}]; m[threadIdx.x % {lds}] = 1; p[0] = m[0];"
        lines.append(f"__global__ void __launch_bounds__({block}) k{number}(char* p) {{ {body} }}")
    lines.append('extern "C" PT_EXPORT int none() { return 0; }')
    return "\n".join(lines) + "\n"


@pytest.mark.long(but=3)
@pytest.mark.full
@pytest.mark.parametrize(("name", "mode"), CONFIGURATIONS)
def test_it_agrees_with_the_compiler_on_synthetic_kernels(
    name: str, mode: str, listing_of: ListingOf
) -> None:
    """250 kernels for each of 11 configurations, 2,750 in all."""
    target = targets.find(name)
    source = synthetic(target, random.Random(f"{name} {mode}"), 250)
    flags = Flags(("-O1", mode) if mode else ("-O1",))
    found = parse_kernels(listing_of(source, "none", name, flags))
    assert len(found) == 250
    held = {each: occupancy(kernel.demand(), target) for each, kernel in found.items()}
    wrong = {
        each: (kernel, held[each].waves)
        for each, kernel in found.items()
        if held[each].waves != kernel.compiler_occupancy
    }
    assert not wrong
    limiters = {each.limiter for each in held.values()}
    assert {Limiter.VGPR, Limiter.LDS, Limiter.WAVES} <= limiters  # or the kernels prove little
    assert len({each.waves for each in held.values()}) >= 6
    if amd_hardware(target).architecture == "cdna":
        assert Limiter.SGPR in limiters
        assert any(kernel.agpr_count for kernel in found.values())
    assert {kernel.wgp_mode for kernel in found.values()} == {
        amd_hardware(target).architecture == "rdna" and mode != "-mcumode"
    }


demands = st.builds(
    Demand,
    vgpr=st.integers(1, 512),
    sgpr=st.integers(1, 108),
    lds_bytes=st.integers(0, 65536),
    workgroup=st.integers(1, 1024),
    wgp_mode=st.booleans(),
    smallest_workgroup=st.sampled_from([0, 1]),
)


@given(demands, st.sampled_from(GPUS))
def test_the_next_step_is_the_smallest_that_helps(demand: Demand, name: str) -> None:
    target = targets.find(name)
    if amd_hardware(target).architecture == "cdna":
        demand = replace(demand, wgp_mode=False)
    now = occupancy(demand, target)
    step = next_step(demand, target)
    if now.limiter is Limiter.WAVES:
        assert now.waves == amd_hardware(target).max_waves_per_simd
        assert step is None
    if step is None or step.limiter is Limiter.WORKGROUP:
        return
    field = {Limiter.VGPR: "vgpr", Limiter.SGPR: "sgpr", Limiter.LDS: "lds_bytes"}[step.limiter]
    have = getattr(demand, field)
    enough = occupancy(replace(demand, **{field: have - step.change}), target).waves
    short = occupancy(replace(demand, **{field: have - step.change + 1}), target).waves
    assert short == now.waves < enough == step.waves
    assert step.text.endswith(f": {now.waves} → {enough} waves")


@pytest.mark.parametrize(
    ("demand", "target", "text"),
    [
        (Demand(108, 20, 0, 256), "gfx942", "12 fewer VGPRs: 4 → 5 waves"),
        (Demand(65, 20, 0, 256), "gfx942", "1 fewer VGPR: 7 → 8 waves"),
        (Demand(40, 20, 36864, 256), "gfx942", "4096 fewer bytes of LDS: 1 → 2 waves"),
        (Demand(40, 101, 0, 256), "gfx90a", "1 fewer SGPR: 7 → 8 waves"),
        (Demand(40, 20, 0, 640), "gfx1100", "blocks of 512 threads: 10 → 16 waves"),
    ],
)
def test_the_next_step_in_words(demand: Demand, target: str, text: str) -> None:
    step = next_step(demand, targets.find(target))
    assert step is not None
    assert step.text == text


def test_lds_is_handed_out_in_steps_on_gfx950() -> None:
    """Four blocks of 40,000 bytes fit in 160 KiB by their sum, but not in steps of 1280 bytes."""
    demand, target = Demand(32, 20, 40_000, 256), targets.find("gfx950")
    assert occupancy(demand, target).waves == 4
    assert occupancy(demand, target, exact_lds=True).waves == 4
    tight = replace(demand, lds_bytes=40_960 - 1280 // 2)
    assert occupancy(tight, target).waves == occupancy(tight, target, exact_lds=True).waves == 4
    above = replace(demand, lds_bytes=163_840 // 6)  # 27,306: rounded up 28,160
    assert occupancy(above, target).waves == 6
    assert occupancy(above, target, exact_lds=True).waves == 5


def test_dynamic_lds_counts() -> None:
    demand = Demand(32, 20, 0, 256)
    target = targets.find("gfx942")
    assert occupancy(demand, target).waves == 8
    assert occupancy(replace(demand, lds_bytes=32768), target).limiter is Limiter.LDS


@pytest.mark.parametrize(
    ("threads", "lds_bytes", "groups"),
    [
        (128, 49152, 1),
        (128, 32768, 2),
        (64, 40960, 1),
        (64, 16384, 4),
        (256, 16384, 4),
        (512, 0, 4),
    ],
)
def test_as_many_groups_are_resident_as_lds_holds(
    threads: int, lds_bytes: int, groups: int
) -> None:
    """Groups of fewer waves than SIMDs too: a wave a SIMD, rounded up, would make two of one."""
    demand = Demand(vgpr=64, sgpr=32, lds_bytes=lds_bytes, workgroup=threads)
    assert resident_groups(demand, targets.find("gfx942"), exact_lds=True) == groups


@given(
    st.sampled_from(list(GPUS)),
    st.integers(1, 256),
    st.integers(0, 65536),
    st.sampled_from(BLOCKS),
)
def test_resident_groups_fit_into_lds_and_into_the_occupancy(
    name: str, vgpr: int, lds_bytes: int, threads: int
) -> None:
    target = targets.find(name)
    gpu = amd_hardware(target)
    demand = Demand(vgpr=vgpr, sgpr=32, lds_bytes=lds_bytes, workgroup=threads)
    groups, waves = resident_groups(demand, target), -(-threads // gpu.wavefront)
    assert groups == 1 or groups * lds_bytes <= gpu.lds_bytes
    assert groups == 1 or groups * waves <= occupancy(demand, target).waves * gpu.simds_per_cu
    more = replace(demand, lds_bytes=lds_bytes // 2)
    assert resident_groups(more, target) >= groups
