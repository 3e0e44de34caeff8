"""The scalar unit: carries, fields, conditions, and values that differ from wave to wave."""

from __future__ import annotations

import pytest

from tests.unit.isa.emulator.kernels import execute

HEAD = """
s_load_dwordx4 s[4:7], s[0:1], 0x0
s_load_dword s8, s[0:1], 0x10
s_waitcnt lgkmcnt(0)
"""


def scalars(body: str, *registers: str, scalar: int = 0, processor: str = "gfx942") -> list[int]:
    """The registers that a body leaves, by a store of each."""
    stores = "\n".join(
        f"v_mov_b32_e32 v1, {register}\nv_mov_b32_e32 v2, 0\n"
        f"global_store_dword v2, v1, s[4:5] offset:{4 * at}"
        for at, register in enumerate(registers)
    )
    return (
        execute(HEAD + body + "\n" + stores, scalar=scalar, processor=processor)
        .words(len(registers))
        .tolist()
    )


CASES = {
    "s_add_u32 s9, s8, 1\ns_addc_u32 s10, 0, 5": (0xFFFF_FFFF, [0, 6]),
    "s_sub_u32 s9, 0, s8\ns_subb_u32 s10, 7, 0": (1, [0xFFFF_FFFF, 6]),
    "s_add_i32 s9, s8, 1\ns_cselect_b32 s10, 3, 4": (0x7FFF_FFFF, [0x8000_0000, 3]),
    "s_mul_i32 s9, s8, -3\ns_mul_hi_i32 s10, s8, -3": (0x8000_0001, [0x7FFF_FFFD, 1]),
    "s_mul_hi_u32 s9, s8, s8\ns_mulk_i32 s8, 0x100\ns_mov_b32 s10, s8": (
        0xFFFF_FFFF,
        [0xFFFF_FFFE, 0xFFFF_FF00],
    ),
    "s_lshl_b64 s[10:11], s[8:9], 4\ns_mov_b32 s9, s11": (0xF000_000F, None),
    "s_ashr_i32 s9, s8, 4\ns_lshr_b32 s10, s8, 36": (0x8000_0010, [0xF800_0001, 0x0800_0001]),
    "s_bfe_u32 s9, s8, 0x80004\ns_bfe_i32 s10, s8, 0x80004": (0xABCD_EFFF, [0xFF, 0xFFFF_FFFF]),
    "s_brev_b32 s9, s8\ns_bcnt1_i32_b32 s10, s8": (0x8000_0003, [0xC000_0001, 3]),
    "s_ff1_i32_b32 s9, s8\ns_flbit_i32_b32 s10, s8": (0x00F0_0000, [20, 8]),
    "s_flbit_i32 s9, s8\ns_not_b32 s10, s8": (0xFFF0_0000, [12, 0x000F_FFFF]),
    "s_abs_i32 s9, s8\ns_sext_i32_i8 s10, s8": (0xFFFF_FF80, [0x80, 0xFFFF_FF80]),
    "s_min_i32 s9, s8, 5\ns_cselect_b32 s10, 1, 0": (0xFFFF_FFFE, [0xFFFF_FFFE, 1]),
    "s_max_u32 s9, s8, 5\ns_cselect_b32 s10, 1, 0": (3, [5, 0]),
    "s_bitset1_b32 s8, 31\ns_bitcmp1_b32 s8, 31\ns_cselect_b32 s10, 1, 0\ns_mov_b32 s9, s8": (
        4,
        [0x8000_0004, 1],
    ),
    "s_pack_ll_b32_b16 s9, s8, s8\ns_pack_hh_b32_b16 s10, s8, s8": (
        0x1234_5678,
        [0x5678_5678, 0x1234_1234],
    ),
    "s_lshl3_add_u32 s9, s8, 7\ns_cselect_b32 s10, 1, 0": (0x2000_0000, [7, 1]),
    "s_bfm_b32 s9, 4, s8\ns_movk_i32 s10, 0x8000": (8, [0xF00, 0xFFFF_8000]),
    "s_cmp_gt_i32 s8, 3\ns_cmov_b32 s9, 1\ns_cselect_b32 s10, 1, 0": (0xFFFF_FFFF, [0, 0]),
    "s_cmpk_gt_u32 s8, 0xfff0\ns_cmov_b32 s9, 1\ns_cselect_b32 s10, 1, 0": (0xFFF1, [1, 1]),
}


@pytest.mark.parametrize("body", sorted(CASES))
def test_scalar_instructions_give_known_answers(body: str) -> None:
    scalar, expected = CASES[body]
    found = scalars("s_mov_b32 s9, 0\n" + body, "s9", "s10", scalar=scalar)
    if expected is None:
        assert [found[1], found[0]] == [0x0000_00F0, 0xF]
    else:
        assert found == expected


def test_sums_of_64_bits_on_gfx12() -> None:
    body = """
    s_mov_b32 s9, 1
    s_add_nc_u64 s[10:11], s[8:9], s[8:9]
    s_mul_u64 s[12:13], s[8:9], s[8:9]
    """
    head = body.replace("\n    ", "\n")
    found = gfx12(head, "s10", "s11", "s12", "s13", scalar=0xFFFF_FFFF)
    value = 0x1_FFFF_FFFF
    total, square = 2 * value, value * value & (1 << 64) - 1
    assert found == [total & 0xFFFF_FFFF, total >> 32, square & 0xFFFF_FFFF, square >> 32]


def gfx12(body: str, *registers: str, scalar: int) -> list[int]:
    stores = "\n".join(
        f"v_mov_b32_e32 v1, {register}\nv_mov_b32_e32 v2, 0\n"
        f"global_store_b32 v2, v1, s[4:5] offset:{4 * at}"
        for at, register in enumerate(registers)
    )
    head = "s_load_b128 s[4:7], s[0:1], 0x0\ns_load_b32 s8, s[0:1], 0x10\ns_wait_kmcnt 0x0\n"
    return (
        execute(head + body + stores, scalar=scalar, processor="gfx1201")
        .words(len(registers))
        .tolist()
    )


def test_scalar_floats_on_gfx12() -> None:
    body = """
    s_cvt_f32_u32 s9, s8
    s_mul_f32 s10, s9, 0.5
    s_cvt_u32_f32 s11, s10
    s_fmac_f32 s9, s10, 2.0
    s_cmp_gt_f32 s9, 1.0
    s_cselect_b32 s12, 1, 0
    """.replace("\n    ", "\n")
    assert gfx12(body, "s11", "s9", "s12", scalar=7) == [3, 0x4160_0000, 1]


def test_values_differ_from_wave_to_wave() -> None:
    body = """
    v_readfirstlane_b32 s9, v0
    s_lshr_b32 s9, s9, 6
    s_mul_i32 s10, s9, s9
    s_add_u32 s10, s10, s8
    s_lshl_b32 s9, s9, 2
    v_mov_b32_e32 v1, s9
    v_mov_b32_e32 v2, s10
    global_store_dword v1, v2, s[4:5]
    """.replace("\n    ", "\n")
    found = execute(HEAD + body, threads=256, scalar=5).words(4)
    assert found.tolist() == [5, 6, 9, 14]
