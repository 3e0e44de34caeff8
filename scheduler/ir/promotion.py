"""torch's type promotion: the result type of operands of several types.

https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc: the category
(bool, integer, float) of the highest operand decides; within it tensors with dimensions take
precedence over tensors without, and those over numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from scheduler.errors import UserError
from scheduler.ir.dtypes import DType

_SIGNED = (DType.I8, DType.I16, DType.I32, DType.I64)


@dataclass(frozen=True)
class Operand:
    """An operand's type and its rank in the rules: 2 for a tensor, 1 for a tensor without
    dimensions, 0 for a number."""

    dtype: DType
    rank: int


def category(dtype: DType) -> int:
    """Return the category: 0 bool, 1 integer, 2 float, 3 complex."""
    if dtype is DType.BOOL:
        return 0
    if dtype.is_complex:
        return 3
    return 2 if dtype.is_float else 1


def promote_types(a: DType, b: DType) -> DType:
    """Return the smallest type that holds both.

    Raises ``UserError`` for types that torch does not promote: uint16, uint32 and uint64 with any
    other type that is not a float, 8-bit floats with any other type.
    """
    if a is b:
        return a
    if a.is_float8 or b.is_float8:
        raise UserError(f"torch has no common type for {a.label} and {b.label}")
    if category(a) != category(b):
        high, low = (a, b) if category(a) > category(b) else (b, a)
        of_floats_alone = low.is_unsigned and low is not DType.U8 and high.is_complex
        if of_floats_alone or (low is DType.BOOL and high.is_unsigned and high is not DType.U8):
            raise UserError(f"torch has no common type for {a.label} and {b.label}")
        return DType.C128 if high.is_complex and low is DType.F64 else high
    if a.is_inexact:
        if {a, b} == {DType.F16, DType.BF16}:
            return DType.F32
        return a if a.itemsize > b.itemsize else b
    if not {a, b} <= {DType.U8, *_SIGNED}:
        raise UserError(f"torch has no common type for {a.label} and {b.label}")
    if DType.U8 in (a, b):
        signed = b if a is DType.U8 else a
        return DType.I16 if signed is DType.I8 else signed
    return max(a, b, key=_SIGNED.index)


def result_type(operands: Iterable[Operand]) -> DType:
    """Return the type in which an operation on these operands computes."""
    best: list[DType | None] = [None, None, None]
    for operand in operands:
        known = best[operand.rank]
        best[operand.rank] = operand.dtype if known is None else promote_types(known, operand.dtype)
    result: DType | None = None
    for dtype in (best[2], best[1], best[0]):
        if dtype is None:
            continue
        if result is not None and result.is_float and dtype.is_complex:
            result = result.complex
        elif result is None or category(dtype) > category(result):
            result = dtype
    if result is None:
        raise ValueError("no operands")
    return result
