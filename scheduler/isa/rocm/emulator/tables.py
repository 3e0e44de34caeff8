"""All rows of all tables, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import TypeVar

from scheduler.isa.rocm.emulator.alu import bits, integer_compares, integers
from scheduler.isa.rocm.emulator.alu.float_rows import BLOCK_ROWS, FLOAT_ROWS
from scheduler.isa.rocm.emulator.alu.row import AluRow, BlockRow
from scheduler.isa.rocm.emulator.scalar import arithmetic
from scheduler.isa.rocm.emulator.scalar import bits as scalar_bits
from scheduler.isa.rocm.emulator.scalar.row import ScalarRow
from scheduler.targets.amd import Feature

Row = TypeVar("Row", AluRow, BlockRow)

SCALAR_ROWS: Mapping[str, ScalarRow] = MappingProxyType(
    {row.name: row for row in (*arithmetic.ROWS, *scalar_bits.ROWS)}
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
