"""Occupancy by NVIDIA's rules, at figures of its own calculator."""

from __future__ import annotations

import pytest

from scheduler import targets
from scheduler.build.cuda.occupancy import Demand, Limiter, occupancy

# target, registers, shared bytes, threads: blocks (CUDA Occupancy Calculator)
KNOWN = [
    ("sm_90", 32, 0, 256, 8, Limiter.WARPS),
    ("sm_90", 64, 0, 256, 4, Limiter.REGISTERS),
    ("sm_90", 65, 0, 256, 3, Limiter.REGISTERS),
    ("sm_90", 255, 0, 128, 2, Limiter.REGISTERS),
    ("sm_90", 255, 0, 512, 0, Limiter.REGISTERS),
    ("sm_90", 16, 0, 32, 32, Limiter.BLOCKS),
    # As an H200's driver says: warps of a block need not be a multiple of four.
    ("sm_90", 109, 22502, 35, 8, Limiter.REGISTERS),
    ("sm_90", 55, 28889, 288, 4, Limiter.REGISTERS),
    ("sm_90", 71, 46290, 224, 4, Limiter.SHARED),
    ("sm_90", 72, 19630, 32, 11, Limiter.SHARED),
    ("sm_90", 32, 49152, 256, 4, Limiter.SHARED),
    ("sm_90", 32, 227 * 1024, 256, 1, Limiter.SHARED),
    ("sm_90", 32, 228 * 1024, 256, 0, Limiter.SHARED),
    ("sm_80", 32, 40960, 128, 4, Limiter.SHARED),
    ("sm_120", 32, 0, 256, 6, Limiter.WARPS),
    ("sm_120", 16, 0, 32, 24, Limiter.BLOCKS),
    ("sm_120", 32, 99 * 1024, 128, 1, Limiter.SHARED),
]


@pytest.mark.parametrize(("target", "registers", "shared", "threads", "blocks", "limiter"), KNOWN)
def test_blocks_and_what_keeps_the_next_one_out(
    target: str, registers: int, shared: int, threads: int, blocks: int, limiter: Limiter
) -> None:
    held = occupancy(Demand(registers, shared, threads), targets.find(target))
    assert (held.blocks, held.limiter) == (blocks, limiter)
    assert held.warps == blocks * -(-threads // 32)
