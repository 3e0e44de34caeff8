"""What the generations of RDNA have in common."""

from __future__ import annotations

from typing import Any

from scheduler.targets.amd import AmdHardware


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
        **facts,
    )
