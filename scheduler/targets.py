"""What can be compiled for, and the hardware behind each name.

Every figure has its source beside it. ``cpu`` is the emulation: the same HIP source built for
the host; what it emulates (wavefront, matrix instructions) is that of ``emulates``.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.outcome import UserError


@dataclass(frozen=True)
class Target:
    """One thing to compile for.

    ``matrix`` is the family of matrix instructions: mfma (CDNA), wmma (RDNA3 and later) or "".
    ``vgprs_per_simd`` and ``vgpr_granule`` are in registers of one lane; ``lds_bytes`` a compute
    unit (RDNA: in CU mode) and ``max_lds_per_block_bytes`` what one block may ask for.
    """

    name: str
    family: str  # cdna, rdna, nvidia, cpu
    wavefront: int
    matrix: str
    vgprs_per_simd: int = 0
    vgpr_granule: int = 0
    max_waves_per_simd: int = 0
    simds_per_cu: int = 0
    lds_bytes: int = 0
    max_lds_per_block_bytes: int = 65536
    emulates: str = ""


# Registers, waves and LDS: LLVM's AMDGPUBaseInfo.cpp (getTotalNumVGPRs, getVGPRAllocGranule,
# getMaxWavesPerEU) and AMDGPU.td (FeatureAddressableLocalMemorySize*), LLVM 22.
_TARGETS = {
    target.name: target
    for target in (
        Target("gfx90a", "cdna", 64, "mfma", 512, 8, 8, 4, 65536),
        Target("gfx942", "cdna", 64, "mfma", 512, 8, 8, 4, 65536),
        Target("gfx950", "cdna", 64, "mfma", 512, 8, 8, 4, 163840, 163840),
        Target("gfx1030", "rdna", 32, "", 1024, 16, 16, 2, 65536),
        Target("gfx1100", "rdna", 32, "wmma", 1536, 24, 16, 2, 65536),
        Target("gfx1201", "rdna", 32, "wmma", 1536, 24, 16, 2, 65536),
        Target("cpu", "cpu", 64, "mfma", emulates="gfx942"),
        Target("cpu-gfx90a", "cpu", 64, "mfma", emulates="gfx90a"),
        Target("cpu-gfx950", "cpu", 64, "mfma", max_lds_per_block_bytes=163840, emulates="gfx950"),
        Target("cpu-gfx1030", "cpu", 32, "", emulates="gfx1030"),
        Target("cpu-gfx1100", "cpu", 32, "wmma", emulates="gfx1100"),
        Target("cpu-gfx1201", "cpu", 32, "wmma", emulates="gfx1201"),
    )
}


def names() -> tuple[str, ...]:
    """All targets, in the order in which they are shown."""
    return tuple(_TARGETS)


def find(name: str) -> Target:
    """The target of that name; ``UserError`` that lists the known ones where there is none."""
    try:
        return _TARGETS[name]
    except KeyError:
        known = ", ".join(_TARGETS)
        raise UserError(f"target {name!r} is not known; use one of: {known}") from None
