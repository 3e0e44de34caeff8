"""Values that cross lanes: reads of a lane, permutations, DPP, SDWA."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.isa.emulator.kernels import LOAD, STORE, execute

DATA = np.arange(64, dtype=np.uint32) * 3 + 100


def lanes(body: str, data: np.ndarray = DATA, processor: str = "gfx942", **more: int) -> list[int]:
    load, store, threads = LOAD, STORE, 64
    if not processor.startswith("gfx9"):
        load = load.replace("dwordx4", "b128").replace("load_dword ", "load_b32 ")
        store, threads = store.replace("dword", "b32"), 32
        if processor == "gfx1201":
            load = load.replace("s_waitcnt lgkmcnt(0)", "s_wait_kmcnt 0x0")
            load = load.replace("s_waitcnt vmcnt(0)", "s_wait_loadcnt 0x0")
    text = f"{load}\n{body}\n{store}"
    return execute(text, data, processor=processor, threads=threads, **more).words(threads).tolist()


def test_a_lane_is_read_and_written() -> None:
    body = "v_readlane_b32 s9, v2, 5\nv_mov_b32_e32 v3, s9\nv_writelane_b32 v3, 7, 9"
    assert lanes(body) == [7 if lane == 9 else 115 for lane in range(64)]


def test_a_lane_is_read_whether_it_is_on_or_not_and_the_first_only_of_those() -> None:
    body = """
    s_mov_b64 exec, 0xf0
    v_readfirstlane_b32 s9, v2
    v_readlane_b32 s10, v2, 63
    s_mov_b64 exec, 0
    v_readfirstlane_b32 s11, v2
    s_mov_b64 exec, -1
    v_mov_b32_e32 v3, s9
    v_writelane_b32 v3, s10, 1
    v_writelane_b32 v3, s11, 2
    """
    assert lanes(body)[:4] == [112, 289, 100, 112]


def test_lanes_are_counted_below_each() -> None:
    body = """
    v_mbcnt_lo_u32_b32 v3, -1, 0
    v_mbcnt_hi_u32_b32 v3, -1, v3
    """
    assert lanes(body) == list(range(64))
    odd = "s_mov_b32 s9, 0xaaaaaaaa\nv_mbcnt_lo_u32_b32 v3, s9, 5\nv_mbcnt_hi_u32_b32 v3, s9, v3"
    assert lanes(odd) == [5 + lane // 2 for lane in range(64)]


def test_backward_permutation_reads_where_addresses_say() -> None:
    body = """
    v_xor_b32_e32 v4, 1, v0
    v_lshlrev_b32_e32 v4, 2, v4
    ds_bpermute_b32 v3, v4, v2
    """
    assert lanes(body) == [100 + 3 * (lane ^ 1) for lane in range(64)]


def test_backward_permutation_of_lanes_that_are_off_is_zero() -> None:
    body = """
    v_mov_b32_e32 v3, 1
    v_mov_b32_e32 v4, 16
    s_mov_b64 exec, 0xf
    ds_bpermute_b32 v3, v4, v2
    s_mov_b64 exec, -1
    """
    assert lanes(body)[:5] == [0, 0, 0, 0, 1]


def test_forward_permutation_sends() -> None:
    body = """
    v_sub_u32_e32 v4, 63, v0
    v_lshlrev_b32_e32 v4, 2, v4
    ds_permute_b32 v3, v4, v2
    """
    assert lanes(body) == [100 + 3 * (63 - lane) for lane in range(64)]


SWIZZLES = {
    "swizzle(SWAP,16)": lambda lane: lane ^ 16,
    "swizzle(BROADCAST,8,3)": lambda lane: lane & ~7 | 3,
    "swizzle(REVERSE,4)": lambda lane: lane ^ 3,
    "swizzle(QUAD_PERM,3,2,0,1)": lambda lane: lane & ~3 | (3, 2, 0, 1)[lane & 3],
    'swizzle(BITMASK_PERM,"01pip")': lambda lane: lane & ~31 | (8 | lane & 7) ^ 2,
    "0x401f": lambda lane: lane ^ 16,
    "0x8055": lambda lane: lane & ~3 | 1,
}


@pytest.mark.parametrize("pattern", sorted(SWIZZLES))
def test_swizzles(pattern: str) -> None:
    meant = SWIZZLES[pattern]
    body = f"ds_swizzle_b32 v3, v2 offset:{pattern}"
    assert lanes(body) == [100 + 3 * meant(lane) for lane in range(64)]


DPP = {
    "quad_perm:[1,0,3,2]": lambda lane: lane ^ 1,
    "row_shl:1": lambda lane: lane + 1 if lane % 16 < 15 else None,
    "row_shr:3": lambda lane: lane - 3 if lane % 16 >= 3 else None,
    "row_ror:4": lambda lane: lane & ~15 | (lane - 4) & 15,
    "row_mirror": lambda lane: lane ^ 15,
    "row_half_mirror": lambda lane: lane ^ 7,
    "row_newbcast:5": lambda lane: lane & ~15 | 5,
    "wave_shl:1": lambda lane: lane + 1 if lane < 63 else None,
    "wave_ror:1": lambda lane: (lane - 1) % 64,
}


@pytest.mark.parametrize("control", sorted(DPP))
@pytest.mark.parametrize("bound", ["", " bound_ctrl:1"])
def test_dpp_reads_other_lanes(control: str, bound: str) -> None:
    """Where there is none, 0 is read (bound_ctrl) or nothing is written."""
    body = f"""
    v_mov_b32_e32 v3, 9
    s_nop 1
    v_mov_b32_dpp v3, v2 {control} row_mask:0xf bank_mask:0xf{bound}
    """
    expected = []
    for lane in range(64):
        source = DPP[control](lane)
        none = 0 if bound else 9
        expected.append(none if source is None else 100 + 3 * source)
    assert lanes(body) == expected


def test_broadcasts_of_rows_reduce_a_wave() -> None:
    """The sum over 64 lanes as compilers for GFX9 write it."""
    steps = [f"row_shr:{n} row_mask:0xf bank_mask:0xf" for n in (1, 2, 4, 8)]
    steps += ["row_bcast:15 row_mask:0xa bank_mask:0xf", "row_bcast:31 row_mask:0xc bank_mask:0xf"]
    body = ["v_mov_b32_e32 v3, v2"]
    for step in steps:
        zero = " bound_ctrl:1" if "shr" in step else ""
        body += ["v_mov_b32_e32 v4, 0", "s_nop 1", f"v_mov_b32_dpp v4, v3 {step}{zero}"]
        body += ["v_add_u32_e32 v3, v3, v4"]
    assert lanes("\n".join(body))[63] == int(DATA.sum())


def test_dpp_masks_rows_and_banks() -> None:
    body = """
    v_mov_b32_e32 v3, 9
    s_nop 1
    v_mov_b32_dpp v3, v2 quad_perm:[0,1,2,3] row_mask:0x5 bank_mask:0x3
    """
    assert lanes(body) == [
        100 + 3 * lane if lane // 16 in (0, 2) and lane % 16 < 8 else 9 for lane in range(64)
    ]


def test_dpp_reads_nothing_from_lanes_that_are_off() -> None:
    body = """
    v_mov_b32_e32 v3, 9
    s_mov_b64 exec, 0x5
    s_nop 1
    v_mov_b32_dpp v3, v2 quad_perm:[1,1,0,3] row_mask:0xf bank_mask:0xf
    s_mov_b64 exec, -1
    """
    assert lanes(body)[:4] == [9, 9, 100, 9]


SDWA = {
    "v_mov_b32_sdwa v3, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1": (
        lambda value, old: value >> 8 & 255
    ),
    "v_mov_b32_sdwa v3, sext(v2) dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_0": (
        lambda value, old: (value & 0xFFFF) - 2 * (value & 0x8000)
    ),
    "v_mov_b32_sdwa v3, v2 dst_sel:BYTE_2 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0": (
        lambda value, old: old & 0xFF00_FFFF | (value & 255) << 16
    ),
    "v_mov_b32_sdwa v3, v2 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:WORD_0": (
        lambda value, old: (value & 0xFFFF) << 16
    ),
    "v_add_u32_sdwa v3, v2, v2 dst_sel:DWORD dst_unused:UNUSED_PAD "
    "src0_sel:WORD_1 src1_sel:BYTE_3": (lambda value, old: (value >> 16) + (value >> 24)),
}


@pytest.mark.parametrize("body", sorted(SDWA))
def test_sdwa_selects_bytes_and_halves(body: str) -> None:
    draw = np.random.default_rng(3)
    data = draw.integers(0, 1 << 32, 64, dtype=np.uint32)
    found = lanes(f"v_mov_b32_e32 v3, 0x11223344\ns_nop 1\n{body}", data)
    expected = [SDWA[body](int(value), 0x1122_3344) & 0xFFFF_FFFF for value in data]
    assert found == expected


def test_rows_change_places_on_gfx950() -> None:
    for width in (16, 32):
        body = f"v_mov_b32_e32 v3, v0\nv_permlane{width}_swap_b32 v3, v2"
        expected = [
            lane if lane // width % 2 == 0 else 100 + 3 * (lane - width) for lane in range(64)
        ]
        assert lanes(body, processor="gfx950") == expected


def test_rows_are_permuted_on_gfx11() -> None:
    body = "s_mov_b32 s9, 0x76543210\ns_mov_b32 s10, 0xfedcba98\n"
    same = lanes(body + "v_permlane16_b32 v3, v2, s9, s10", processor="gfx1100")
    assert same == [100 + 3 * lane for lane in range(32)]
    crossed = lanes(body + "v_permlanex16_b32 v3, v2, s10, s9", processor="gfx1100")
    assert crossed == [100 + 3 * ((lane ^ 16) & 16 | (lane + 8) & 15) for lane in range(32)]


def test_two_registers_change_places() -> None:
    body = "v_mov_b32_e32 v3, v0\ns_mov_b64 exec, 0x3\nv_swap_b32 v3, v2\ns_mov_b64 exec, -1"
    assert lanes(body)[:4] == [100, 103, 2, 3]


def test_halves_of_two_registers_move_together() -> None:
    body = """
    v_mov_b32_e32 v5, v0
    v_mov_b32_e32 v4, v2
    v_pk_mov_b32 v[6:7], v[4:5], v[4:5] op_sel:[1,0]
    v_sub_u32_e32 v3, v7, v6
    """
    assert lanes(body) == [100 + 2 * lane for lane in range(64)]


def test_a_table_of_three_bits() -> None:
    """An exclusive or of three, and a choice: of halves too."""
    body = """
    v_not_b32_e32 v4, v2
    v_lshlrev_b32_e32 v5, 3, v0
    v_bitop3_b32 v3, v2, v0, v5 bitop3:0x96
    v_bitop3_b32 v6, v2, v0, v5 bitop3:0xca
    v_add_u32_e32 v3, v3, v6
    """
    expected = [
        (value ^ lane ^ 8 * lane) + (value & lane | ~value & 8 * lane)
        for lane, value in enumerate(DATA.tolist())
    ]
    assert lanes(body, processor="gfx950") == expected
    halves = """
    v_lshl_or_b32 v4, v2, 16, 5
    v_mov_b32_e32 v3, 0x30000
    v_bitop3_b16 v3, v4, v4, v4 bitop3:0x96 op_sel:[1,0,0,0]
    """
    assert lanes(halves, processor="gfx950") == [0x3_0000 | value for value in DATA.tolist()]


def test_registers_whose_number_is_computed() -> None:
    body = """
    v_mov_b32_e32 v10, 50
    v_mov_b32_e32 v11, 51
    v_mov_b32_e32 v12, 52
    s_mov_b32 s9, 2
    s_set_gpr_idx_on s9, gpr_idx(SRC0)
    v_mov_b32_e32 v4, v10
    s_set_gpr_idx_off
    s_mov_b32 s9, 1
    s_set_gpr_idx_on s9, gpr_idx(DST)
    v_mov_b32_e32 v5, v4
    s_set_gpr_idx_off
    v_add_u32_e32 v3, v6, v10
    """
    assert lanes(body) == [102] * 64
    rdna = """
    v_mov_b32_e32 v10, 50
    v_mov_b32_e32 v11, 51
    s_mov_b32 m0, 1
    v_movrels_b32_e32 v4, v10
    v_movreld_b32_e32 v5, v4
    v_add_nc_u32_e32 v3, v6, v10
    """
    assert lanes(rdna, processor="gfx1100") == [101] * 32
