"""All rows of the vector unit by name, and the floats of the scalar unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import TypeVar

from scheduler.isa.rocm.emulator.alu import (
    bits,
    compares,
    conversions,
    division,
    dots,
    floats,
    integer_compares,
    integers,
    matrix,
    packed,
    scaled,
    transcendental,
    wave_matrix,
)
from scheduler.isa.rocm.emulator.alu.row import AluRow, BlockRow, Type
from scheduler.targets.amd import Feature

Row = TypeVar("Row", AluRow, BlockRow)

# Floats of the scalar unit (since RDNA 3.5, gfx12) are the vector unit's rows, renamed.
_BOTH = (
    *("add", "sub", "mul", "min", "max", "minimum", "maximum", "fmac"),
    *("ceil", "floor", "trunc", "rndne"),
)
_CONVERSIONS = ("f32_i32", "f32_u32", "i32_f32", "u32_f32", "f16_f32", "f32_f16", "pkrtz_f16_f32")


_VECTOR = {row.name: row for row in (*floats.ROWS, *conversions.ROWS)}
_SCALAR = {
    **{f"s_{name}_{kind}": f"v_{name}_{kind}" for name in _BOTH for kind in ("f16", "f32")},
    **{f"s_cvt_{name}": f"v_cvt_{name}" for name in _CONVERSIONS},
    **dict.fromkeys(("s_fmaak_f32", "s_fmamk_f32"), "v_fma_f32"),
}
_SCALAR_ROWS = (
    *(replace(_VECTOR[vector], name=name) for name, vector in _SCALAR.items()),
    AluRow(
        "s_cvt_hi_f32_f16",
        *((Type.F32,), (Type.B32,)),
        lambda a: (a >> 16).astype("uint16").view("float16").astype("float32"),
    ),
)
FLOAT_ROWS: tuple[AluRow, ...] = (
    *floats.ROWS,
    *transcendental.ROWS,
    *division.ROWS,
    *compares.ROWS,
    *packed.ROWS,
    *conversions.ROWS,
    *_SCALAR_ROWS,
    *scaled.ROWS,
)
BLOCK_ROWS: tuple[BlockRow, ...] = (
    *matrix.ROWS,
    *wave_matrix.ROWS,
    *scaled.BLOCK_ROWS,
    *dots.BLOCK_ROWS,
    *bits.BLOCK_ROWS,
)


@cache
def vector_rows(features: frozenset[Feature]) -> Mapping[str, AluRow]:
    """Return the vector unit's rows of a GPU with these features."""
    rows = (*FLOAT_ROWS, *bits.ROWS, *integers.ROWS, *integer_compares.ROWS)
    return MappingProxyType(_rows_for(rows, features))


@cache
def block_rows(features: frozenset[Feature]) -> Mapping[str, BlockRow]:
    """Return its rows over register blocks."""
    return MappingProxyType(_rows_for(BLOCK_ROWS, features))


def _rows_for(rows: Iterable[Row], features: frozenset[Feature]) -> dict[str, Row]:
    return {row.name: row for row in rows if row.needs is None or row.needs in features}
