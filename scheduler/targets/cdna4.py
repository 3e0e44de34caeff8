"""CDNA 4: MI355X."""

from __future__ import annotations

from dataclasses import replace

from scheduler.matrix_instructions import MatrixSet
from scheduler.targets import cdna, cdna3
from scheduler.targets.amd import SPECS, Feature, float8
from scheduler.targets.cycle_model import Constant, both_halves, exact, pipe_rates, quads
from scheduler.targets.model import GB, KIB, MIB, Board, rates

_NAME = "gfx950"
_DOCUMENT = "AMD CDNA 4 white paper, table of operations a clock and CU"
_VECTOR = rates(f64=128, f32=256)
_MATRIX = rates(f64=128, f32=256, f16=4096, bf16=4096, i8=8192, **float8(8192))

_MACHINE = replace(
    cdna3.MACHINE,
    lds_banks=64,
    b128_groups=both_halves((quads(0, 12, 20, 24), quads(4, 8, 16, 28))),
    matrix_rates=pipe_rates(_MATRIX, bits6=16384, bits4=16384),
    lds_port=exact(
        *(128, "bytes per cycle and direction"),
        "CDNA 4 white paper: twice CDNA 3's LDS read bandwidth; IREE guide: 256 B per cycle",
    ),
    l2_bytes_cycle=exact(2048 / 32, "bytes per cycle and CU", "CDNA 4 white paper: 32 CUs per XCD"),
    memory_share=Constant(
        *(0.90, 0.81, 0.70, "of the published bandwidth"), "estimate: as CDNA 3, with HBM3E"
    ),
    matrix_clock=Constant(
        *(1.0, 1.0, 0.65, "of the peak clock while the matrix pipes are busy"),
        "AMD's achievable rates; HipKittens: 1.6 of 2.5 PFLOP/s in bf16 on MI355X",
    ),
)

GPU = cdna.gpu(
    _NAME,
    lds_bytes=163840,
    lds_granule_bytes=1280,
    elf_machine=0x4F,
    matrix_sets=(MatrixSet.MFMA, MatrixSet.MFMA_I8_K32, MatrixSet.MFMA_CDNA4),
    features=frozenset(
        {
            Feature.MFMA_DENORMALS,
            Feature.SPARSE_MFMA,
            Feature.OCP_FLOAT8,
            Feature.CDNA4,
        }
    ),
    has_architected_flat_scratch=True,
    direct_load_bytes=16,
    emulated=True,
    machine=_MACHINE,
)
GPUS = (GPU,)

BOARDS = (
    Board(
        name="MI355X",
        target=_NAME,
        compute_units=256,
        clock_mhz=2400,
        memory_bytes_per_s=8000 * GB,
        l2_bytes=32 * MIB,
        last_level_bytes=256 * MIB,
        instruction_cache_bytes=64 * KIB,
        vector=_VECTOR,
        matrix=_MATRIX,
        sources=(SPECS, _DOCUMENT, "AMD Instinct MI355X product page: 8 TB/s, 2.5 PFLOPS f16"),
    ),
)
