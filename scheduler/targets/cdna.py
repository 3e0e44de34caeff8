"""What the generations of CDNA have in common."""

from __future__ import annotations

from typing import Any

from scheduler.targets.amd import AmdHardware
from scheduler.targets.template_limits import TemplateLimits

# Of 512 registers; half of them lets two waves share a SIMD. Columns: from scheduler/cycles.
_LIMITS = TemplateLimits(
    gemm_registers=320,
    gemm_registers_by_waves=True,
    attention_registers=512,
    ample_attention_registers=256,
    attention_blocks_per_unit=4,
    attention_columns=128,
    estimates_attention=True,
)


def gpu(processor: str, *, lds_bytes: int = 65536, **facts: Any) -> AmdHardware:
    """Return a GPU with the registers and waves of every CDNA."""
    return AmdHardware(
        processor=processor,
        architecture="cdna",
        wavefront=64,
        vgprs_per_simd=512,
        vgpr_granule=8,
        max_waves_per_simd=8,
        simds_per_cu=4,
        lds_bytes=lds_bytes,
        max_lds_per_block_bytes=lds_bytes,
        major=9,
        sgprs_at_full_occupancy=100,  # of 800, in granules of 16, for 8 waves
        has_accumulation_registers=True,
        clears_upper_halves=True,
        buffers_check_by_stride=True,
        stores_count_as_loads=True,
        limits=_LIMITS,
        reads_ahead_in_order=True,
        **facts,
    )
