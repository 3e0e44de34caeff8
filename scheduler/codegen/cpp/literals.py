"""Constants as C++, exact to the last bit."""

from __future__ import annotations

import math

from scheduler.codegen.printing.literals import float_digits, wrap_integer
from scheduler.ir.dtypes import DType

_SUFFIX = {DType.F32: "f", DType.F64: ""}
_INT_FORM = {DType.I64: "INT64_C({})", DType.U64: "UINT64_C({})", DType.U32: "{}u"}


def literal(value: int | float | complex | bool, dtype: DType) -> str:
    """Return the literal of ``value`` in the type that holds ``dtype`` inside kernels. Integers
    wrap as a conversion in C++ does."""
    compute = dtype.compute_dtype
    if compute is DType.BOOL:
        return "true" if value else "false"
    if isinstance(value, complex):
        parts = (_float(part, compute.real) for part in (value.real, value.imag))
        return f"{compute.cpp}({', '.join(parts)})"
    if compute.is_float:
        return _float(float(value), compute)
    wrapped, form = wrap_integer(int(value), compute), _INT_FORM.get(compute, "{}")
    if wrapped >= 0:
        return form.format(wrapped)
    if wrapped == -(1 << (compute.itemsize * 8 - 1)) and compute.itemsize >= 4:
        # The lowest integer has no literal: -2147483648 negates a number that does not fit.
        return f"(-{form.format(-(wrapped + 1))} - 1)"
    return f"({form.format(wrapped)})"


def _float(value: float, dtype: DType) -> str:
    suffix, (rounded, digits) = _SUFFIX[dtype], float_digits(value, dtype)
    if math.isnan(rounded):
        return f'__builtin_nan{suffix}("")'
    if math.isinf(rounded):
        return ("-" if rounded < 0 else "") + f"__builtin_inf{suffix}()"
    return digits + suffix
