"""NVIDIA's boards, for speed-of-light figures. Every figure has its source beside it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from scheduler.targets.model import Board

_MIB, _KIB = 1 << 20, 1 << 10
# Rates: CUDA C++ Programming Guide, "Arithmetic instructions" (vector; an FMA counts as two), and
# the architecture's white paper for matrix instructions with sums in f32, dense. Each was checked
# against the peak of the product's data sheet at its boost clock.
_GUIDE = "CUDA C++ Programming Guide: throughput of native arithmetic instructions"


def _rates(**rates: int) -> Mapping[str, int]:
    return MappingProxyType(rates)


# A100: 312 TFLOP/s of f16 by 108 SMs at 1410 MHz; RTX 3090: 71 (f32 sums) by 82 at 1695 MHz;
# H100 SXM: 989.4 by 132 at 1830 MHz;
# B200: 2,250 by 148 at 1850 MHz; RTX 4090: 165.2 (f32 sums) by 128 at 2520 MHz; RTX 5090: 209.5 by
# 170 at 2407 MHz. Integers of 8 bits, by the same papers: 624, 284, 1979, 4500, 660.6 and 838 TOPS.
# TF32, of all of them half of f16's with sums in f32: 156, 35.6, 494.7, 1,125, 82.6 and 104.8.
_SM80 = _rates(f64=64, f32=128, f16=512), _rates(f64=128, tf32=1024, f16=2048, bf16=2048, i8=4096)
_SM86 = _rates(f64=4, f32=256, f16=256), _rates(tf32=256, f16=512, bf16=512, i8=2048)
_SM89 = _rates(f64=4, f32=256, f16=256), _rates(tf32=256, f16=512, bf16=512, i8=2048)
_SM90 = _rates(f64=128, f32=256, f16=512), _rates(f64=256, tf32=2048, f16=4096, bf16=4096, i8=8192)
_SM100 = (
    _rates(f64=128, f32=256, f16=512),
    _rates(f64=256, tf32=4096, f16=8192, bf16=8192, i8=16384),
)
_SM120 = _rates(f64=4, f32=256, f16=256), _rates(tf32=256, f16=512, bf16=512, i8=2048)

BOARDS = (
    Board(
        name="A100-SXM4-80GB",
        target="sm_80",
        compute_units=108,
        clock_mhz=1410,
        memory_bytes_per_s=2039_000_000_000,
        l2_bytes=40 * _MIB,
        last_level_bytes=0,
        instruction_cache_bytes=128 * _KIB,
        vector=_SM80[0],
        matrix=_SM80[1],
        sources=(_GUIDE, "NVIDIA A100 80GB SXM data sheet: 2039 GB/s, 312 TFLOPS f16"),
    ),
    Board(
        name="GeForce RTX 3090",
        target="sm_86",
        compute_units=82,
        clock_mhz=1695,
        memory_bytes_per_s=936_000_000_000,
        l2_bytes=6 * _MIB,
        last_level_bytes=0,
        instruction_cache_bytes=128 * _KIB,
        vector=_SM86[0],
        matrix=_SM86[1],
        sources=(
            _GUIDE,
            "NVIDIA Ampere GA102 white paper, RTX 3090, f32 sums: 936 GB/s, 71 TFLOPS f16",
        ),
    ),
    Board(
        name="GeForce RTX 4090",
        target="sm_89",
        compute_units=128,
        clock_mhz=2520,
        memory_bytes_per_s=1008_000_000_000,
        l2_bytes=72 * _MIB,
        last_level_bytes=0,
        instruction_cache_bytes=128 * _KIB,
        vector=_SM89[0],
        matrix=_SM89[1],
        sources=(
            _GUIDE,
            "NVIDIA Ada white paper, RTX 4090, f32 sums: 1008 GB/s, 165.2 TFLOPS f16",
        ),
    ),
    Board(
        name="H100 80GB HBM3",
        target="sm_90",
        compute_units=132,
        clock_mhz=1830,
        memory_bytes_per_s=3352_000_000_000,
        l2_bytes=50 * _MIB,
        last_level_bytes=0,
        instruction_cache_bytes=128 * _KIB,
        vector=_SM90[0],
        matrix=_SM90[1],
        sources=(_GUIDE, "NVIDIA H100 SXM data sheet, dense: 3.35 TB/s, 989.4 TFLOPS f16"),
    ),
    Board(
        name="H200",
        target="sm_90",
        compute_units=132,
        clock_mhz=1830,
        memory_bytes_per_s=4800_000_000_000,
        l2_bytes=50 * _MIB,
        last_level_bytes=0,
        instruction_cache_bytes=128 * _KIB,
        vector=_SM90[0],
        matrix=_SM90[1],
        sources=(_GUIDE, "NVIDIA H200 SXM data sheet, dense: 4.8 TB/s, 989.4 TFLOPS f16"),
    ),
    Board(
        name="B200",
        target="sm_100",
        compute_units=148,
        clock_mhz=1850,
        memory_bytes_per_s=8000_000_000_000,
        l2_bytes=126 * _MIB,
        last_level_bytes=0,
        instruction_cache_bytes=128 * _KIB,
        vector=_SM100[0],
        matrix=_SM100[1],
        sources=(
            _GUIDE,
            "NVIDIA DGX B200 data sheet, an eighth, dense: 8 TB/s, 2.25 PFLOPS f16",
        ),
    ),
    Board(
        name="GeForce RTX 5090",
        target="sm_120",
        compute_units=170,
        clock_mhz=2407,
        memory_bytes_per_s=1792_000_000_000,
        l2_bytes=96 * _MIB,
        last_level_bytes=0,
        instruction_cache_bytes=128 * _KIB,
        vector=_SM120[0],
        matrix=_SM120[1],
        sources=(
            _GUIDE,
            "NVIDIA RTX Blackwell paper, RTX 5090, f32 sums: 1792 GB/s, 209.5 TFLOPS f16",
        ),
    ),
)
