"""How tensors lie in memory, told apart from what the engine says of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import from_bits, to_bits


def contiguous(sizes: Sequence[Any]) -> tuple[sympy.Expr, ...]:
    """Row-major strides, in elements."""
    strides: list[sympy.Expr] = []
    step: sympy.Expr = sympy.Integer(1)
    for size in reversed(sizes):
        strides.insert(0, step)
        step = step * size
    return tuple(strides)


def to_device(values: np.ndarray, dtype: DType) -> np.ndarray:
    """Values in the type's own bits."""
    if dtype is DType.BF16:
        bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)
    if dtype.is_float8:  # held against torch by tests/unit/test_float8.py
        return to_bits(values, dtype)
    return np.asarray(values).astype(dtype.numpy)


def from_device(bits: np.ndarray, dtype: DType) -> np.ndarray:
    """The type's own bits as float64 (integers and booleans as they are)."""
    if dtype is DType.BF16:
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype.is_float8:
        return from_bits(bits, dtype).astype(np.float64)
    return bits.astype(np.float64) if dtype.is_float else bits
