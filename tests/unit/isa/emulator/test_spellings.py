"""Later spellings of instructions are the oldest ones' rows."""

from __future__ import annotations

import pytest

from scheduler.isa.rocm.instruction_set.spellings import canonical_name

SPELLED = {
    "v_add_nc_u32_e32": "v_add_u32",
    "v_add_co_ci_u32_e64": "v_addc_co_u32",
    "v_mad_co_u64_u32": "v_mad_u64_u32",
    "v_max_num_f32_e32": "v_max_f32",
    "v_cvt_f32_f16_sdwa": "v_cvt_f32_f16",
    "v_mov_b32_e64_dpp8": "v_mov_b32",
    "s_and_not1_saveexec_b32": "s_andn2_saveexec_b32",
    "s_add_co_ci_u32": "s_addc_u32",
    "s_load_b512": "s_load_dwordx16",
    "s_buffer_load_b32": "s_buffer_load_dword",
    "global_load_d16_hi_b16": "global_load_short_d16_hi",
    "global_load_u8": "global_load_ubyte",
    "global_store_d16_hi_b8": "global_store_byte_d16_hi",
    "scratch_load_i16": "scratch_load_sshort",
    "global_atomic_max_i32": "global_atomic_smax",
    "global_atomic_cmpswap_b64": "global_atomic_cmpswap_x2",
    "global_atomic_add_f32": "global_atomic_add_f32",
    "ds_load_2addr_stride64_b32": "ds_read2st64_b32",
    "ds_store_b16_d16_hi": "ds_write_b16_d16_hi",
    "ds_storexchg_rtn_b32": "ds_storexchg_rtn_b32",
    "ds_read_b64_tr_b16": "ds_read_b64_tr_b16",
    "v_mfma_f32_16x16x16_f16": "v_mfma_f32_16x16x16f16",
}


@pytest.mark.parametrize("spelling", sorted(SPELLED))
def test_one_name_for_each_instruction(spelling: str) -> None:
    assert canonical_name(spelling) == SPELLED[spelling]
