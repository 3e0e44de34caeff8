"""Constants of 16 bits in scalar instructions, and bytes at the end of a region."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.isa.rocm.emulator.memory import Memory
from tests.unit.isa.emulator.kernels import LOAD, STORE, execute


@pytest.mark.parametrize(
    ("instructions", "expected"),
    [
        ("s_movk_i32 s9, 0xffc0", -64),
        ("s_movk_i32 s9, -64", -64),
        ("s_mov_b32 s9, 100\ns_addk_i32 s9, 0xfff0", 84),
        ("s_mov_b32 s9, 3\ns_mulk_i32 s9, 0xffff", -3),
        ("s_mov_b32 s10, -5\ns_cmpk_eq_i32 s10, 0xfffb\ns_cselect_b32 s9, 1, 0", 1),
        ("s_mov_b32 s10, 0xfffb\ns_cmpk_eq_u32 s10, 0xfffb\ns_cselect_b32 s9, 1, 0", 1),
    ],
)
def test_short_constants_have_a_sign_however_they_are_written(
    instructions: str, expected: int
) -> None:
    """The assembler prints them as it likes: LLVM writes 0xffc0 for -64."""
    done = execute(f"{LOAD}\n{instructions}\nv_mov_b32_e32 v3, s9\n{STORE}")
    assert not done.run.unknown
    assert set(done.words(64, dtype="<i4").tolist()) == {expected}


def test_the_last_bytes_of_a_region_can_be_read_and_no_more() -> None:
    memory = Memory()
    memory.map("odd", 0x1000, 6, bytes([1, 2, 3, 4, 5, 6]))
    addresses = np.array([0x1004, 0x1005], np.int64)
    values, outside = memory.load_small(addresses, 1)
    assert values.tolist() == [5, 6] and not len(outside)
    _, outside = memory.load_small(addresses + 1, 1)
    assert outside.tolist() == [0x1006]
    halves, outside = memory.load_small(np.array([0x1004], np.int64), 2)
    assert halves.tolist() == [0x0605] and not len(outside)


def test_pages_of_a_region_that_is_gone_are_used_again_and_are_zeros() -> None:
    memory = Memory(pages=4)
    for _ in range(20):  # a launch in many pieces has its arguments as often
        region = memory.map("arguments", 0x1000, 6000, b"\xff" * 6000)
        memory.unmap(region)
    memory.map("other", 0x1000, 6000)
    assert memory.read(0x1000, 6000) == bytes(6000)
