"""The next step to a higher occupancy is the smallest that helps, and says so in words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler import targets
from scheduler.build.cuda.occupancy import Demand, Limiter, occupancy
from scheduler.isa.cuda.next_step import next_step
from scheduler.isa.occupancy import rules_of
from scheduler.targets.generations import NVIDIA_TARGETS as TARGETS
from scheduler.targets.nvidia import nvidia_hardware
from tests.unit.cuda.conftest import SampleBuild

DEMANDS = st.builds(
    Demand,
    registers=st.integers(1, 255),
    shared_bytes=st.integers(0, 100_000),
    threads=st.integers(1, 1024),
)


@given(DEMANDS, st.sampled_from([target.name for target in TARGETS]))
def test_it_is_the_smallest_that_helps(demand: Demand, name: str) -> None:
    target = targets.find(name)
    now = occupancy(demand, target)
    step = next_step(demand, target)
    if now.warps == nvidia_hardware(target).max_warps:
        assert step is None
    if step is None:
        return
    field = {Limiter.REGISTERS: "registers", Limiter.SHARED: "shared_bytes"}.get(step.limiter)
    enough = replace(demand, **{field or "threads": step.have})
    assert occupancy(enough, target).warps == step.warps > now.warps
    if field:
        short = replace(demand, **{field: step.have + 1})
        assert occupancy(short, target).warps == now.warps


@pytest.mark.parametrize(
    ("demand", "target", "text"),
    [
        (Demand(65, 0, 256), "sm_90", "1 fewer register: 24 → 32 warps"),
        (Demand(212, 27648, 128), "sm_80", "44 fewer registers: 8 → 12 warps"),
        (Demand(32, 65536, 32), "sm_90", "8192 fewer bytes of shared memory: 3 → 4 warps"),
        (Demand(32, 0, 640), "sm_90", "blocks of 512 threads: 60 → 64 warps"),
        (Demand(16, 0, 32), "sm_90", "blocks of 64 threads: 32 → 64 warps"),
        (Demand(32, 0, 256), "sm_90", ""),
    ],
)
def test_in_words(demand: Demand, target: str, text: str) -> None:
    step = next_step(demand, targets.find(target))
    assert (step.text if step else "") == text


def test_a_build_says_it_of_each_kernel(sample_build: SampleBuild) -> None:
    made = sample_build("addmm_f16", "sm_90")
    rules = rules_of(targets.find("sm_90"))
    assert rules is not None
    steps = rules.next_steps("", made.resources, targets.find("sm_90"))
    assert set(steps) == set(made.resources)
    assert all("fewer registers" in step for step in steps.values())
