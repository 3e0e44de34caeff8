"""Packed whole numbers, any function of three bits, the digits of 2/pi: known answers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.unit.isa.emulator.kernels import LOAD, STORE, execute
from tests.unit.isa.emulator.rows import run


def lane(instructions: str, data: np.ndarray, processor: str = "gfx950") -> int:  # type: ignore[type-arg]
    """v3 of the first lane; v2 is its word of ``data``, v4 of the next."""
    body = f"{LOAD}\nglobal_load_dword v4, v1, s[6:7] offset:4\ns_waitcnt vmcnt(0)\n{instructions}"
    done = execute(f"{body}\n{STORE}", data, processor=processor)
    assert not done.run.unknown
    return int(done.words(1)[0])


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("v_pk_add_i16 v3, v2, v4", 0x8000_FFFE),
        ("v_pk_add_i16 v3, v2, v4 clamp", 0x7FFF_FFFE),
        ("v_pk_add_u16 v3, v2, v4 clamp", 0x8000_FFFF),
        ("v_pk_sub_u16 v3, v2, v4 clamp", 0x7FFE_0000),
        ("v_pk_max_i16 v3, v2, v4", 0x7FFF_FFFF),
        ("v_pk_max_u16 v3, v2, v4 op_sel:[1,0] op_sel_hi:[0,1]", 0xFFFF_FFFF),
        ("v_pk_mul_lo_u16 v3, v2, v4", 0x7FFF_0001),
        ("v_pk_lshlrev_b16 v3, 4, v2 op_sel_hi:[0,1]", 0xFFF0_FFF0),
        ("v_pk_ashrrev_i16 v3, 4, v2 op_sel_hi:[0,1]", 0x07FF_FFFF),
        ("v_pk_lshrrev_b16 v3, 4, v2 op_sel_hi:[0,1]", 0x07FF_0FFF),
        ("v_bitop3_b32 v3, v2, v4, v2 bitop3:0xc0", 0x7FFF_FFFF & 0x0001_FFFF),
        ("v_bitop3_b32 v3, v2, v4, -1 bitop3:0x3c", 0x7FFF_FFFF ^ 0x0001_FFFF),
    ],
)
def test_packed_numbers_wrap_or_stay_in_their_range(instruction: str, expected: int) -> None:
    assert lane(instruction, np.array([0x7FFF_FFFF, 0x0001_FFFF], np.uint32)) == expected


def test_a_clamp_that_is_not_known_is_named() -> None:
    done = execute(f"{LOAD}\nv_mad_u32_u24 v3, v2, v2, v2 clamp\n{STORE}")
    assert done.run.unknown == {"v_mad_u32_u24": 1}


def test_a_table_of_truth_is_looked_up_bit_by_bit() -> None:
    rng = np.random.default_rng(0)
    a, b = (int(each) for each in rng.integers(0, 2**32, 2))
    data = np.array([a, b], np.uint32)
    for truth in (0x96, 0xE8, 0x1B, 0xCA):
        got = lane(f"v_bitop3_b32 v3, v2, v4, 5 bitop3:{truth:#x}", data)
        for place in range(32):
            case = (a >> place & 1) * 4 + (b >> place & 1) * 2 + (5 >> place & 1)
            assert got >> place & 1 == truth >> case & 1


def test_stretches_of_two_over_pi_put_together_are_the_whole() -> None:
    one = np.array([1.0, 1.0, 1.0])
    high, middle, low = run("v_trig_preop_f64", one, np.array([0, 1, 2], np.uint32)).tolist()
    assert high < 2 / math.pi and high + (middle + low) == 2 / math.pi
    assert 0 < middle < 2.0**-52 and 0 <= low < 2.0**-105
    # A large angle's stretch begins where its own digits end.
    large = run("v_trig_preop_f64", np.array([2.0**100]), np.array([0], np.uint32))[0]
    exact = int(large * 2.0 ** (53 + 1123 - 1077))
    assert exact < 2**53


def test_bytes_of_shifted_integers_are_cut_to_their_range() -> None:
    a, b = np.array([1 << 20, -(1 << 20), 320]), np.array([-32, 64, -1])
    shift = np.full(3, 4, np.uint32)
    low, high = (each.astype(np.int32) for each in (a, b))
    assert run("v_ashr_pk_i8_i32", low, high, shift).tolist() == [0xFE7F, 0x0480, 0xFF14]
    assert run("v_ashr_pk_u8_i32", low, high, shift).tolist() == [0x00FF, 0x0400, 0x0014]
