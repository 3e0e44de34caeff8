"""All rows of floating point, packed numbers and register blocks."""

from __future__ import annotations

from scheduler.isa.rocm.emulator.alu import (
    bitop,
    compares,
    conversions,
    division,
    dots,
    floats,
    matrix,
    packed,
    packed_integers,
    scalar_floats,
    scaled,
    transcendental,
    trig_preop,
    wave_matrix,
)
from scheduler.isa.rocm.emulator.alu.row import AluRow, BlockRow

FLOAT_ROWS: tuple[AluRow, ...] = (
    *floats.ROWS,
    *transcendental.ROWS,
    *division.ROWS,
    *compares.ROWS,
    *packed.ROWS,
    *packed_integers.ROWS,
    *trig_preop.ROWS,
    *conversions.ROWS,
    *scalar_floats.ROWS,
    *scaled.ROWS,
)
BLOCK_ROWS: tuple[BlockRow, ...] = (
    *matrix.ROWS,
    *wave_matrix.ROWS,
    *scaled.BLOCK_ROWS,
    *dots.BLOCK_ROWS,
    *bitop.BLOCK_ROWS,
)
