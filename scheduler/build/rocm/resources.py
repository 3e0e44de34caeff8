"""The resources that a device function uses of an AMD GPU."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Resources:
    """As the compiler reports them (units in the names).

    ``vgpr`` is the allocated count (on gfx90a and later, architectural plus accumulation
    registers), of which ``agpr`` are accumulation registers.
    """

    vgpr: int
    agpr: int
    sgpr: int
    lds_bytes: int
    scratch_bytes: int
    vgpr_spills: int
    sgpr_spills: int
    code_bytes: int
    wavefront: int
    occupancy_waves_per_simd: int
    limiter: str
