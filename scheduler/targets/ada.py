"""Ada Lovelace: RTX 4090.

Rates: ``GUIDE`` (vector), the architecture's white paper (matrix), with sums in f32, dense.
"""

from __future__ import annotations

from scheduler.targets.model import KIB, MIB, Board, rates
from scheduler.targets.nvidia import GUIDE, gpu

_SM89 = gpu(89, shared_kib=100, max_warps=48, max_blocks=24, ptx_version=78)
GPUS = (_SM89,)

# 165.2 TFLOP/s of f16 (f32 sums) by 128 SMs at 2520 MHz; 8-bit integers: 660.6 TOPS; TF32: 82.6.
_SM89_VECTOR = rates(f64=4, f32=256, f16=256)
_SM89_MATRIX = rates(tf32=256, f16=512, bf16=512, i8=2048)

BOARDS = (
    Board(
        name="GeForce RTX 4090",
        target=_SM89.processor,
        compute_units=128,
        clock_mhz=2520,
        memory_bytes_per_s=1008_000_000_000,
        l2_bytes=72 * MIB,
        last_level_bytes=0,
        instruction_cache_bytes=128 * KIB,
        vector=_SM89_VECTOR,
        matrix=_SM89_MATRIX,
        sources=(
            GUIDE,
            "NVIDIA Ada white paper, RTX 4090, f32 sums: 1008 GB/s, 165.2 TFLOPS f16",
        ),
    ),
)
