"""The number of waves that a SIMD can hold at once, and the resource that limits it.

The formula is LLVM's, so that it agrees with the ``; Occupancy:`` of every listing:
``AMDGPUSubtarget::getOccupancyWithWorkGroupSizes`` (waves by work-group size and LDS) and
``GCNSubtarget::getOccupancyWithNumVGPRs`` and ``...NumSGPRs``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scheduler.arithmetic import round_up
from scheduler.targets import Target
from scheduler.targets.amd import AmdHardware, amd_hardware


class Limiter(StrEnum):
    """The resource that limits occupancy; ``waves`` is the hardware's own maximum."""

    VGPR = "VGPR"
    SGPR = "SGPR"
    LDS = "LDS"
    WORKGROUP = "workgroup"
    WAVES = "waves"


@dataclass(frozen=True)
class Demand:
    """The resources that one kernel needs.

    ``vgpr`` is the allocated count (with accumulation registers), ``workgroup`` the threads per
    block, ``wgp_mode`` RDNA's pairing of two compute units. For a kernel that may also be launched
    with smaller blocks, ``smallest_workgroup`` is the smallest: the compiler then counts the block
    size that fills the compute unit best. 0 stands for ``workgroup``.
    """

    vgpr: int
    sgpr: int
    lds_bytes: int
    workgroup: int
    wgp_mode: bool = False
    smallest_workgroup: int = 0


@dataclass(frozen=True)
class Occupancy:
    """Waves per SIMD, and each limit separately."""

    waves: int
    limiter: Limiter
    by_vgpr: int
    by_sgpr: int
    by_lds: int
    by_workgroup: int


def occupancy(demand: Demand, target: Target, exact_lds: bool = False) -> Occupancy:
    """Return the waves per SIMD for that demand on that target.

    With ``exact_lds``, LDS is rounded up to the hardware's allocation granule, as newer LLVM does;
    otherwise the requested size counts, as in the bundled compiler.
    """
    gpu = amd_hardware(target)
    max_waves = gpu.max_waves_per_simd
    # 512 vector registers per SIMD, in granules of 8 on gfx942, and so on.
    allocated_vgprs = round_up(max(1, demand.vgpr), gpu.vgpr_granule)
    by_vgpr = min(max_waves, gpu.vgprs_per_simd // allocated_vgprs)
    by_sgpr = max_waves
    if 0 < gpu.sgprs_at_full_occupancy < demand.sgpr:
        by_sgpr = max_waves - 1
    by_workgroup = _waves_per_simd(demand, gpu, 0)
    lds = _lds_bytes(demand, gpu, exact_lds)
    by_lds = _waves_per_simd(demand, gpu, lds) if lds else max_waves
    limits = (
        (Limiter.VGPR, by_vgpr),
        (Limiter.LDS, by_lds),
        (Limiter.WORKGROUP, by_workgroup),
        (Limiter.SGPR, by_sgpr),
    )
    waves = max(1, min(max_waves, *(limit for _, limit in limits)))
    limiter = next((name for name, limit in limits if limit <= waves < max_waves), Limiter.WAVES)
    return Occupancy(waves, limiter, by_vgpr, by_sgpr, by_lds, by_workgroup)


def resident_groups(demand: Demand, target: Target, exact_lds: bool = False) -> int:
    """Return the whole work-groups that a compute unit (a pair with ``wgp_mode``) holds at once: at
    least 1. This is not ``occupancy`` times the SIMDs: a group may have fewer waves than there are
    SIMDs, and ``occupancy`` rounds up the waves per SIMD."""
    gpu = amd_hardware(target)
    allowed = occupancy(demand, target, exact_lds)
    waves = -(-demand.workgroup // gpu.wavefront)
    slots = min(allowed.by_vgpr, allowed.by_sgpr) * gpu.simds_per_cu * _compute_units(demand)
    groups = _resident_groups(waves, demand, gpu, _lds_bytes(demand, gpu, exact_lds))
    return max(1, min(groups, slots // waves))


def _lds_bytes(demand: Demand, gpu: AmdHardware, exact: bool) -> int:
    """Return the requested LDS bytes, or with ``exact`` rounded up to the allocation granule."""
    return round_up(demand.lds_bytes, gpu.lds_granule_bytes) if exact else demand.lds_bytes


def _compute_units(demand: Demand) -> int:
    """Return the number of compute units that share a work-group's waves and LDS."""
    return 2 if demand.wgp_mode else 1


def _resident_groups(waves: int, demand: Demand, gpu: AmdHardware, lds_bytes: int) -> int:
    """Return the groups of ``waves`` waves that fit the slots and LDS of a compute unit (or a
    pair)."""
    units = _compute_units(demand)
    slots = gpu.max_waves_per_simd * gpu.simds_per_cu * units
    max_groups = gpu.max_blocks_per_unit * units
    groups = slots if waves == 1 else min(slots // waves, max_groups)
    if lds_bytes:
        groups = min(groups, gpu.lds_bytes * units // lds_bytes)
    return max(1, groups)


def _waves_per_simd(demand: Demand, gpu: AmdHardware, lds_bytes: int) -> int:
    """Return the waves per SIMD of whole work-groups on a compute unit (or a pair)."""
    simds = gpu.simds_per_cu * _compute_units(demand)
    slots = gpu.max_waves_per_simd * simds
    max_group_waves = -(-demand.workgroup // gpu.wavefront)
    min_group_waves = -(-(demand.smallest_workgroup or demand.workgroup) // gpu.wavefront)
    groups = _resident_groups(min_group_waves, demand, gpu, lds_bytes)
    total_waves = groups * min_group_waves
    full_size_waves = max_group_waves * _resident_groups(max_group_waves, demand, gpu, lds_bytes)
    if full_size_waves >= total_waves:
        total_waves = full_size_waves
    else:  # the same number of groups, made larger in the remaining slots
        total_waves += groups * min(
            (slots - total_waves) // groups, max_group_waves - min_group_waves
        )
    return min(gpu.max_waves_per_simd, -(-total_waves // simds))
