"""Constants as C++, exact to the last bit."""

from __future__ import annotations

import math

import numpy as np

from scheduler.ir.dtypes import DType

_SUFFIX = {DType.F32: "f", DType.F64: ""}
_INT_MACRO = {DType.I64: "INT64_C", DType.U64: "UINT64_C"}


def literal(value: int | float | complex | bool, dtype: DType) -> str:
    """Return the literal of ``value`` in the type that holds ``dtype`` inside kernels.

    Floats are printed with the fewest digits that the compiler's correctly rounding parser turns
    into the same value. Integers wrap as a conversion in C++ does.
    """
    held = dtype.compute_dtype
    if held is DType.BOOL:
        return "true" if value else "false"
    if isinstance(value, complex):
        parts = (_float(part, held.real) for part in (value.real, value.imag))
        return f"{held.cpp}({', '.join(parts)})"
    if held.is_float:
        return _float(float(value), held)
    return _integer(int(value), held)


def _float(value: float, dtype: DType) -> str:
    suffix = _SUFFIX[dtype]
    if dtype is DType.F32:
        with np.errstate(over="ignore"):
            rounded = np.float32(value)
        value, digits = float(rounded), str(rounded)
    else:
        digits = repr(value)
    if math.isnan(value):
        return f'__builtin_nan{suffix}("")'
    if math.isinf(value):
        return ("-" if value < 0 else "") + f"__builtin_inf{suffix}()"
    return digits + suffix


def _integer(value: int, dtype: DType) -> str:
    bits = dtype.itemsize * 8
    value %= 1 << bits
    if not dtype.is_unsigned and value >= 1 << (bits - 1):
        value -= 1 << bits
    if dtype is DType.U32:
        return f"{value}u"
    if value == -(1 << (bits - 1)) and bits >= 32:
        # The lowest integer has no literal: -2147483648 negates a number that does not fit.
        return f"(-{_sized(-(value + 1), dtype)} - 1)"
    return f"({_sized(value, dtype)})" if value < 0 else _sized(value, dtype)


def _sized(value: int, dtype: DType) -> str:
    macro = _INT_MACRO.get(dtype)
    return f"{macro}({value})" if macro else str(value)
