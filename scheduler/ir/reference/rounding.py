"""Rounding of float64 values to what a narrower type can represent."""

from __future__ import annotations

import numpy as np

from scheduler.ir.dtypes import DType
from scheduler.ir.minifloat import round_to_minifloat
from scheduler.ir.reference.rule import Array


def round_to_dtype(values: Array, dtype: DType) -> Array:
    """Round to a float or complex type; the result is float64 or complex128. Other types do not
    change the values.

    Types that NumPy lacks are rounded through float32, as in a kernel's conversion.
    """
    with np.errstate(over="ignore", under="ignore"):
        if dtype.is_stored_as_bits:
            return round_to_minifloat(values, dtype)
        if dtype.is_inexact:
            narrow = np.asarray(values).astype(dtype.numpy, copy=False)
            return narrow.astype(dtype.reference_numpy)
    return values
