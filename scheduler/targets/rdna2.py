"""RDNA 2: RX 6900 XT, W6800."""

from __future__ import annotations

from scheduler.targets import rdna
from scheduler.targets.amd import SPECS
from scheduler.targets.model import GB, KIB, MIB, Board, rates

_NAME = "gfx1030"
_DOCUMENT = "AMD RDNA 2 instruction set architecture: 64 lanes, packed f16"
_VECTOR = rates(f32=128, f16=256)
_MATRIX = rates()

GPU = rdna.gpu(
    _NAME,
    vgprs_per_simd=1024,
    vgpr_granule=16,
    major=10,
    elf_machine=0x36,
    direct_load_bytes=4,
)
GPUS = (GPU,)

BOARDS = (
    Board(
        name="RX 6900 XT",
        target=_NAME,
        compute_units=80,
        clock_mhz=2250,
        memory_bytes_per_s=512 * GB,
        l2_bytes=4 * MIB,
        last_level_bytes=128 * MIB,
        instruction_cache_bytes=32 * KIB,
        vector=_VECTOR,
        matrix=_MATRIX,
        sources=(
            SPECS,
            _DOCUMENT,
            "AMD Radeon RX 6900 XT product page: 512 GB/s, 23.04 TFLOPS f32",
        ),
    ),
    Board(
        name="W6800",
        target=_NAME,
        compute_units=60,
        clock_mhz=2320,
        memory_bytes_per_s=512 * GB,
        l2_bytes=4 * MIB,
        last_level_bytes=128 * MIB,
        instruction_cache_bytes=32 * KIB,
        vector=_VECTOR,
        matrix=_MATRIX,
        sources=(SPECS, _DOCUMENT, "AMD Radeon PRO W6800 product page: 512 GB/s, 17.83 TFLOPS f32"),
    ),
)
