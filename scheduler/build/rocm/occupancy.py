"""How many waves a SIMD can hold at once, and which resource says so.

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

_MAX_GROUPS_PER_CU = 16
_MAX_GROUPS_PER_WGP = 32
_SGPRS_BEFORE_LIMIT = 100  # gfx9: of 800, in granules of 16, for 8 waves


class Limiter(StrEnum):
    """What keeps the next wave out; ``waves`` is the hardware's own maximum."""

    VGPR = "VGPR"
    SGPR = "SGPR"
    LDS = "LDS"
    WORKGROUP = "workgroup"
    WAVES = "waves"


@dataclass(frozen=True)
class Demand:
    """What one kernel asks for.

    ``vgpr`` is the allocated count (with accumulation registers), ``workgroup`` the threads of a
    block, ``wgp_mode`` RDNA's pairing of two compute units. A kernel that may also be launched
    with smaller blocks has the least in ``smallest_workgroup``: the compiler then counts the block
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
    """Waves a SIMD, and each limit by itself."""

    waves: int
    limiter: Limiter
    by_vgpr: int
    by_sgpr: int
    by_lds: int
    by_workgroup: int


def occupancy(demand: Demand, target: Target, exact_lds: bool = False) -> Occupancy:
    """Waves a SIMD for that demand on that target.

    With ``exact_lds`` LDS is rounded up to what the hardware hands out, as newer LLVM does;
    otherwise it is counted as asked for, as the bundled compiler does.
    """
    gpu = amd_hardware(target)
    most = gpu.max_waves_per_simd
    by_vgpr = _by_vgpr(demand.vgpr, gpu)
    by_sgpr = most
    if gpu.architecture == "cdna" and demand.sgpr > _SGPRS_BEFORE_LIMIT:
        by_sgpr = most - 1
    by_workgroup = _by_groups(demand, gpu, 0)
    lds = _lds_bytes(demand, gpu, exact_lds)
    by_lds = _by_groups(demand, gpu, lds) if lds else most
    limits = (
        (Limiter.VGPR, by_vgpr),
        (Limiter.LDS, by_lds),
        (Limiter.WORKGROUP, by_workgroup),
        (Limiter.SGPR, by_sgpr),
    )
    waves = max(1, min(most, *(limit for _, limit in limits)))
    limiter = next((name for name, limit in limits if limit <= waves < most), Limiter.WAVES)
    return Occupancy(waves, limiter, by_vgpr, by_sgpr, by_lds, by_workgroup)


def resident_groups(demand: Demand, target: Target, exact_lds: bool = False) -> int:
    """Whole work-groups that a compute unit (a pair of them in ``wgp_mode``) holds at once: at
    least 1. Not what ``occupancy`` gives times the SIMDs: a group may have fewer waves than there
    are SIMDs, and the waves of a SIMD are rounded up there."""
    gpu = amd_hardware(target)
    held = occupancy(demand, target, exact_lds)
    waves = -(-demand.workgroup // gpu.wavefront)
    slots = min(held.by_vgpr, held.by_sgpr) * gpu.simds_per_cu * _units(demand)
    groups = _groups_of(waves, demand, gpu, _lds_bytes(demand, gpu, exact_lds))
    return max(1, min(groups, slots // waves))


def _lds_bytes(demand: Demand, gpu: AmdHardware, exact: bool) -> int:
    """As asked for, or rounded up to what the hardware hands out."""
    return round_up(demand.lds_bytes, gpu.lds_granule_bytes) if exact else demand.lds_bytes


def _units(demand: Demand) -> int:
    """Compute units that share a work-group's waves and LDS."""
    return 2 if demand.wgp_mode else 1


def _groups_of(waves: int, demand: Demand, gpu: AmdHardware, lds_bytes: int) -> int:
    """Groups of so many waves by the slots and LDS of a compute unit (or a pair of them)."""
    units = _units(demand)
    slots = gpu.max_waves_per_simd * gpu.simds_per_cu * units
    most_groups = _MAX_GROUPS_PER_WGP if demand.wgp_mode else _MAX_GROUPS_PER_CU
    groups = slots if waves == 1 else min(slots // waves, most_groups)
    if lds_bytes:
        groups = min(groups, gpu.lds_bytes * units // lds_bytes)
    return max(1, groups)


def _by_vgpr(vgpr: int, gpu: AmdHardware) -> int:
    """Waves that the vector registers allow: 512 a SIMD in granules of 8 on gfx942, and so on."""
    allocated = round_up(max(1, vgpr), gpu.vgpr_granule)
    return min(gpu.max_waves_per_simd, gpu.vgprs_per_simd // allocated)


def _by_groups(demand: Demand, gpu: AmdHardware, lds_bytes: int) -> int:
    """Waves a SIMD that come from whole work-groups on a compute unit (or a pair of them)."""
    simds = gpu.simds_per_cu * _units(demand)
    slots = gpu.max_waves_per_simd * simds
    largest = -(-demand.workgroup // gpu.wavefront)
    smallest = -(-(demand.smallest_workgroup or demand.workgroup) // gpu.wavefront)
    groups = _groups_of(smallest, demand, gpu, lds_bytes)
    total = groups * smallest
    full = largest * _groups_of(largest, demand, gpu, lds_bytes)
    if full >= total:
        total = full
    else:  # larger groups, as many of them, in the slots that are left
        total += groups * min((slots - total) // groups, largest - smallest)
    return min(gpu.max_waves_per_simd, -(-total // simds))
