"""What RDNA has of its own: two operations in one, halves by name, masks of 32 bits."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.isa.emulator.kernels import execute

DATA = np.random.default_rng(9).integers(0, 1 << 32, 32, dtype=np.uint32)
LOAD = """
s_load_b128 s[4:7], s[0:1], 0x0
s_load_b32 s8, s[0:1], 0x10
s_waitcnt lgkmcnt(0)
v_lshlrev_b32_e32 v1, 2, v0
global_load_b32 v2, v1, s[6:7]
s_waitcnt vmcnt(0)
"""
LOAD12 = LOAD.replace("s_waitcnt lgkmcnt(0)", "s_wait_kmcnt 0x0").replace(
    "s_waitcnt vmcnt(0)", "s_wait_loadcnt 0x0"
)


def lanes(body: str, processor: str = "gfx1100", scalar: int = 0) -> list[int]:
    load = LOAD if processor == "gfx1100" else LOAD12
    done = execute(
        f"{load}\n{body}\nglobal_store_b32 v1, v3, s[4:5]",
        DATA,
        processor=processor,
        threads=32,
        scalar=scalar,
    )
    assert not done.run.unknown
    return done.words(32).tolist()


BOTH = pytest.mark.parametrize("processor", ["gfx1100", "gfx1201"])


@BOTH
def test_both_of_two_operations_read_before_either_writes(processor: str) -> None:
    body = """
    v_mov_b32_e32 v4, v0
    v_dual_mov_b32 v4, v1 :: v_dual_mov_b32 v1, v4
    v_dual_add_nc_u32 v5, 1, v4 :: v_dual_mov_b32 v6, 7
    v_lshlrev_b32_e32 v3, 1, v1
    v_add_nc_u32_e32 v3, v3, v6
    v_dual_mov_b32 v1, v4 :: v_dual_lshlrev_b32 v8, 1, v4
    """.replace(
        "v_dual_add_nc_u32 v5, 1, v4 :: v_dual_mov_b32 v6, 7",
        "v_dual_mov_b32 v6, 7 :: v_dual_add_nc_u32 v5, 1, v4",
    )
    assert lanes(body, processor) == [2 * lane + 7 for lane in range(32)]


@BOTH
def test_a_dual_choice_reads_the_mask(processor: str) -> None:
    body = """
    v_cmp_gt_u32_e32 vcc_lo, 5, v0
    v_dual_mov_b32 v4, 3 :: v_dual_mov_b32 v5, 4
    v_dual_cndmask_b32 v6, v5, v4 :: v_dual_mov_b32 v3, 1
    v_mov_b32_e32 v3, v6
    """
    assert lanes(body, processor) == [3] * 5 + [4] * 27


@BOTH
def test_a_comparison_may_switch_lanes_off(processor: str) -> None:
    body = """
    v_mov_b32_e32 v3, 0
    s_mov_b32 s9, exec_lo
    v_cmpx_gt_u32_e32 6, v0
    v_mov_b32_e32 v3, 9
    s_mov_b32 exec_lo, s9
    """
    assert lanes(body, processor) == [9] * 6 + [0] * 26


@BOTH
def test_carries_go_through_scalar_registers_of_32_bits(processor: str) -> None:
    body = """
    v_add_co_u32 v4, s9, v2, v2
    v_add_co_ci_u32_e64 v5, null, 0, 0, s9
    v_lshl_or_b32 v3, v5, 31, 0
    """
    assert lanes(body, processor) == [(value >> 31) << 31 for value in DATA.tolist()]


def test_halves_have_names_on_gfx11() -> None:
    body = """
    v_mov_b32_e32 v3, 0x11112222
    v_mov_b16_e32 v3.h, v2.l
    v_and_b16 v3.l, 0xff, v2.h
    """
    expected = [(value & 0xFFFF) << 16 | value >> 16 & 0xFF for value in DATA.tolist()]
    assert lanes(body) == expected


def test_a_masked_save_of_32_lanes() -> None:
    body = """
    v_mov_b32_e32 v3, 1
    v_cmp_lt_u32_e64 s9, v0, s8
    s_and_saveexec_b32 s10, s9
    s_cbranch_execz .LBB0_2
    v_mov_b32_e32 v3, 2
    .LBB0_2:
    s_or_b32 exec_lo, exec_lo, s10
    """
    assert lanes(body, scalar=3) == [2] * 3 + [1] * 29
    assert lanes(body, scalar=0) == [1] * 32


@BOTH
def test_lanes_of_a_row_are_shared(processor: str) -> None:
    found = lanes("v_mov_b32_dpp v3, v2 row_share:3 row_mask:0xf bank_mask:0xf", processor)
    assert found == [int(DATA[lane & 16 | 3]) for lane in range(32)]
    found = lanes("v_mov_b32_dpp v3, v2 dpp8:[7,6,5,4,3,2,1,0]", processor)
    assert found == [int(DATA[lane ^ 7]) for lane in range(32)]


@BOTH
def test_a_matrix_instruction_where_lanes_are_off_is_found(processor: str) -> None:
    """What fills the operands of those lanes may be behind the same condition."""
    sources = "v[10:17], v[10:17]" if processor == "gfx1100" else "v[10:13], v[10:13]"
    product = f"v_wmma_f32_16x16x16_f16 v[20:27], {sources}, v[20:27]"
    whole = f"s_mov_b32 exec_lo, -1\n{product}\nv_mov_b32_e32 v3, v20"
    some = f"s_mov_b32 exec_lo, 0xff\n{product}\ns_mov_b32 exec_lo, -1\nv_mov_b32_e32 v3, v20"
    load = LOAD if processor == "gfx1100" else LOAD12
    for values in (True, False):
        found = [
            execute(
                *(f"{load}\n{body}\nglobal_store_b32 v1, v3, s[4:5]", DATA),
                processor=processor,
                threads=32,
                values=values,
            ).run.findings
            for body in (whole, some)
        ]
        assert found[0] == ()
        (one,) = found[1]
        assert "v_wmma_f32_16x16x16_f16 where lanes are off" in one.what
        assert (one.count, one.address) == (24, None)
