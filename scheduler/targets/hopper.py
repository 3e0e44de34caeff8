"""Hopper: H100, H200.

Rates: ``GUIDE`` (vector), the architecture's white paper (matrix), with sums in f32, dense.
"""

from __future__ import annotations

from scheduler.targets.model import KIB, MIB, Board, rates
from scheduler.targets.nvidia import GUIDE, gpu

_SM90 = gpu(90, shared_kib=228, ptx_version=80, has_specific_code=True, has_wgmma=True)
GPUS = (_SM90,)

# 989.4 TFLOP/s of f16 by 132 SMs at 1830 MHz; 8-bit integers: 1979 TOPS; TF32: 494.7.
_SM90_VECTOR = rates(f64=128, f32=256, f16=512)
_SM90_MATRIX = rates(f64=256, tf32=2048, f16=4096, bf16=4096, i8=8192)

BOARDS = (
    Board(
        name="H100 80GB HBM3",
        target=_SM90.processor,
        compute_units=132,
        clock_mhz=1830,
        memory_bytes_per_s=3352_000_000_000,
        l2_bytes=50 * MIB,
        last_level_bytes=0,
        instruction_cache_bytes=128 * KIB,
        vector=_SM90_VECTOR,
        matrix=_SM90_MATRIX,
        sources=(GUIDE, "NVIDIA H100 SXM data sheet, dense: 3.35 TB/s, 989.4 TFLOPS f16"),
    ),
    Board(
        name="H200",
        target=_SM90.processor,
        compute_units=132,
        clock_mhz=1830,
        memory_bytes_per_s=4800_000_000_000,
        l2_bytes=50 * MIB,
        last_level_bytes=0,
        instruction_cache_bytes=128 * KIB,
        vector=_SM90_VECTOR,
        matrix=_SM90_MATRIX,
        sources=(GUIDE, "NVIDIA H200 SXM data sheet, dense: 4.8 TB/s, 989.4 TFLOPS f16"),
    ),
)
