"""Listings that mean harm, or nothing: bounded, and never more than a line for the user."""

from __future__ import annotations

import random

import pytest

from scheduler.errors import UserError
from scheduler.isa.rocm.emulator.launch import Launch
from scheduler.isa.rocm.emulator.limits import Limits
from scheduler.isa.rocm.emulator.memory import Memory
from scheduler.isa.rocm.emulator.program import program_of
from scheduler.isa.rocm.emulator.run import EmulationResult, run
from tests.unit.isa.emulator.kernels import IN, LOAD, OUT, STORE, listing

LIMITS = Limits(steps=20_000, calls=5_000, pages=64, recorded=100_000)


def outcome(text: str) -> EmulationResult | None:
    """What a run gives; None where the user is told."""
    memory = Memory(pages=64)
    memory.map("out", OUT, 4096)
    memory.map("in", IN, 4096)
    try:
        launch = Launch("k", (1, 1, 1), (64, 1, 1), 0, (OUT, IN, 3))
        return run(program_of(text, "k"), launch, memory, limits=LIMITS)
    except UserError as error:
        assert "\n" not in str(error)
        return None


ODD = [
    "v_mov_b32_e32 v1, " + "neg(" * 5000 + "v1" + ")" * 5000,
    "v_add_u32_e32 v1, v1, v[3:99999999999999999999]",
    "v_mfma_f32_32x32x8_f16 v1, v2, v3, v4",
    "global_load_dwordx4 v[1:4], v[2:3], off offset:99999999999999999999999",
    "ds_read_b32 v1, v2 offset:-99999999999999999999999",
    "v_mov_b32_dpp v1, v2 quad_perm:[99999999999999999999,1,1,1] row_mask:0xf bank_mask:0xf",
    "v_mov_b32_dpp v1, v2 row_shl:-99999999999999999999",
    "s_lshl_b64 s[4:5], s[4:5], 0x99999999999999999999999999",
    "s_mov_b64 exec, 0x1.5",
    "s_load_dwordx16 s[96:111], s[0:1], 0x0",
    "s_load_dwordx16 exec, s[0:1], 0x0",
    "s_mov_b64 vcc_hi, exec_hi",
    "s_cselect_b64 null, scc, scc",
    "v_readlane_b32 exec, v1, v2",
    "v_writelane_b32 s1, v1, 70",
    "v_pk_fma_f16 v1, 1.0, v2, s[1:1] op_sel:[7,7,7] op_sel_hi:[9]",
    "buffer_load_dword v1, v2, s[100:103], s4 offen idxen",
    'ds_swizzle_b32 v1, v2 offset:swizzle(BITMASK_PERM,"zzzzz")',
    "ds_swizzle_b32 v1, v2 offset:swizzle(REVERSE,99999999999999)",
    "v_perm_b32 v1, v2",
    "v_cmp_lt_i32_e32 v1, v2, v3",
    "v_dual_mov_b32 v1, v2 ::",
    "v_dual_mov_b32 :: v_dual_mov_b32 :: v_dual_mov_b32",
    "global_atomic_cmpswap v1, v2, s[4:5] sc0",
    "scratch_store_dword off, v1, off offset:5000000000000",
    "s_set_gpr_idx_on 5, gpr_idx(SRC0,DST)\nv_mov_b32_e32 v250, v255",
]


@pytest.mark.parametrize("text", ODD, ids=lambda text: text[:40])
def test_operands_that_no_instruction_has_end_in_a_name(text: str) -> None:
    for processor in ("gfx942", "gfx1201"):
        outcome(listing(f"{text}\ns_nop 0", processor, lds=64, scratch=4))


def test_descriptors_that_ask_for_too_much_are_told() -> None:
    text = listing("s_nop 0")
    for change in (
        ("group_segment_fixed_size 0", "group_segment_fixed_size 99999999999"),
        ("private_segment_fixed_size 0", "private_segment_fixed_size 99999999999"),
        ("kernarg_size 24", "kernarg_size 99999999999"),
    ):
        assert outcome(text.replace(*change)) is None
    with pytest.raises(UserError, match="fewer blocks"):
        launch = Launch("k", (64, 1, 1), (1024, 1, 1), 0, (OUT, IN, 3))
        run(program_of(listing("s_nop 0", scratch=1 << 16), "k"), launch, Memory(), range(64))


def test_random_changes_of_a_kernel_never_raise() -> None:
    body = f"""{LOAD}
    v_cmp_gt_u32_e32 vcc, s8, v0
    s_and_saveexec_b64 s[10:11], vcc
    s_cbranch_execz .LBB0_2
    v_mad_u64_u32 v[4:5], s[12:13], v2, v2, v[2:3]
    ds_write2_b32 v1, v2, v4 offset0:1 offset1:7
    ds_bpermute_b32 v3, v1, v2
    v_mov_b32_dpp v3, v2 row_shr:1 row_mask:0xf bank_mask:0xf
    v_mfma_f32_16x16x16_f16 v[8:11], v[2:3], v[4:5], v[8:11]
    global_atomic_add v3, v1, v2, s[4:5] sc0
    buffer_load_dword v3, v1, s[12:15], 0 offen
    .LBB0_2:
    s_or_b64 exec, exec, s[10:11]
    v_pk_fma_f16 v3, v3, v2, v4 op_sel_hi:[1,0,1]
    {STORE}
    """
    text = listing(body, lds=512)
    draw = random.Random(13)
    letters = "v0123456789s[]:,abx-| _.\n\t"
    ran = 0
    for _ in range(300):
        changed = list(text)
        for _ in range(draw.randint(1, 6)):
            changed[draw.randrange(len(changed))] = draw.choice(letters)
        ran += outcome("".join(changed)) is not None
    assert ran > 50
