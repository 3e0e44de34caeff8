"""Integer arithmetic of the vector unit: sums with carries, products, minima, sums of three."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scheduler.isa.rocm.emulator.alu.row import AluRow, Type, computes

U16, I16, U32, I32, B32 = Type.U16, Type.I16, Type.U32, Type.I32, Type.B32
U64, I64, MASK = Type.U64, Type.I64, Type.MASK
_M24 = np.uint32(0xFF_FFFF)
_ONES = np.uint64(0xFFFF_FFFF)
_32 = np.uint64(32)

ROWS: list[AluRow] = []


def _wide(a: Any) -> Any:
    return a.astype(np.uint64)


@computes(ROWS, "v_add_co_u32", (U32, MASK), (U32, U32))
def _add_out(a: Any, b: Any) -> Any:
    total = a + b
    return total, total < a


@computes(ROWS, "v_addc_co_u32", (U32, MASK), (U32, U32, MASK))
def _add_in(a: Any, b: Any, carry: Any) -> Any:
    total = _wide(a) + b + carry
    return total.astype(np.uint32), total > _ONES


@computes(ROWS, "v_sub_co_u32", (U32, MASK), (U32, U32))
def _subtract_out(a: Any, b: Any) -> Any:
    return a - b, b > a


@computes(ROWS, "v_subb_co_u32", (U32, MASK), (U32, U32, MASK))
def _subtract_in(a: Any, b: Any, borrow: Any) -> Any:
    subtracted = _wide(b) + borrow
    return (a - b) - borrow.astype(np.uint32), subtracted > a


@computes(ROWS, "v_mul_hi_u32", (U32,), (U32, U32))
def _multiply_high(a: Any, b: Any) -> Any:
    return (_wide(a) * _wide(b) >> _32).astype(np.uint32)


@computes(ROWS, "v_mul_hi_i32", (I32,), (I32, I32))
def _multiply_high_signed(a: Any, b: Any) -> Any:
    return (a.astype(np.int64) * b >> 32).astype(np.int32)


def _signed24(a: Any) -> Any:
    return (a << np.int32(8)) >> np.int32(8)


@computes(ROWS, "v_mad_u64_u32", (U64, MASK), (U32, U32, U64))
def _multiply_add_wide(a: Any, b: Any, c: Any) -> Any:
    product = _wide(a) * _wide(b)
    total = product + c
    return total, total < product


@computes(ROWS, "v_mad_i64_i32", (I64, MASK), (I32, I32, I64))
def _multiply_add_wide_signed(a: Any, b: Any, c: Any) -> Any:
    product = a.astype(np.int64) * b.astype(np.int64)
    total = product + c
    return total, ((product ^ total) & (c ^ total)) < 0


def _difference(a: Any, b: Any) -> Any:
    return np.maximum(a, b) - np.minimum(a, b)


def _byte_differences(a: Any, b: Any) -> Any:
    total = np.zeros(np.broadcast_shapes(a.shape, b.shape), np.uint32)
    for shift in (0, 8, 16, 24):
        low = np.uint32(shift)
        total += _difference((a >> low) & np.uint32(255), (b >> low) & np.uint32(255))
    return total


@computes(ROWS, "v_sad_u16", (U32,), (U32, U32, U32))
def _half_differences(a: Any, b: Any, c: Any) -> Any:
    half, low = np.uint32(16), np.uint32(0xFFFF)
    return _difference(a & low, b & low) + _difference(a >> half, b >> half) + c


_SIZED: tuple[tuple[str, int, Callable[..., Any]], ...] = (
    ("min", 2, np.minimum),
    ("max", 2, np.maximum),
    ("min3", 3, lambda a, b, c: np.minimum(np.minimum(a, b), c)),
    ("max3", 3, lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    ("med3", 3, lambda a, b, c: np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))),
    ("maxmin", 3, lambda a, b, c: np.minimum(np.maximum(a, b), c)),
    ("minmax", 3, lambda a, b, c: np.maximum(np.minimum(a, b), c)),
    ("add", 2, np.add),
    ("sub", 2, np.subtract),
    ("subrev", 2, lambda a, b: b - a),
)
ROWS += [
    AluRow(f"v_{name}_{kind}", (kind,), (kind,) * count, compute)
    for kind in (U32, I32, U16, I16)
    for name, count, compute in _SIZED
]
ROWS += [
    AluRow("v_mad_u16", (U16,), (U16, U16, U16), lambda a, b, c: a * b + c),
    AluRow("v_mad_i16", (I16,), (I16, I16, I16), lambda a, b, c: a * b + c),
    AluRow("v_mul_lo_u16", (U16,), (U16, U16), lambda a, b: a * b),
    AluRow("v_subrev_co_u32", (U32, MASK), (U32, U32), lambda a, b: _subtract_out(b, a)),
    AluRow(
        "v_subbrev_co_u32", (U32, MASK), (U32, U32, MASK), lambda a, b, c: _subtract_in(b, a, c)
    ),
    AluRow("v_add3_u32", (U32,), (U32, U32, U32), lambda a, b, c: a + b + c),
    AluRow("v_add_nc_u64", (U64,), (U64, U64), lambda a, b: a + b),
    AluRow("v_sub_nc_u64", (U64,), (U64, U64), lambda a, b: a - b),
    AluRow("v_mul_lo_u32", (U32,), (U32, U32), lambda a, b: a * b),
    AluRow("v_mul_lo_i32", (U32,), (U32, U32), lambda a, b: a * b),
    AluRow("v_mul_u32_u24", (U32,), (U32, U32), lambda a, b: (a & _M24) * (b & _M24)),
    AluRow(
        "v_mul_hi_u32_u24",
        *((U32,), (U32, U32), lambda a, b: _multiply_high(a & _M24, b & _M24)),
    ),
    AluRow("v_mul_i32_i24", (I32,), (I32, I32), lambda a, b: _signed24(a) * _signed24(b)),
    AluRow(
        "v_mul_hi_i32_i24",
        *((I32,), (I32, I32), lambda a, b: _multiply_high_signed(_signed24(a), _signed24(b))),
    ),
    AluRow("v_mad_u32_u24", (U32,), (U32, U32, U32), lambda a, b, c: (a & _M24) * (b & _M24) + c),
    AluRow(
        "v_mad_i32_i24", (I32,), (I32, I32, I32), lambda a, b, c: _signed24(a) * _signed24(b) + c
    ),
    AluRow(
        "v_mad_u32_u16",
        *((U32,), (U16, U16, U32), lambda a, b, c: a.astype(np.uint32) * b + c),
    ),
    AluRow(
        "v_mad_i32_i16",
        *((I32,), (I16, I16, I32), lambda a, b, c: a.astype(np.int32) * b + c),
    ),
    AluRow("v_sad_u32", (U32,), (U32, U32, U32), lambda a, b, c: _difference(a, b) + c),
    AluRow("v_sad_u8", (U32,), (U32, U32, U32), lambda a, b, c: _byte_differences(a, b) + c),
    AluRow(
        "v_sad_hi_u8",
        *((U32,), (U32, U32, U32), lambda a, b, c: (_byte_differences(a, b) << np.uint32(16)) + c),
    ),
]
