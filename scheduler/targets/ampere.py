"""Ampere: A100, RTX 3090.

Rates: ``GUIDE`` (vector), the architecture's white paper (matrix), with sums in f32, dense.
"""

from __future__ import annotations

from scheduler.targets.model import KIB, MIB, Board, rates
from scheduler.targets.nvidia import GUIDE, gpu

_SM80 = gpu(80, shared_kib=164, ptx_version=70)
_SM86 = gpu(86, shared_kib=100, max_warps=48, max_blocks=16, ptx_version=71)
GPUS = (_SM80, _SM86)

# 312 TFLOP/s of f16 by 108 SMs at 1410 MHz (A100); 8-bit integers: 624 TOPS; TF32: 156.
_SM80_VECTOR = rates(f64=64, f32=128, f16=512)
_SM80_MATRIX = rates(f64=128, tf32=1024, f16=2048, bf16=2048, i8=4096)
# 71 TFLOP/s of f16 by 82 SMs at 1695 MHz (RTX 3090); 8-bit integers: 284 TOPS; TF32: 35.6.
_SM86_VECTOR = rates(f64=4, f32=256, f16=256)
_SM86_MATRIX = rates(tf32=256, f16=512, bf16=512, i8=2048)

BOARDS = (
    Board(
        name="A100-SXM4-80GB",
        target=_SM80.processor,
        compute_units=108,
        clock_mhz=1410,
        memory_bytes_per_s=2039_000_000_000,
        l2_bytes=40 * MIB,
        last_level_bytes=0,
        instruction_cache_bytes=128 * KIB,
        vector=_SM80_VECTOR,
        matrix=_SM80_MATRIX,
        sources=(GUIDE, "NVIDIA A100 80GB SXM data sheet: 2039 GB/s, 312 TFLOPS f16"),
    ),
    Board(
        name="GeForce RTX 3090",
        target=_SM86.processor,
        compute_units=82,
        clock_mhz=1695,
        memory_bytes_per_s=936_000_000_000,
        l2_bytes=6 * MIB,
        last_level_bytes=0,
        instruction_cache_bytes=128 * KIB,
        vector=_SM86_VECTOR,
        matrix=_SM86_MATRIX,
        sources=(
            GUIDE,
            "NVIDIA Ampere GA102 white paper, RTX 3090, f32 sums: 936 GB/s, 71 TFLOPS f16",
        ),
    ),
)
