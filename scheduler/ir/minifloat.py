"""Floats without a NumPy type: conversion between values and bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from scheduler.ir import float8
from scheduler.ir.bfloat16 import bfloat16_to_float32, float32_to_bfloat16
from scheduler.ir.dtypes import DType

_FLOAT8: Mapping[DType, float8.Format] = {
    DType.F8E4M3FN: float8.E4M3FN,
    DType.F8E5M2: float8.E5M2,
    DType.F8E4M3FNUZ: float8.E4M3FNUZ,
    DType.F8E5M2FNUZ: float8.E5M2FNUZ,
    DType.F8E8M0FNU: float8.E8M0FNU,
}


def to_bits(values: npt.ArrayLike, dtype: DType) -> npt.NDArray[Any]:
    """Return the bits of the nearest values of ``dtype``, as ``dtype.numpy``; through float32."""
    if dtype is DType.BF16:
        return float32_to_bfloat16(np.asarray(values))
    return _FLOAT8[dtype].encode(np.asarray(values))


def from_bits(bits: npt.NDArray[Any], dtype: DType) -> npt.NDArray[np.float32]:
    """Return the values of bits of ``dtype``, exactly."""
    if dtype is DType.BF16:
        return bfloat16_to_float32(bits.astype(np.uint16, copy=False))
    return _FLOAT8[dtype].decode(bits.astype(np.uint8, copy=False))


def round_to_minifloat(values: npt.ArrayLike, dtype: DType) -> npt.NDArray[np.float64]:
    """Round to an 8-bit float type or bfloat16; the result is float64."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return from_bits(to_bits(values, dtype), dtype).astype(np.float64)
