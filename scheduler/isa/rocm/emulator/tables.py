"""All rows of the vector unit by name, and the floats of the scalar unit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
_BOTH = ("add", "sub", "mul", "min", "max", "minimum", "maximum", "fmac")
_ROUNDING = ("ceil", "floor", "trunc", "rndne")
_CONVERSIONS = ("f32_i32", "f32_u32", "i32_f32", "u32_f32", "f16_f32", "f32_f16", "pkrtz_f16_f32")


def _scalar_float_rows() -> Iterator[AluRow]:
    vector = {row.name: row for row in (*floats.ROWS, *conversions.ROWS)}
    names = [f"{name}_{kind}" for name in (*_BOTH, *_ROUNDING) for kind in ("f16", "f32")]
    names += [f"cvt_{name}" for name in _CONVERSIONS]
    for name in names:
        yield replace(vector[f"v_{name}"], name=f"s_{name}")
    fma = vector["v_fma_f32"]
    yield replace(fma, name="s_fmaak_f32")
    yield replace(fma, name="s_fmamk_f32")
    upper = vector["v_cvt_f32_f16"]
    yield AluRow(
        "s_cvt_hi_f32_f16",
        (Type.F32,),
        (Type.B32,),
        lambda a: upper.compute((a >> 16).astype("uint16").view("float16")),
    )


FLOAT_ROWS: tuple[AluRow, ...] = (
    *floats.ROWS,
    *transcendental.ROWS,
    *division.ROWS,
    *compares.ROWS,
    *packed.ROWS,
    *conversions.ROWS,
    *_scalar_float_rows(),
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
