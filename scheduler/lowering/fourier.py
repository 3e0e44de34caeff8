"""Ops around Fourier transforms that have kernels: shifts, frequencies."""

from __future__ import annotations

from typing import Any

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, as_expr
from scheduler.ir.values import Value, call, index_value, upcast
from scheduler.lowering.builder import Builder
from scheduler.lowering.pointwise import materialize
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import roll

_TWO = sympy.Integer(2)


def fftshift(b: Builder, self: Tensor, dim: Any = None) -> Tensor:
    """Rotate by half the size, so that the middle comes first."""
    dims = _dims(self, dim)
    return roll(b, self, tuple(FloorDiv(self.size[d], _TWO) for d in dims), dims)


def ifftshift(b: Builder, self: Tensor, dim: Any = None) -> Tensor:
    dims = _dims(self, dim)
    return roll(b, self, tuple(-FloorDiv(self.size[d], _TWO) for d in dims), dims)


def _dims(tensor: Tensor, dim: Any) -> tuple[int, ...]:
    if dim is None:
        return tuple(range(tensor.rank))
    return dim if isinstance(dim, tuple) else (dim,)


def frequencies(b: Builder, n: int, d: float = 1.0, **_: Any) -> Tensor:
    """0, 1, …, then the negative frequencies, divided by ``n * d``."""
    points = as_expr(n)
    nonnegative_count = FloorDiv(points + 1, _TWO)

    def number(i: Expr) -> Value:
        is_nonnegative = index_value(i) < index_value(nonnegative_count)
        return call("where", is_nonnegative, index_value(i), index_value(i - points))

    return _scaled_frequencies(b, points, d, number)


def real_frequencies(b: Builder, n: int, d: float = 1.0, **_: Any) -> Tensor:
    return _scaled_frequencies(b, as_expr(n), d, index_value)


def _scaled_frequencies(b: Builder, points: Expr, spacing: float, number: Any) -> Tensor:
    meta = b.output_meta()
    compute_dtype = meta.dtype.compute_dtype

    def at(index: Index) -> Value:
        count = upcast(index_value(points), compute_dtype)
        period = count * spacing
        return upcast(number(index[0]), compute_dtype) / period

    return materialize(b, Tensor(meta.size, meta.dtype, at))
