"""The number of blocks of a kernel that an SM holds at once, and the resource that limits it.

NVIDIA's occupancy calculator (CUDA Toolkit, "CUDA Occupancy Calculator" and ``cuda_occupancy.h``);
on a device it is checked against ``cuOccupancyMaxActiveBlocksPerMultiprocessor``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scheduler.arithmetic import round_up
from scheduler.targets import Target
from scheduler.targets.nvidia import nvidia_hardware


class Limiter(StrEnum):
    """The resource that limits occupancy; ``warps`` and ``blocks`` are the hardware's own
    maxima."""

    REGISTERS = "registers"
    SHARED = "shared memory"
    WARPS = "warps"
    BLOCKS = "blocks"


@dataclass(frozen=True)
class Demand:
    """The resources that one kernel needs: registers per thread, shared memory (static and dynamic)
    and threads per block."""

    registers: int
    shared_bytes: int
    threads: int


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps per SM, and the blocks that each limit alone would allow."""

    blocks: int
    warps: int
    limiter: Limiter
    by_registers: int
    by_shared: int
    by_warps: int


def occupancy(demand: Demand, target: Target) -> Occupancy:
    """Return the blocks per SM; 0 if a block does not fit at all."""
    gpu = nvidia_hardware(target)
    warps = -(-demand.threads // gpu.wavefront)
    if demand.registers == 0:
        by_registers = gpu.max_blocks
    elif demand.registers > gpu.max_registers:
        by_registers = 0
    else:
        per_warp = round_up(demand.registers * gpu.wavefront, gpu.register_granule)
        # Each partition of an SM has its own registers.
        partition_warps = gpu.registers // gpu.warp_granule // per_warp
        by_registers = partition_warps * gpu.warp_granule // max(1, warps)
    shared_bytes = demand.shared_bytes + gpu.reserved_shared_bytes
    by_shared = gpu.shared_bytes // round_up(shared_bytes, gpu.shared_granule_bytes)
    by_warps = gpu.max_warps // max(1, warps)
    limits = (
        (Limiter.REGISTERS, by_registers),
        (Limiter.SHARED, by_shared),
        (Limiter.WARPS, by_warps),
        (Limiter.BLOCKS, gpu.max_blocks),
    )
    blocks = min(limit for _, limit in limits)
    limiter = next(name for name, limit in reversed(limits) if limit == blocks)
    return Occupancy(blocks, blocks * warps, limiter, by_registers, by_shared, by_warps)
