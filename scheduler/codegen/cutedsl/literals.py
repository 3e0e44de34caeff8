"""Constants as values of a CuteDSL kernel, exact to the last bit."""

from __future__ import annotations

import math

from scheduler.codegen.cutedsl.types import type_name
from scheduler.codegen.printing.literals import float_digits, wrap_integer
from scheduler.ir.dtypes import DType


def literal(value: int | float | complex | bool, dtype: DType) -> str:
    """Return the constant ``value`` in the type that holds ``dtype`` inside kernels. Integers wrap
    as a conversion in C++ does."""
    held = dtype.compute_dtype
    if isinstance(value, complex):
        raise KeyError(f"CuteDSL constants of type {dtype.label} are not supported")
    if held is DType.BOOL:
        text = str(bool(value))
    elif held.is_float:
        rounded, digits = float_digits(float(value), held)
        text = digits if math.isfinite(rounded) else f'float("{rounded}")'
    else:
        text = str(wrap_integer(int(value), held))
    return f"{type_name(held)}({text})"
