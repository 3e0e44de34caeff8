"""Products of floats of 8 bits by kernels that multiply wider ones: which, and the conversions.

Every number of these formats is one of the wider type, so the products are the same.
"""

from __future__ import annotations

from dataclasses import replace

from scheduler.ir.dtypes import DType
from scheduler.ir.operations import Contraction
from scheduler.ir.values import Cast

# Of these f16 has every number, none of them below its normal ones, which matrix instructions of
# CDNA 2 take for 0; bf16 has every number of all formats.
_AS_F16 = (DType.F8E4M3FN, DType.F8E4M3FNUZ)


def upcast_dtype(dtype: DType) -> DType:
    """The type that has every number of the format, and the fastest conversion."""
    return DType.F16 if dtype in _AS_F16 else DType.BF16


def upcast_operands(members: tuple[Contraction, ...]) -> tuple[Contraction, ...]:
    """With operands of 8-bit floats converted; others as they are."""
    return tuple(map(_upcast_member, members))


def _upcast_member(member: Contraction) -> Contraction:
    if not member.a.dtype.is_float8:
        return member
    to = upcast_dtype(member.a.dtype)
    return replace(member, a=Cast(member.a, to), b=Cast(member.b, to))
