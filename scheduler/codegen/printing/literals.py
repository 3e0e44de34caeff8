"""What constants of every language have in common: the digits that are exact to the last bit."""

from __future__ import annotations

import numpy as np

from scheduler.ir.dtypes import DType


def round_and_print(value: float, dtype: DType) -> tuple[float, str]:
    """Return ``value`` rounded to f32 or f64, and the fewest digits that a correctly rounding
    parser turns into the same value."""
    if dtype is not DType.F32:
        return value, repr(value)
    with np.errstate(over="ignore"):
        rounded = np.float32(value)
    return float(rounded), str(rounded)


def wrap_integer(value: int, dtype: DType) -> int:
    """Return ``value`` in the range of ``dtype``, wrapped as a conversion in C++ does."""
    bits = dtype.itemsize * 8
    value %= 1 << bits
    return value - (1 << bits) if not dtype.is_unsigned and value >= 1 << (bits - 1) else value
