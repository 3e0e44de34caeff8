"""What the generations of RDNA have in common."""

from __future__ import annotations

from typing import Any

from scheduler.targets.amd import AmdHardware
from scheduler.targets.template_limits import TemplateLimits

# Of 256 registers. LDS fits no more than 3 blocks of attention. Columns: from scheduler/cycles.
_LIMITS = TemplateLimits(
    gemm_registers=144,
    attention_registers=232,
    ample_attention_registers=232,
    attention_blocks_per_unit=3,
    attention_columns=128,
)


def gpu(processor: str, *, vgprs_per_simd: int, vgpr_granule: int, **facts: Any) -> AmdHardware:
    """Return a GPU with the waves and LDS (in CU mode) of every RDNA."""
    return AmdHardware(
        processor=processor,
        architecture="rdna",
        wavefront=32,
        vgprs_per_simd=vgprs_per_simd,
        vgpr_granule=vgpr_granule,
        max_waves_per_simd=16,
        simds_per_cu=2,
        limits=_LIMITS,
        partial_lines=0.45,
        units_per_pair=2,
        **facts,
    )
