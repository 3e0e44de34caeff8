"""RDNA 4: RX 9070 XT."""

from __future__ import annotations

from dataclasses import replace

from scheduler.matrix_instructions import MatrixSet
from scheduler.targets import rdna, rdna3
from scheduler.targets.amd import SPECS, Feature, float8
from scheduler.targets.cycle_model import Constant, pipe_rates
from scheduler.targets.model import GB, KIB, MIB, Board, rates

_NAME = "gfx1201"
_DOCUMENT = "AMD RDNA 4 instruction set architecture: dual issue, WMMA"
_VECTOR = rates(f32=256, f16=512)
_MATRIX = rates(f16=1024, bf16=1024, i8=2048, **float8(2048))

_MACHINE = replace(
    rdna3.MACHINE,
    b96_groups=(),
    b128_groups=(),
    matrix_rates=pipe_rates(_MATRIX, bits4=4096),
    l1_latency=Constant(80, 100, 130, "cycles", "Chips and Cheese: RDNA 4"),
    l2_latency=Constant(220, 260, 330, "cycles", "Chips and Cheese: RDNA 4"),
    last_level_bytes_s=Constant(
        *(4.0e12, 3.0e12, 2.4e12, "bytes per second"), "Chips and Cheese: RDNA 4, Infinity Cache"
    ),
)

GPU = rdna.gpu(
    _NAME,
    vgprs_per_simd=1536,
    vgpr_granule=24,
    major=12,
    elf_machine=0x4E,
    matrix_sets=(MatrixSet.WMMA_RDNA4,),
    is_macro_of_generation=True,
    features=frozenset({Feature.WMMA_RDNA4, Feature.OCP_FLOAT8, Feature.RDNA4_FLOAT8}),
    block_ids_in_trap_registers=True,
    scalar_loads_have_own_counter=True,
    emulated=True,
    machine=_MACHINE,
)
GPUS = (GPU,)

BOARDS = (
    Board(
        name="RX 9070 XT",
        target=_NAME,
        compute_units=64,
        clock_mhz=2970,
        memory_bytes_per_s=640 * GB,
        l2_bytes=8 * MIB,
        last_level_bytes=64 * MIB,
        instruction_cache_bytes=32 * KIB,
        vector=_VECTOR,
        matrix=_MATRIX,
        sources=(SPECS, _DOCUMENT, "AMD Radeon RX 9070 XT product page: 640 GB/s, 48.7 TFLOPS f32"),
    ),
)
