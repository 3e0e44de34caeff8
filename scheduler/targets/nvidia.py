"""NVIDIA's GPUs: the properties that the files of the generations state.

CUDA C++ Programming Guide 13, "Compute capabilities": tables of features and of technical
specifications, and for the granules of registers and shared memory "CUDA Occupancy Calculator".
Boards: each rate was checked against the peak of the product's data sheet at its boost clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from scheduler.matrix_instructions import MatrixSet
from scheduler.targets.model import KIB, HardwareFigure, HipHardware, Target, engine_fact
from scheduler.targets.template_limits import TemplateLimits
from scheduler.targets.terms import NVIDIA, Terms

GUIDE = "CUDA C++ Programming Guide: throughput of native arithmetic instructions"


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
    reserved_shared_bytes: int = KIB

    ptx_version: int = engine_fact()
    """The first PTX version that has it: 80 for 8.0. Older drivers accept it, not a newer one."""
    has_specific_code: bool = engine_fact(default=False)
    """Whether it also has an architecture-specific variant, whose machine code runs on no other
    (sm_90a)."""

    @property
    def capability(self) -> int:
        """The compute capability, as in its name: 90 for sm_90."""
        return int(self.processor.removeprefix("sm_"))

    @property
    def specific(self) -> str:
        """The name of its architecture-specific variant; without one, its own."""
        return f"{self.processor}a" if self.has_specific_code else self.processor


def nvidia_hardware(target: Target) -> NvidiaHardware:
    """Return the NVIDIA GPU that a target is. ``TypeError`` for another maker's."""
    if not isinstance(target.hardware, NvidiaHardware):
        raise TypeError(f"{target.name} is not an NVIDIA GPU")
    return target.hardware


# Of 255 registers; measured.
_LIMITS = TemplateLimits(
    gemm_registers=144,
    attention_registers=216,
    ample_attention_registers=216,
    attention_blocks_per_unit=4,
    attention_columns=256,
)


def processor_name(capability: int) -> str:
    """Return the compiler's name for GPUs of a compute capability."""
    return f"sm_{capability}"


def gpu(
    capability: int, *, shared_kib: int, max_warps: int = 64, max_blocks: int = 32, **facts: Any
) -> NvidiaHardware:
    """Return the GPU of a compute capability."""
    return NvidiaHardware(
        processor=processor_name(capability),
        architecture="cuda",
        wavefront=32,
        max_warps=max_warps,
        max_blocks=max_blocks,
        shared_bytes=shared_kib * KIB,
        # An SM's shared memory, less what the system reserves for one block.
        max_lds_per_block_bytes=(shared_kib - 1) * KIB,
        matrix_sets=(MatrixSet.MMA,),
        limits=_LIMITS,
        **facts,
    )
