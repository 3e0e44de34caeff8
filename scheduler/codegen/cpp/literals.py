"""Constants as C++, exact to the last bit."""

from __future__ import annotations

import math

from scheduler.codegen.printing.literals import round_and_print, wrap_integer
from scheduler.ir.dtypes import DType

_SUFFIX = {DType.F32: "f", DType.F64: ""}
_INT_FORM = {DType.I64: "INT64_C({})", DType.U64: "UINT64_C({})", DType.U32: "{}u"}


def literal(value: int | float | complex | bool, dtype: DType) -> str:
    """Return the literal of ``value`` in the type that holds ``dtype`` inside kernels. Integers
    wrap as a conversion in C++ does."""
    compute_dtype = dtype.compute_dtype
    if compute_dtype is DType.BOOL:
        return "true" if value else "false"
    if isinstance(value, complex):
        components = (
            _float(component, compute_dtype.real) for component in (value.real, value.imag)
        )
        return f"{compute_dtype.cpp}({', '.join(components)})"
    if compute_dtype.is_float:
        return _float(float(value), compute_dtype)
    wrapped, pattern = wrap_integer(int(value), compute_dtype), _INT_FORM.get(compute_dtype, "{}")
    if wrapped >= 0:
        return pattern.format(wrapped)
    if wrapped == -(1 << (compute_dtype.itemsize * 8 - 1)) and compute_dtype.itemsize >= 4:
        # The lowest integer has no literal: -2147483648 negates a number that does not fit.
        return f"(-{pattern.format(-(wrapped + 1))} - 1)"
    return f"({pattern.format(wrapped)})"


def _float(value: float, dtype: DType) -> str:
    suffix, (rounded, digits) = _SUFFIX[dtype], round_and_print(value, dtype)
    if math.isnan(rounded):
        return f'__builtin_nan{suffix}("")'
    if math.isinf(rounded):
        return ("-" if rounded < 0 else "") + f"__builtin_inf{suffix}()"
    return digits + suffix
