"""NVIDIA's GPUs.

CUDA C++ Programming Guide 13, "Compute capabilities": tables of features and of technical
specifications, and for the granules of registers and shared memory "CUDA Occupancy Calculator".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from scheduler.targets.model import HardwareFigure, HipHardware, Target
from scheduler.targets.terms import NVIDIA, Terms

_KIB = 1 << 10


@dataclass(frozen=True, kw_only=True)
class NvidiaHardware(HipHardware):
    """One NVIDIA GPU; all figures are per streaming multiprocessor (SM).

    A block's shared memory above 48 KiB must be dynamic; the system reserves
    ``reserved_shared_bytes`` of every block. Registers (32 bits, of one thread) are allocated to
    warps in granules of ``register_granule``; they are split evenly among ``warp_granule``
    partitions.
    """

    copies_asynchronously: ClassVar[bool] = True  # cp.async, since compute capability 8.0
    words: ClassVar[Terms] = NVIDIA
    figures: ClassVar[tuple[HardwareFigure, ...]] = (
        HardwareFigure("Registers", "per SM", "registers"),
        HardwareFigure("Granule", "registers per warp", "register_granule"),
        HardwareFigure("Warps", "max per SM", "max_warps"),
        HardwareFigure("Blocks", "max per SM", "max_blocks"),
        HardwareFigure("Shared memory", "B per SM", "shared_bytes"),
    )

    max_warps: int
    max_blocks: int
    shared_bytes: int
    registers: int = 65536
    register_granule: int = 256
    max_registers: int = 255
    warp_granule: int = 4
    shared_granule_bytes: int = 128
    reserved_shared_bytes: int = _KIB

    @property
    def capability(self) -> int:
        """The compute capability, as in its name: 90 for sm_90."""
        return int(self.processor.removeprefix("sm_"))


def nvidia_hardware(target: Target) -> NvidiaHardware:
    """Return the NVIDIA GPU that a target is. ``TypeError`` for another maker's."""
    if not isinstance(target.hardware, NvidiaHardware):
        raise TypeError(f"{target.name} is not an NVIDIA GPU")
    return target.hardware


def _gpu(capability: int, shared_kib: int, max_warps: int = 64, max_blocks: int = 32) -> Target:
    hardware = NvidiaHardware(
        processor=f"sm_{capability}",
        architecture="cuda",
        wavefront=32,
        max_warps=max_warps,
        max_blocks=max_blocks,
        shared_bytes=shared_kib * _KIB,
        # An SM's shared memory, less what the system reserves for one block.
        max_lds_per_block_bytes=(shared_kib - 1) * _KIB,
    )
    return Target(hardware.processor, "cuda", "cuda", hardware)


TARGETS = (
    _gpu(80, shared_kib=164),
    _gpu(86, shared_kib=100, max_warps=48, max_blocks=16),
    _gpu(89, shared_kib=100, max_warps=48, max_blocks=24),
    _gpu(90, shared_kib=228),
    _gpu(100, shared_kib=228),
    _gpu(120, shared_kib=100, max_warps=48, max_blocks=24),
)


def target_for(capability: int) -> Target | None:
    """Return the target for a GPU of that compute capability; None if none fits.

    Machine code runs on GPUs of the same major number whose minor number is no smaller (CUDA C++
    Programming Guide, "Binary compatibility").
    """
    serving = [
        target
        for target in TARGETS
        if nvidia_hardware(target).capability // 10 == capability // 10
        and nvidia_hardware(target).capability <= capability
    ]
    return max(serving, key=lambda target: nvidia_hardware(target).capability, default=None)
