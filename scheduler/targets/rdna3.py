"""RDNA 3 and 3.5: RX 7900 XTX, Strix Halo."""

from __future__ import annotations

from dataclasses import replace

from scheduler.matrix_instructions import MatrixSet
from scheduler.targets import rdna
from scheduler.targets.amd import SPECS, Feature
from scheduler.targets.cdna3 import CDNA3_GROUPS
from scheduler.targets.cycle_model import Constant, Machine, exact, pipe_rates
from scheduler.targets.model import GB, KIB, MIB, Board, rates

_NAME = "gfx1100"
_DOCUMENT = "AMD RDNA 3 instruction set architecture: dual issue, WMMA"
_VECTOR = rates(f32=256, f16=512)
_MATRIX = rates(f16=512, bf16=512, i8=512)

_RDNA_ISSUE = "RDNA ISA: 32 lanes in one cycle; one instruction per wave and cycle"
MACHINE = Machine(
    lds_banks=32,
    b96_groups=CDNA3_GROUPS,
    b128_groups=CDNA3_GROUPS,
    matrix_rates=pipe_rates(_MATRIX, bits4=1024),
    f64_conversions_double=False,
    line=128,
    xcds=1,
    l1_bytes=32 << 10,
    instruction_line=128,
    cadence=exact(1, "cycles", _RDNA_ISSUE),
    vector=exact(1, "cycles", _RDNA_ISSUE),
    vector_latency=Constant(5, 5, 6, "cycles", "LLVM: GFX11SpeedModel, Write32Bit has 5"),
    transcendental=exact(4, "cycles", "RDNA ISA: 8 lanes per cycle; LLVM: WriteTrans32"),
    double=Constant(16, 32, 32, "cycles", "estimate: a 16th to a 32nd of FP32"),
    quarter=exact(4, "cycles", "LLVM: WriteIntMul of GFX11SpeedModel"),
    matrix_read=Constant(4, 8, 16, "cycles", "estimate: LLVM has hazards of WMMA, no cycles"),
    matrix_chain=Constant(0, 0, 8, "cycles", "estimate, as CDNA"),
    scalar=exact(1, "cycles", _RDNA_ISSUE),
    branch=Constant(8, 16, 32, "cycles", "LLVM: WriteBranch has 32 in GFX11SpeedModel"),
    barrier=Constant(4, 16, 40, "cycles", "estimate"),
    block_start=Constant(100, 300, 800, "cycles", "estimate"),
    lds_latency=Constant(20, 30, 50, "cycles", "LLVM: WriteLDS has 20; Chips and Cheese"),
    lds_port=exact(128, "bytes per cycle", "RDNA ISA: 32 banks of 4 bytes for two SIMDs"),
    lds_ports=1,
    lds_queue=Constant(64, 32, 16, "cycles", "estimate"),
    address=exact(1, "cycles", "RDNA ISA: addresses of 32 lanes per cycle"),
    l1_bytes_cycle=exact(128, "bytes per cycle", "RDNA white paper: one 128 B line per cycle"),
    l1_latency=Constant(90, 110, 140, "cycles", "Chips and Cheese: RDNA 3, vector L0"),
    l2_bytes_cycle=exact(
        *(64, "bytes per cycle and CU"), "RDNA white paper: 64 B per cycle from L1 to L2"
    ),
    l2_latency=Constant(230, 270, 340, "cycles", "Chips and Cheese: RDNA 3"),
    memory_latency=Constant(500, 650, 950, "cycles", "Chips and Cheese: RDNA 3, VRAM"),
    memory_queue=Constant(256, 128, 64, "cycles", "estimate"),
    memory_share=Constant(
        *(0.92, 0.85, 0.75, "of the published bandwidth"), "Chips and Cheese: RDNA 3, VRAM"
    ),
    last_level_bytes_s=Constant(
        *(3.5e12, 2.7e12, 2.2e12, "bytes per second"), "AMD: 3.5 TB/s peak; Chips and Cheese: 2.7"
    ),
    scalar_latency=Constant(30, 50, 200, "cycles", "Chips and Cheese: RDNA 3, scalar cache"),
    fetch_latency=Constant(150, 270, 400, "cycles", "estimate: as L2"),
    fetch_ahead=Constant(
        *(3, 3, 1, "lines of code prefetched"), "RDNA ISA: S_INST_PREFETCH, up to 3 lines"
    ),
    launch_us=Constant(3, 6, 12, "microseconds", "estimate: as Instinct boards, twice"),
    matrix_clock=Constant(1.0, 1.0, 0.85, "of the peak clock", "estimate: board power"),
)

GPU = rdna.gpu(
    _NAME,
    vgprs_per_simd=1536,
    vgpr_granule=24,
    major=11,
    elf_machine=0x41,
    matrix_sets=(MatrixSet.WMMA_RDNA3,),
    is_macro_of_generation=True,
    features=frozenset({Feature.WMMA_RDNA3}),
    emulated=True,
    machine=MACHINE,
)
STRIX_HALO = replace(
    GPU, processor="gfx1151", elf_machine=0x4A, similar=_NAME, emulated=False, machine=None
)
GPUS = (GPU, STRIX_HALO)

BOARDS = (
    Board(
        name="RX 7900 XTX",
        target=_NAME,
        compute_units=96,
        clock_mhz=2500,
        memory_bytes_per_s=960 * GB,
        l2_bytes=6 * MIB,
        last_level_bytes=96 * MIB,
        instruction_cache_bytes=32 * KIB,
        vector=_VECTOR,
        matrix=_MATRIX,
        sources=(
            SPECS,
            _DOCUMENT,
            "AMD Radeon RX 7900 XTX product page: 960 GB/s, 61.4 TFLOPS f32",
        ),
    ),
)
