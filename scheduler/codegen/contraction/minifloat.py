"""Products of 8-bit floats by kernels that multiply wider types: which ones, and the conversions.

The wider type represents every number of these formats, so the products are the same.
"""

from __future__ import annotations

from dataclasses import replace

from scheduler.ir.dtypes import DType
from scheduler.ir.operations import Contraction
from scheduler.ir.values import Cast

# f16 represents every number of these formats, none of them as a subnormal, which CDNA 2 matrix
# instructions flush to 0; bf16 represents every number of all formats.
_AS_F16 = (DType.F8E4M3FN, DType.F8E4M3FNUZ)


def upcast_dtype(dtype: DType) -> DType:
    """Return the type that represents every number of the format and has the fastest conversion."""
    return DType.F16 if dtype in _AS_F16 else DType.BF16


def upcast_operands(members: tuple[Contraction, ...]) -> tuple[Contraction, ...]:
    """Convert operands of 8-bit floats; leave others unchanged."""
    return tuple(map(_upcast_member, members))


def _upcast_member(member: Contraction) -> Contraction:
    if not member.a.dtype.is_float8:
        return member
    to = upcast_dtype(member.a.dtype)
    return replace(member, a=Cast(member.a, to), b=Cast(member.b, to))
