"""AMD's boards, for speed-of-light figures. Every figure has its source beside it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from scheduler.targets.model import Board

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


def _float8(rate: int) -> Mapping[str, int]:
    """Rates of both Open Compute Project formats; CDNA 3 multiplies different ones."""
    return {"f8e4m3fn": rate, "f8e5m2": rate}


_CDNA2_VECTOR, _CDNA2_MATRIX = (
    _rates(f64=128, f32=128),
    _rates(f64=256, f32=256, f16=1024, bf16=1024, i8=1024),
)
_CDNA3_VECTOR, _CDNA3_MATRIX = (
    _rates(f64=128, f32=256),
    _rates(f64=256, f32=256, tf32=1024, f16=2048, bf16=2048, i8=4096),
)
_CDNA4_VECTOR, _CDNA4_MATRIX = (
    _rates(f64=128, f32=256),
    _rates(f64=128, f32=256, f16=4096, bf16=4096, i8=8192, **_float8(8192)),
)
_RDNA2_VECTOR, _RDNA2_MATRIX = _rates(f32=128, f16=256), _rates()
_RDNA3_VECTOR, _RDNA3_MATRIX = _rates(f32=256, f16=512), _rates(f16=512, bf16=512, i8=512)
_RDNA4_VECTOR, _RDNA4_MATRIX = (
    _rates(f32=256, f16=512),
    _rates(f16=1024, bf16=1024, i8=2048, **_float8(2048)),
)

# Bandwidth: the bus in bits, times the memory's transfers per second, from AMD's product page.
BOARDS = (
    Board(
        name="MI210",
        target="gfx90a",
        compute_units=104,
        clock_mhz=1700,
        memory_bytes_per_s=1638_400_000_000,
        l2_bytes=8 * _MIB,
        last_level_bytes=0,
        instruction_cache_bytes=32 * _KIB,
        vector=_CDNA2_VECTOR,
        matrix=_CDNA2_MATRIX,
        sources=(_SPECS, _CDNA2, "AMD Instinct MI210 product page: 1.6 TB/s, 181 TFLOPS f16"),
    ),
    Board(
        name="MI250X (one die)",
        target="gfx90a",
        compute_units=110,
        clock_mhz=1700,
        memory_bytes_per_s=1638_400_000_000,
        l2_bytes=8 * _MIB,
        last_level_bytes=0,
        instruction_cache_bytes=32 * _KIB,
        vector=_CDNA2_VECTOR,
        matrix=_CDNA2_MATRIX,
        sources=(_SPECS, _CDNA2, "AMD Instinct MI250X product page: 3.2 TB/s, 383 TFLOPS f16, two"),
    ),
    Board(
        name="MI300X",
        target="gfx942",
        compute_units=304,
        clock_mhz=2100,
        memory_bytes_per_s=5325 * _GB,
        l2_bytes=32 * _MIB,
        last_level_bytes=256 * _MIB,
        instruction_cache_bytes=64 * _KIB,
        vector=_CDNA3_VECTOR,
        matrix=_CDNA3_MATRIX,
        sources=(_SPECS, _CDNA3, "AMD Instinct MI300X product page: 5.3 TB/s, 1307 TFLOPS f16"),
    ),
    Board(
        name="MI355X",
        target="gfx950",
        compute_units=256,
        clock_mhz=2400,
        memory_bytes_per_s=8000 * _GB,
        l2_bytes=32 * _MIB,
        last_level_bytes=256 * _MIB,
        instruction_cache_bytes=64 * _KIB,
        vector=_CDNA4_VECTOR,
        matrix=_CDNA4_MATRIX,
        sources=(_SPECS, _CDNA4, "AMD Instinct MI355X product page: 8 TB/s, 2.5 PFLOPS f16"),
    ),
    Board(
        name="RX 6900 XT",
        target="gfx1030",
        compute_units=80,
        clock_mhz=2250,
        memory_bytes_per_s=512 * _GB,
        l2_bytes=4 * _MIB,
        last_level_bytes=128 * _MIB,
        instruction_cache_bytes=32 * _KIB,
        vector=_RDNA2_VECTOR,
        matrix=_RDNA2_MATRIX,
        sources=(_SPECS, _RDNA2, "AMD Radeon RX 6900 XT product page: 512 GB/s, 23.04 TFLOPS f32"),
    ),
    Board(
        name="W6800",
        target="gfx1030",
        compute_units=60,
        clock_mhz=2320,
        memory_bytes_per_s=512 * _GB,
        l2_bytes=4 * _MIB,
        last_level_bytes=128 * _MIB,
        instruction_cache_bytes=32 * _KIB,
        vector=_RDNA2_VECTOR,
        matrix=_RDNA2_MATRIX,
        sources=(_SPECS, _RDNA2, "AMD Radeon PRO W6800 product page: 512 GB/s, 17.83 TFLOPS f32"),
    ),
    Board(
        name="RX 7900 XTX",
        target="gfx1100",
        compute_units=96,
        clock_mhz=2500,
        memory_bytes_per_s=960 * _GB,
        l2_bytes=6 * _MIB,
        last_level_bytes=96 * _MIB,
        instruction_cache_bytes=32 * _KIB,
        vector=_RDNA3_VECTOR,
        matrix=_RDNA3_MATRIX,
        sources=(_SPECS, _RDNA3, "AMD Radeon RX 7900 XTX product page: 960 GB/s, 61.4 TFLOPS f32"),
    ),
    Board(
        name="RX 9070 XT",
        target="gfx1201",
        compute_units=64,
        clock_mhz=2970,
        memory_bytes_per_s=640 * _GB,
        l2_bytes=8 * _MIB,
        last_level_bytes=64 * _MIB,
        instruction_cache_bytes=32 * _KIB,
        vector=_RDNA4_VECTOR,
        matrix=_RDNA4_MATRIX,
        sources=(_SPECS, _RDNA4, "AMD Radeon RX 9070 XT product page: 640 GB/s, 48.7 TFLOPS f32"),
    ),
)
