"""Blackwell: B200, RTX 5090.

Rates: ``GUIDE`` (vector), the architecture's white paper (matrix), with sums in f32, dense.
"""

from __future__ import annotations

from scheduler.targets.model import KIB, MIB, Board, rates
from scheduler.targets.nvidia import GUIDE, gpu

_SM100 = gpu(100, shared_kib=228, ptx_version=86, has_specific_code=True)
_SM120 = gpu(
    120, shared_kib=100, max_warps=48, max_blocks=24, ptx_version=87, has_specific_code=True
)
GPUS = (_SM100, _SM120)

# 2,250 TFLOP/s of f16 by 148 SMs at 1850 MHz (B200); 8-bit integers: 4500 TOPS; TF32: 1,125.
_SM100_VECTOR = rates(f64=128, f32=256, f16=512)
_SM100_MATRIX = rates(f64=256, tf32=4096, f16=8192, bf16=8192, i8=16384)
# 209.5 TFLOP/s of f16 by 170 SMs at 2407 MHz (RTX 5090); 8-bit integers: 838 TOPS; TF32: 104.8.
_SM120_VECTOR = rates(f64=4, f32=256, f16=256)
_SM120_MATRIX = rates(tf32=256, f16=512, bf16=512, i8=2048)

BOARDS = (
    Board(
        name="B200",
        target=_SM100.processor,
        compute_units=148,
        clock_mhz=1850,
        memory_bytes_per_s=8000_000_000_000,
        l2_bytes=126 * MIB,
        last_level_bytes=0,
        instruction_cache_bytes=128 * KIB,
        vector=_SM100_VECTOR,
        matrix=_SM100_MATRIX,
        sources=(
            GUIDE,
            "NVIDIA DGX B200 data sheet, an eighth, dense: 8 TB/s, 2.25 PFLOPS f16",
        ),
    ),
    Board(
        name="GeForce RTX 5090",
        target=_SM120.processor,
        compute_units=170,
        clock_mhz=2407,
        memory_bytes_per_s=1792_000_000_000,
        l2_bytes=96 * MIB,
        last_level_bytes=0,
        instruction_cache_bytes=128 * KIB,
        vector=_SM120_VECTOR,
        matrix=_SM120_MATRIX,
        sources=(
            GUIDE,
            "NVIDIA RTX Blackwell paper, RTX 5090, f32 sums: 1792 GB/s, 209.5 TFLOPS f16",
        ),
    ),
)
