"""AMD's GPUs, and the emulation of each on the CPU.

Registers, waves and LDS: LLVM's AMDGPUBaseInfo.cpp (getTotalNumVGPRs, getVGPRAllocGranule,
getMaxWavesPerEU, getLdsDwGranularity) and AMDGPU.td (FeatureAddressableLocalMemorySize*), LLVM 22.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from scheduler.targets.model import HardwareFigure, HipHardware, Target
from scheduler.targets.terms import AMD, Terms


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

    vgprs_per_simd: int
    vgpr_granule: int
    max_waves_per_simd: int
    simds_per_cu: int
    lds_bytes: int = 65536
    lds_granule_bytes: int = 512

    @property
    def direct_load_bytes(self) -> int:
        return _DIRECT_LOAD_BYTES.get(self.processor, 0)


# For ``buffer_load_* ... lds``: LLVM's FeatureLDSDMAInsts (AMDGPU.td), 16 bytes FeatureGFX950Insts.
_DIRECT_LOAD_BYTES = {"gfx90a": 4, "gfx942": 4, "gfx950": 16, "gfx1030": 4}


def amd_hardware(target: Target) -> AmdHardware:
    """Return the AMD GPU that a target is or emulates. ``TypeError`` for another maker's."""
    if not isinstance(target.hardware, AmdHardware):
        raise TypeError(f"{target.name} is not an AMD GPU and does not emulate one")
    return target.hardware


def _cdna(processor: str, lds_bytes: int = 65536, lds_granule_bytes: int = 512) -> AmdHardware:
    return AmdHardware(
        processor=processor,
        architecture="cdna",
        wavefront=64,
        vgprs_per_simd=512,
        vgpr_granule=8,
        max_waves_per_simd=8,
        simds_per_cu=4,
        lds_bytes=lds_bytes,
        lds_granule_bytes=lds_granule_bytes,
        max_lds_per_block_bytes=lds_bytes,
    )


def _rdna(processor: str, vgprs_per_simd: int, vgpr_granule: int) -> AmdHardware:
    return AmdHardware(
        processor=processor,
        architecture="rdna",
        wavefront=32,
        vgprs_per_simd=vgprs_per_simd,
        vgpr_granule=vgpr_granule,
        max_waves_per_simd=16,
        simds_per_cu=2,
    )


_GPUS = (
    _cdna("gfx90a"),
    _cdna("gfx942"),
    _cdna("gfx950", lds_bytes=163840, lds_granule_bytes=1280),
    _rdna("gfx1030", vgprs_per_simd=1024, vgpr_granule=16),
    _rdna("gfx1100", vgprs_per_simd=1536, vgpr_granule=24),
    _rdna("gfx1151", vgprs_per_simd=1536, vgpr_granule=24),
    _rdna("gfx1201", vgprs_per_simd=1536, vgpr_granule=24),
)
# The GPU that is emulated by default, so that its name is short.
_FIRST_EMULATED = "gfx942"

TARGETS = tuple(Target(gpu.processor, gpu.architecture, "rocm", gpu) for gpu in _GPUS)


def _emulation(gpu: AmdHardware) -> Target:
    name = "cpu" if gpu.processor == _FIRST_EMULATED else f"cpu-{gpu.processor}"
    return Target(name, "cpu", "emulation", gpu, emulates=gpu.processor)


EMULATIONS = tuple(
    _emulation(gpu) for gpu in sorted(_GPUS, key=lambda gpu: gpu.processor != _FIRST_EMULATED)
)
