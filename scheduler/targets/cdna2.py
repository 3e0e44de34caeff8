"""CDNA 2: MI210, MI250X."""

from __future__ import annotations

from dataclasses import replace

from scheduler.matrix_instructions import MatrixSet
from scheduler.targets import cdna, cdna3
from scheduler.targets.amd import SPECS, Feature
from scheduler.targets.cycle_model import Constant, exact, pipe_rates
from scheduler.targets.model import KIB, MIB, Board, rates

_NAME = "gfx90a"
_DOCUMENT = "AMD CDNA 2 white paper, table of operations a clock and CU"
_VECTOR = rates(f64=128, f32=128)
_MATRIX = rates(f64=256, f32=256, f16=1024, bf16=1024, i8=1024)

_MACHINE = replace(
    cdna3.MACHINE,
    line=64,  # ROCm Compute Profiler, vL1D: 64 B on MI200, 128 B on MI300
    xcds=1,
    matrix_rates=pipe_rates(_MATRIX),
    instruction_line=64,
    l1_bytes=16 << 10,
    l2_bytes_cycle=exact(
        *(4096 / 110, "bytes per cycle and CU"),
        "CDNA 2 white paper: 128 B per cycle from each of 32 channels of a die",
    ),
    l2_latency=Constant(180, 230, 320, "cycles", "The MALL is Open: MI250X"),
    memory_latency=Constant(450, 620, 900, "cycles", "The MALL is Open: MI250X, no MALL"),
    memory_share=Constant(
        *(0.88, 0.80, 0.70, "of the published bandwidth"),
        "estimate: BabelStream on MI250X, 1.3 of 1.6",
    ),
    last_level_bytes_s=exact(0, "bytes per second", "CDNA 2 white paper: no cache after L2"),
    matrix_clock=Constant(
        *(1.0, 1.0, 0.85, "of the peak clock while the matrix pipes are busy"),
        "estimate: large products lower the clock of CDNA 2 less than of CDNA 3",
    ),
)

GPU = cdna.gpu(
    _NAME,
    elf_machine=0x3F,
    matrix_sets=(MatrixSet.MFMA, MatrixSet.MFMA_I8_K16),
    features=frozenset({Feature.MFMA_FLUSHES_DENORMALS}),
    direct_load_bytes=4,
    emulated=True,
    machine=_MACHINE,
)
GPUS = (GPU,)

BOARDS = (
    Board(
        name="MI210",
        target=_NAME,
        compute_units=104,
        clock_mhz=1700,
        memory_bytes_per_s=1638_400_000_000,
        l2_bytes=8 * MIB,
        last_level_bytes=0,
        instruction_cache_bytes=32 * KIB,
        vector=_VECTOR,
        matrix=_MATRIX,
        sources=(SPECS, _DOCUMENT, "AMD Instinct MI210 product page: 1.6 TB/s, 181 TFLOPS f16"),
    ),
    Board(
        name="MI250X (one die)",
        target=_NAME,
        compute_units=110,
        clock_mhz=1700,
        memory_bytes_per_s=1638_400_000_000,
        l2_bytes=8 * MIB,
        last_level_bytes=0,
        instruction_cache_bytes=32 * KIB,
        vector=_VECTOR,
        matrix=_MATRIX,
        sources=(
            SPECS,
            _DOCUMENT,
            "AMD Instinct MI250X product page: 3.2 TB/s, 383 TFLOPS f16, two",
        ),
    ),
)
