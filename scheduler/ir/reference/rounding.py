"""Rounding of float64 values to what a narrower type can represent."""

from __future__ import annotations

import numpy as np

from scheduler.ir.dtypes import DType
from scheduler.ir.minifloat import round_to_minifloat
from scheduler.ir.reference.rule import Array


def round_to_dtype(values: Array, dtype: DType) -> Array:
    """The nearest values of a float or complex type, as float64 or complex128; of other types as
    they are.

    What NumPy has no type for goes by way of float32, as a kernel's conversion does.
    """
    with np.errstate(over="ignore", under="ignore"):
        if dtype.is_stored_as_bits:
            return round_to_minifloat(values, dtype)
        if dtype.is_inexact:
            narrow = np.asarray(values).astype(dtype.numpy, copy=False)
            return narrow.astype(dtype.reference_numpy)
    return values
