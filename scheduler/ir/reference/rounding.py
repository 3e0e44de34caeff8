"""Rounding of float64 values to what a narrower type can represent."""

from __future__ import annotations

import numpy as np

from scheduler.ir.bfloat16 import bfloat16_to_float32, float32_to_bfloat16
from scheduler.ir.dtypes import DType
from scheduler.ir.reference.rule import Array


def rounded(values: Array, dtype: DType) -> Array:
    """The nearest values of a float type, as float64; other types as they are.

    bfloat16 goes by way of float32, as a kernel's conversion does.
    """
    with np.errstate(over="ignore", under="ignore"):
        if dtype is DType.BF16:
            narrow = float32_to_bfloat16(values)
            return bfloat16_to_float32(narrow).astype(np.float64)
        if dtype.is_float:
            narrow = np.asarray(values).astype(dtype.numpy, copy=False)
            return narrow.astype(np.float64)
    return values
