# ruff: noqa: ARG001 - rules have the signature of their op
"""Distances between the rows of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, call, const, index_value, upcast
from scheduler.lowering.builder import Builder
from scheduler.lowering.reductions import reduce_norm
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import broadcast


def cdist(b: Builder, x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: Any = None) -> Tensor:
    """Distances between each row of ``x1`` and each row of ``x2``."""
    meta = b.meta()
    lead = len(meta.size) - 2
    first, second = (broadcast(t, (*meta.size[:lead], *t.size[-2:])) for t in (x1, x2))

    def at(index: Index) -> tuple[Value, Value]:
        *batch, i, j, k = index
        return first.at((*batch, i, k)), second.at((*batch, j, k))

    return _distance(b, (*meta.size, x1.size[-1]), at, float(p))


def euclidean_dist(b: Builder, x1: Tensor, x2: Tensor) -> Tensor:
    return cdist(b, x1, x2)


def pdist(b: Builder, self: Tensor, p: float = 2.0) -> Tensor:
    """Distances between all pairs of rows, those of the first row first."""
    meta = b.meta()
    rows = self.size[0]
    if meta.size[0] == 0:
        return Tensor(meta.size, meta.dtype, lambda _: const(0.0, meta.dtype))

    def begins(row: Expr) -> Expr:
        """Twice the number of the first pair of a row with the rows after it: a half is not an
        integer expression."""
        return row * (2 * rows - row - 1)

    def is_before(index: Index, inner: Index) -> Value:
        return upcast(index_value(begins(inner[0] + 1)) <= index_value(2 * index[0]), DType.I64)

    row = b.reduction(meta.size, (rows - 1,), ReductionKind.SUM, is_before, dtype=DType.I64)

    def column(index: Index) -> Value:
        """The second row of the pair: its offset from the first pair, plus the row, plus one."""
        own = row.at(index)
        one, two = const(1, DType.I64), const(2, DType.I64)
        left = index_value(2 * rows - 1) - own
        before = call("floordiv", own * left, two)
        away = index_value(index[0]) - before
        return own + away + one

    columns = b.pointwise(meta.size, DType.I64, column)

    def at(index: Index) -> tuple[Value, Value]:
        pair, k = index
        first, second = (
            b.indirect(places, (pair,), rows, lambda x: self.at((x, k)), wrap=False)
            for places in (row, columns)
        )
        return first, second

    return _distance(b, (*meta.size, self.size[1]), at, float(p))


def _distance(
    b: Builder, size: Index, at: Callable[[Index], tuple[Value, Value]], p: float
) -> Tensor:
    """The norm of the differences of pairs along the last dimension."""
    dtype = b.meta().dtype

    def read(index: Index) -> Value:
        return call("sub", *(upcast(part, dtype) for part in at(index)))

    difference = Tensor(size, dtype, read)
    if size[-1] == 0:
        return Tensor(size[:-1], dtype, lambda _: const(0.0, dtype))
    return reduce_norm(b, difference, (len(size) - 1,), p, dtype, size[:-1])
