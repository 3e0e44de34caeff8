"""Constants as values of a CuteDSL kernel, exact to the last bit."""

from __future__ import annotations

import math

import numpy as np

from scheduler.codegen.cutedsl.types import type_name
from scheduler.ir.dtypes import DType


def literal(value: int | float | complex | bool, dtype: DType) -> str:
    """Return the constant ``value`` in the type that holds ``dtype`` inside kernels. Integers wrap
    as a conversion in C++ does."""
    held = dtype.compute_dtype
    if isinstance(value, complex):
        raise KeyError(f"CuteDSL constants of type {dtype.label} are not supported")
    return f"{type_name(held)}({_number(value, held)})"


def _number(value: int | float | bool, held: DType) -> str:
    if held is DType.BOOL:
        return str(bool(value))
    if held.is_float:
        return _float(float(value), held)
    bits = held.itemsize * 8
    wrapped = int(value) % (1 << bits)
    if not held.is_unsigned and wrapped >= 1 << (bits - 1):
        wrapped -= 1 << bits
    return str(wrapped)


def _float(value: float, held: DType) -> str:
    if held is DType.F32:
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    if math.isfinite(value):
        return str(np.float32(value)) if held is DType.F32 else repr(value)
    return f'float("{value}")'
