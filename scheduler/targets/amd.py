"""AMD's GPUs: the properties that the files of the generations state.

Registers, waves and LDS: LLVM's AMDGPUBaseInfo.cpp (getTotalNumVGPRs, getVGPRAllocGranule,
getMaxWavesPerEU, getLdsDwGranularity) and AMDGPU.td (FeatureAddressableLocalMemorySize*), LLVM 22.
Boards: rates by architecture from its white paper, each checked against the peak that AMD publishes
for the product at its peak engine clock; bandwidth: the bus in bits, times the memory's transfers
per second, from AMD's product page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from scheduler.targets.cycle_model import Machine
from scheduler.targets.model import HardwareFigure, HipHardware, Target, engine_fact
from scheduler.targets.terms import AMD, Terms

SPECS = "ROCm documentation: AMD GPU specifications"  # compute units and caches of every board


class Feature(StrEnum):
    """Instructions that only some GPUs have, or in variants: what the emulator's rows need."""

    MFMA_FLUSHES_DENORMALS = "MFMA of f16 and bf16 flushes denormals"
    MFMA_DENORMALS = "MFMA of f16 and bf16 keeps denormals"
    XF32 = "MFMA of xf32"
    SPARSE_MFMA = "sparse MFMA"
    FNUZ_FLOAT8 = "8-bit floats without negative zero and infinities"
    OCP_FLOAT8 = "8-bit floats of the Open Compute Project"
    CDNA4 = "instructions since CDNA 4"  # LLVM: FeatureGFX950Insts
    WMMA_RDNA3 = "WMMA whose lanes hold A and B twice"
    WMMA_RDNA4 = "WMMA whose lanes hold A and B once"
    RDNA4_FLOAT8 = "dot products and conversions of 8-bit floats of RDNA 4"


def float8(rate: int) -> Mapping[str, int]:
    """Rates of both Open Compute Project formats; CDNA 3 multiplies different ones."""
    return {"f8e4m3fn": rate, "f8e5m2": rate}


@dataclass(frozen=True, kw_only=True)
class AmdHardware(HipHardware):
    """One AMD GPU.

    ``processor`` is LLVM's name (gfx942), ``architecture`` cdna or rdna. Registers are per lane and
    allocated in granules; ``lds_bytes`` are per compute unit (RDNA: in CU mode), also allocated in
    granules.
    """

    words: ClassVar[Terms] = AMD
    figures: ClassVar[tuple[HardwareFigure, ...]] = (
        HardwareFigure("VGPRs", "per SIMD", "vgprs_per_simd"),
        HardwareFigure("Granule", "VGPRs", "vgpr_granule"),
        HardwareFigure("Waves", "max per SIMD", "max_waves_per_simd"),
        HardwareFigure("LDS", "B per CU", "lds_bytes"),
    )

    max_blocks_per_unit: ClassVar[int] = 16
    vgprs_per_simd: int
    vgpr_granule: int
    max_waves_per_simd: int
    simds_per_cu: int
    lds_bytes: int = 65536
    lds_granule_bytes: int = 512
    machine: Machine | None = engine_fact(default=None)
    """The cycle model's figures; None: its times are not modelled."""
    emulated: bool = engine_fact(default=False)
    """Whether the wave emulator runs its instructions."""
    elf_machine: int = engine_fact()
    """EF_AMDGPU_MACH_AMDGCN_* (LLVM, llvm/BinaryFormat/ELF.h)."""
    major: int = engine_fact()
    """The major version of its instruction set: LLVM's name without its last two digits."""
    is_macro_of_generation: bool = engine_fact(default=False)
    """Whether headers test for the version (__GFX11__): all its GPUs have the same matrix
    instructions."""
    features: frozenset[Feature] = engine_fact(default=frozenset())
    sgprs_at_full_occupancy: int = engine_fact(default=0)
    """The most scalar registers of a wave with which a SIMD holds as many waves as it can; 0: no
    limit."""
    has_accumulation_registers: bool = engine_fact(default=False)
    """Whether accumulation registers share the file of the others (LLVM: FeatureGFX90AInsts)."""
    has_architected_flat_scratch: bool = engine_fact(default=False)
    clears_upper_halves: bool = engine_fact(default=False)
    """Whether a 16-bit result clears the upper half of its register."""
    buffers_check_by_stride: bool = engine_fact(default=False)
    """Whether the stride of a buffer's descriptor says how its range is checked."""
    stores_count_as_loads: bool = engine_fact(default=False)
    """Whether one counter counts loads and stores."""
    scalar_loads_have_own_counter: bool = engine_fact(default=False)
    """Whether scalar loads have a counter of their own, and each counter a wait instruction."""
    block_ids_in_trap_registers: bool = engine_fact(default=False)
    """Whether a wave starts with its block's ids in TTMP registers."""

    @property
    def macros(self) -> tuple[str, ...]:
        """The macros that the compiler defines for it."""
        return f"__{self.processor}__", f"__GFX{self.major}__"

    @property
    def matrix_macro(self) -> str:
        return self.macros[1 if self.is_macro_of_generation else 0]


def amd_hardware(target: Target) -> AmdHardware:
    """Return the AMD GPU that a target is or emulates. ``TypeError`` for another maker's."""
    if not isinstance(target.hardware, AmdHardware):
        raise TypeError(f"{target.name} is not an AMD GPU and does not emulate one")
    return target.hardware
