"""What can be compiled for, and the hardware behind each name.

Every figure has its source beside it. ``cpu`` is the emulation: the same HIP source built for
the host; what it emulates (wavefront, matrix instructions) is that of ``emulates``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

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


@dataclass(frozen=True)
class Board:
    """One product, for speed-of-light figures.

    ``vector`` and ``matrix`` are floating-point operations a clock and compute unit by dtype (an
    FMA counts as two); a dtype that is missing has no published rate. Bandwidth is in bytes a
    second, caches in bytes: ``l2_bytes`` and ``last_level_bytes`` (Infinity Cache; 0 without) of
    the whole device, ``instruction_cache_bytes`` of the compute units that share one. A device is
    what HIP counts as one: of an MI250X one of its two dies.
    """

    name: str
    target: str
    compute_units: int
    clock_mhz: int  # peak engine clock
    memory_bytes_per_s: int
    l2_bytes: int
    last_level_bytes: int
    instruction_cache_bytes: int
    vector: Mapping[str, int]
    matrix: Mapping[str, int]
    sources: tuple[str, ...]

    def peak_flops(self, dtype: str, use_matrix: bool = True) -> float | None:
        """Operations a second for a dtype (f64, f32, f16, bf16), on matrix cores where there are
        any for it; None where no rate is published."""
        rate = self.matrix.get(dtype) if use_matrix else None
        rate = rate or self.vector.get(dtype)
        return None if rate is None else float(rate) * self.compute_units * self.clock_mhz * 1e6


_MIB, _KIB, _GB = 1 << 20, 1 << 10, 10**9
# Compute units and caches of every board: ROCm documentation, "AMD GPU specifications"
# (reference/gpu-specs). Rates by architecture: the white papers named here; each was checked
# against the peak that AMD publishes for the product at its peak engine clock.
_SPECS = "ROCm documentation: AMD GPU specifications"
_CDNA2 = "AMD CDNA 2 white paper, table of operations a clock and CU"
_CDNA3 = "AMD CDNA 3 white paper, table of operations a clock and CU"
_CDNA4 = "AMD CDNA 4 white paper, table of operations a clock and CU"
_RDNA2 = "AMD RDNA 2 instruction set architecture: 64 lanes, packed f16"
_RDNA3 = "AMD RDNA 3 instruction set architecture: dual issue, WMMA"
_RDNA4 = "AMD RDNA 4 instruction set architecture: dual issue, WMMA"


def _rates(**rates: int) -> Mapping[str, int]:
    return MappingProxyType(rates)


_CDNA2_RATES = (_rates(f64=128, f32=128), _rates(f64=256, f32=256, f16=1024, bf16=1024))
_CDNA3_RATES = (_rates(f64=128, f32=256), _rates(f64=256, f32=256, f16=2048, bf16=2048))
_CDNA4_RATES = (_rates(f64=128, f32=256), _rates(f64=128, f32=256, f16=4096, bf16=4096))
_RDNA2_RATES = (_rates(f32=128, f16=256), _rates())
_RDNA3_RATES = (_rates(f32=256, f16=512), _rates(f16=512, bf16=512))
_RDNA4_RATES = (_rates(f32=256, f16=512), _rates(f16=1024, bf16=1024))

# Bandwidth: the bus in bits, times the memory's transfers a second, as AMD's product page gives it.
_BOARDS = tuple(
    Board(name, target, units, mhz, bandwidth, l2, last, code, *rates, (_SPECS, source, page))
    for name, target, units, mhz, bandwidth, l2, last, code, rates, source, page in (
        ("MI210", "gfx90a", 104, 1700, 1638_400_000_000, 8 * _MIB, 0, 32 * _KIB,
         _CDNA2_RATES, _CDNA2, "AMD Instinct MI210 product page: 1.6 TB/s, 181 TFLOPS f16"),
        ("MI250X (one die)", "gfx90a", 110, 1700, 1638_400_000_000, 8 * _MIB, 0, 32 * _KIB,
         _CDNA2_RATES, _CDNA2, "AMD Instinct MI250X product page: 3.2 TB/s, 383 TFLOPS f16, two"),
        ("MI300X", "gfx942", 304, 2100, 5325 * _GB, 32 * _MIB, 256 * _MIB, 64 * _KIB,
         _CDNA3_RATES, _CDNA3, "AMD Instinct MI300X product page: 5.3 TB/s, 1307 TFLOPS f16"),
        ("MI355X", "gfx950", 256, 2400, 8000 * _GB, 32 * _MIB, 256 * _MIB, 64 * _KIB,
         _CDNA4_RATES, _CDNA4, "AMD Instinct MI355X product page: 8 TB/s, 2.5 PFLOPS f16"),
        ("RX 6900 XT", "gfx1030", 80, 2250, 512 * _GB, 4 * _MIB, 128 * _MIB, 32 * _KIB,
         _RDNA2_RATES, _RDNA2, "AMD Radeon RX 6900 XT product page: 512 GB/s, 23.04 TFLOPS f32"),
        ("W6800", "gfx1030", 60, 2320, 512 * _GB, 4 * _MIB, 128 * _MIB, 32 * _KIB,
         _RDNA2_RATES, _RDNA2, "AMD Radeon PRO W6800 product page: 512 GB/s, 17.83 TFLOPS f32"),
        ("RX 7900 XTX", "gfx1100", 96, 2500, 960 * _GB, 6 * _MIB, 96 * _MIB, 32 * _KIB,
         _RDNA3_RATES, _RDNA3, "AMD Radeon RX 7900 XTX product page: 960 GB/s, 61.4 TFLOPS f32"),
        ("RX 9070 XT", "gfx1201", 64, 2970, 640 * _GB, 8 * _MIB, 64 * _MIB, 32 * _KIB,
         _RDNA4_RATES, _RDNA4, "AMD Radeon RX 9070 XT product page: 640 GB/s, 48.7 TFLOPS f32"),
    )
)  # fmt: skip


def boards(target: str) -> tuple[Board, ...]:
    """The common boards of a target, the reference one first; none for the emulation."""
    return tuple(board for board in _BOARDS if board.target == target)


def board_of(target: str, device_name: str) -> Board | None:
    """The board that a device calls itself; None for one that is not in the table."""
    return next((b for b in boards(target) if b.name.split(" (")[0] in device_name), None)
