"""CDNA 3: MI300X."""

from __future__ import annotations

from scheduler.matrix_instructions import MatrixSet
from scheduler.targets import cdna
from scheduler.targets.amd import SPECS, Feature
from scheduler.targets.cycle_model import Constant, Machine, both_halves, exact, pipe_rates, quads
from scheduler.targets.gemm_costs import GemmCosts
from scheduler.targets.model import GB, KIB, MIB, Board, rates

_NAME = "gfx942"
_DOCUMENT = "AMD CDNA 3 white paper, table of operations a clock and CU"
_VECTOR = rates(f64=128, f32=256)
_MATRIX = rates(f64=256, f32=256, tf32=1024, f16=2048, bf16=2048, i8=4096)

CDNA3_GROUPS = (quads(0, 20), quads(4, 16), quads(8, 28), quads(12, 24))
_ISSUE = "ROCm Compute Profiler: each cycle one SIMD, round robin; CDNA ISA: 64 lanes on 16"
_MI300_LATENCY = "pyhip: 500 to 800 for HBM; The MALL is Open; Chips and Cheese"
# Those of every CDNA first, then those of CDNA 3.
MACHINE = Machine(
    l1_bytes=32 << 10,
    f64_conversions_double=True,
    cadence=exact(4, "cycles", _ISSUE),
    vector=exact(4, "cycles", _ISSUE),
    vector_latency=exact(4, "cycles", "CDNA ISA: results are read by the next instruction"),
    transcendental=exact(16, "cycles", "LLVM: WriteTrans32 has a quarter of the rate"),
    double=exact(4, "cycles", "CDNA 2/3 white paper: FP64 vector at the rate of FP32"),
    quarter=Constant(8, 16, 16, "cycles", "LLVM: WriteIntMul, WriteQuarterRate32"),
    matrix_read=Constant(
        *(8, 12, 16, "cycles after the last pass until others can read the result"),
        "LLVM, GCNHazardRecognizer: passes + 2 to passes + 4 wait states of 4 cycles",
    ),
    matrix_chain=Constant(
        *(0, 0, 8, "cycles after the last pass until it can be C of the next"),
        "CDNA ISA: none if C is exactly the result; 2 wait states if it overlaps",
    ),
    scalar=exact(4, "cycles", _ISSUE),
    branch=Constant(
        *(8, 16, 32, "cycles of its wave after a taken branch"),
        "Southern Islands ISA: 16 cycles, plus instruction fetch",
    ),
    barrier=Constant(4, 16, 40, "cycles after the last wave's arrival", "estimate: a few slots"),
    block_start=Constant(
        *(100, 300, 800, "cycles from a block's end to the first instruction of the next"),
        "estimate: the workgroup manager sets up registers; arguments and code are fetched",
    ),
    lds_port=exact(
        64, "bytes per cycle and direction", "ROCm Compute Profiler: one port per pair of SIMDs"
    ),
    lds_ports=2,
    lds_queue=Constant(*(64, 32, 16, "cycles of queued work"), "estimate: 2 to 4 reads"),
    address=exact(
        *(4, "cycles per vector memory instruction"),
        "ROCm Compute Profiler: the address unit takes 16 lanes per cycle",
    ),
    memory_queue=Constant(*(256, 128, 64, "cycles of queued work"), "estimate"),
    launch_us=Constant(
        *(1.5, 3, 6, "microseconds between launches of empty kernels"),
        "estimate: ROCm issues report 2 to 6 us on Instinct boards",
    ),
    line=128,
    xcds=8,
    instruction_line=128,
    lds_banks=32,
    b96_groups=both_halves(CDNA3_GROUPS),
    b128_groups=both_halves(CDNA3_GROUPS),
    matrix_rates=pipe_rates(_MATRIX),
    lds_latency=Constant(
        *(32, 40, 64, "cycles, excluding ports and banks"),
        "pyhip: 52 for 32 bits, 64 for 128 bits from issue to the wait's end; LLVM: WriteLDS",
    ),
    l1_bytes_cycle=exact(64, "bytes per cycle", "ROCm Compute Profiler: vL1D, 64 B per cycle"),
    l1_latency=Constant(110, 125, 150, "cycles", "Chips and Cheese: MI300X, vector L1"),
    l2_bytes_cycle=exact(
        2048 / 38,
        "bytes per cycle and CU",
        "CDNA 3 white paper: 2 KB per cycle for an XCD's 38 CUs",
    ),
    l2_latency=Constant(200, 254, 350, "cycles", _MI300_LATENCY),
    memory_latency=Constant(500, 700, 1000, "cycles", _MI300_LATENCY),
    memory_share=Constant(
        *(0.90, 0.81, 0.70, "of the published bandwidth"),
        "estimate: streaming kernels on MI300X are reported at 4.0 to 4.8 of 5.3 TB/s, mostly 4.3",
    ),
    last_level_bytes_s=Constant(
        *(17.2e12, 14e12, 11.9e12, "bytes per second"),
        "CDNA 3 white paper: 17.2 TB/s peak; Chips and Cheese: 11.9 TB/s measured",
    ),
    scalar_latency=Constant(100, 150, 300, "cycles", "The MALL is Open: scalar L1, backed by L2"),
    fetch_latency=Constant(150, 254, 400, "cycles", "estimate: as L2, the source of the lines"),
    fetch_ahead=Constant(3, 2, 1, "lines of code prefetched", "estimate"),
    matrix_clock=Constant(
        *(1.0, 1.0, 0.6, "of the peak clock while the matrix pipes are busy"),
        "AMD's achievable rates: MI300X sustains 1.2 to 1.4 of 2.1 GHz in large products",
    ),
)

# The estimate's costs: fitted to the cycle model (scheduler/cycles) for f16: products of 1 to 8192
# rows, and convolutions of 64 to 1280 channels (tests/benchmarks/cycles/shapes.toml).
GPU = cdna.gpu(
    _NAME,
    elf_machine=0x4C,
    matrix_sets=(MatrixSet.MFMA, MatrixSet.MFMA_I8_K32, MatrixSet.MFMA_XF32),
    features=frozenset(
        {
            Feature.MFMA_DENORMALS,
            Feature.SPARSE_MFMA,
            Feature.XF32,
            Feature.FNUZ_FLOAT8,
        }
    ),
    has_architected_flat_scratch=True,
    direct_load_bytes=4,
    emulated=True,
    machine=MACHINE,
    gemm_costs=GemmCosts(
        latency=840.0,
        window_saving=0.5,
        block_gap=380.0,
        barrier=2.0,
        exposed_pipes=0.68,
        spread=0.28,
        exposed_lds=0.61,
        lds=0.6,
        path=0.8,
        refetch=0.035,
        result=20.0,
        stores=0.5,
        partial=0.78,
        launch_us=1.0,
        start=3300.0,
        other_vgprs=70,
        wide_result=0.22,
        gemv_path=0.87,
        exposed=0.063,
    ),
)
GPUS = (GPU,)

BOARDS = (
    Board(
        name="MI300X",
        target=_NAME,
        compute_units=304,
        clock_mhz=2100,
        memory_bytes_per_s=5325 * GB,
        l2_bytes=32 * MIB,
        last_level_bytes=256 * MIB,
        instruction_cache_bytes=64 * KIB,
        vector=_VECTOR,
        matrix=_MATRIX,
        sources=(SPECS, _DOCUMENT, "AMD Instinct MI300X product page: 5.3 TB/s, 1307 TFLOPS f16"),
    ),
)
