# ruff: noqa: ARG001 - rules have the signature of their op
"""Distances and similarities of vectors and of matrix rows, and the losses based on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, call, const, index_value, upcast
from scheduler.lowering.builder import Builder
from scheduler.lowering.compose import lazy_elementwise
from scheduler.lowering.losses import MEAN, reduce_loss, squared
from scheduler.lowering.pointwise import promoted_type
from scheduler.lowering.reductions import normalize_dims, reduce_norm, row_index, sum_over
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import broadcast

_ZERO = sympy.Integer(0)


def _difference(x: Tensor, y: Tensor, dtype: DType, eps: float = 0.0) -> Tensor:
    """x - y + eps. Integers are subtracted in their own type; complex numbers stay complex."""
    common_dtype = promoted_type((x, y))
    lazy_difference = lazy_elementwise((x, y), lambda first, second: first - second, common_dtype)
    difference_dtype = common_dtype if common_dtype.is_inexact else dtype

    def read(index: Index) -> Value:
        difference = upcast(lazy_difference.at(index), difference_dtype)
        return difference + eps if eps else difference

    return Tensor(lazy_difference.size, difference_dtype, read)


def dist(b: Builder, self: Tensor, other: Tensor, p: Any = 2) -> Tensor:
    """The norm of the difference over all elements."""
    dtype = b.output_meta().dtype
    difference = _difference(self, other, dtype)
    return reduce_norm(b, difference, tuple(range(difference.rank)), float(p), dtype, ())


def pairwise_distance(
    b: Builder, x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False
) -> Tensor:
    """The norm of x1 - x2 + eps over the last dimension."""
    meta = b.output_meta()
    difference = _difference(x1, x2, meta.dtype, eps)
    return reduce_norm(
        b, difference, (difference.rank - 1,), float(p), meta.dtype, None if keepdim else meta.size
    )


def cosine_similarity(
    b: Builder, x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08
) -> Tensor:
    """The sum of products of both vectors, each divided by its norm (at least ``eps``)."""
    meta = b.output_meta()
    compute_dtype = meta.dtype.compute_dtype
    broadcast_pair = lazy_elementwise((x1, x2), lambda x, _: x, meta.dtype)
    dims = normalize_dims(dim, broadcast_pair.rank)
    vectors = [
        lazy_elementwise((x,), lambda v: v, meta.dtype, broadcast_pair.size) for x in (x1, x2)
    ]
    norms = [
        reduce_norm(b, x, dims, 2.0, compute_dtype, None, lambda acc, _: call("maximum", acc, eps))
        for x in vectors
    ]

    def read(index: Index) -> Value:
        row = row_index(index, dims)
        normalized = [
            upcast(x.at(index), compute_dtype) / norm.at(row)
            for x, norm in zip(vectors, norms, strict=True)
        ]
        return call("mul", *normalized)

    return sum_over(
        b,
        Tensor(broadcast_pair.size, compute_dtype, read),
        dims,
        dtype=meta.dtype,
        accumulate=compute_dtype,
        size=meta.size,
    )


def cosine_embedding(
    b: Builder,
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    reduction: int = MEAN,
) -> Tensor:
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1."""
    dtype = b.output_meta().dtype
    compute_dtype = dtype.compute_dtype
    axis = target.rank

    def sum_over_axis(function: Callable[[Value, Value], Value]) -> Tensor:
        product = lazy_elementwise((input1, input2), function, dtype)
        size = tuple(e for d, e in enumerate(product.size) if d != axis)
        return sum_over(b, product, (axis,), dtype=compute_dtype, size=size)

    products = sum_over_axis(lambda x, y: x * y)
    lengths = [sum_over_axis(lambda x, _: squared(x)), sum_over_axis(lambda _, y: squared(y))]

    def function(xy: Value, xx: Value, yy: Value, t: Value) -> Value:
        length = call("sqrt", (xx + 1e-12) * (yy + 1e-12))
        cosine = xy / length
        similar_loss = 1 - cosine
        dissimilar_loss = call("maximum", cosine + -margin, 0)
        similar_part = call("where", call("eq", t, 1), similar_loss, 0)
        dissimilar_part = call("where", call("eq", t, -1), dissimilar_loss, 0)
        return similar_part + dissimilar_part

    return reduce_loss(
        b, lazy_elementwise((products, *lengths, target), function, compute_dtype), reduction
    )


def triplet_margin(
    b: Builder,
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-06,
    swap: bool = False,
    reduction: int = MEAN,
) -> Tensor:
    """max(0, margin + |anchor - positive| - |anchor - negative|)."""
    dtype = b.output_meta().dtype
    compute_dtype = dtype.compute_dtype

    def distance(x: Tensor, y: Tensor) -> Tensor:
        difference = _difference(x, y, dtype, eps)
        return reduce_norm(
            b, difference, (difference.rank - 1,), float(p), compute_dtype, difference.size[:-1]
        )

    distances = [distance(anchor, positive), distance(anchor, negative)]
    if swap:
        distances.append(distance(positive, negative))

    def function(near: Value, far: Value, *others: Value) -> Value:
        far = call("minimum", far, others[0]) if others else far
        return call("maximum", near - far + margin, 0)

    return reduce_loss(b, lazy_elementwise(distances, function, compute_dtype), reduction)


def renorm(b: Builder, self: Tensor, p: Any, dim: int, maxnorm: Any) -> Tensor:
    """Scale slices along ``dim`` whose norm exceeds ``maxnorm`` down to that norm."""
    meta = b.output_meta()
    norm_dtype = meta.dtype.compute_dtype.real
    (kept_dim,) = normalize_dims(dim, self.rank)
    dims = tuple(d for d in range(self.rank) if d != kept_dim)

    def factor(norm: Value, _: Index) -> Value:
        shrink_factor = maxnorm / (norm + 1e-07)
        is_large = norm > maxnorm
        return call("where", is_large, shrink_factor, 1)

    factors = reduce_norm(b, self, dims, float(p), norm_dtype, None, factor)

    def read(index: Index) -> Value:
        norm_index = tuple(i if d == kept_dim else _ZERO for d, i in enumerate(index))
        dtype = meta.dtype.compute_dtype
        return upcast(self.at(index), dtype) * upcast(factors.at(norm_index), dtype)

    return b.pointwise(meta.size, meta.dtype, read)


def cdist(b: Builder, x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: Any = None) -> Tensor:
    """Distances between each row of ``x1`` and each row of ``x2``."""
    meta = b.output_meta()
    leading_rank = len(meta.size) - 2
    first, second = (broadcast(t, (*meta.size[:leading_rank], *t.size[-2:])) for t in (x1, x2))

    def elements_at(index: Index) -> tuple[Value, Value]:
        *batch, i, j, k = index
        return first.at((*batch, i, k)), second.at((*batch, j, k))

    return _distance(b, (*meta.size, x1.size[-1]), elements_at, float(p))


def euclidean_dist(b: Builder, x1: Tensor, x2: Tensor) -> Tensor:
    return cdist(b, x1, x2)


def pdist(b: Builder, self: Tensor, p: float = 2.0) -> Tensor:
    """Distances between all pairs of rows, those of the first row first."""
    meta = b.output_meta()
    rows = self.size[0]
    if meta.size[0] == 0:
        return Tensor(meta.size, meta.dtype, lambda _: const(0.0, meta.dtype))

    def doubled_first_pair(row: Expr) -> Expr:
        """Twice the number of the first pair of a row with the rows after it: a half is not an
        integer expression."""
        return row * (2 * rows - row - 1)

    def is_before(index: Index, inner: Index) -> Value:
        return upcast(
            index_value(doubled_first_pair(inner[0] + 1)) <= index_value(2 * index[0]), DType.I64
        )

    row = b.reduction(meta.size, (rows - 1,), ReductionKind.SUM, is_before, dtype=DType.I64)

    def column(index: Index) -> Value:
        """The second row of the pair: its offset from the first pair, plus the row, plus one."""
        row_number = row.at(index)
        pairs_before = call("floordiv", row_number * (index_value(2 * rows - 1) - row_number), 2)
        return row_number + (index_value(index[0]) - pairs_before) + 1

    columns = b.pointwise(meta.size, DType.I64, column)

    def elements_at(index: Index) -> tuple[Value, Value]:
        pair, k = index
        first, second = (
            b.indirect(row_numbers, (pair,), rows, lambda x: self.at((x, k)), wrap=False)
            for row_numbers in (row, columns)
        )
        return first, second

    return _distance(b, (*meta.size, self.size[1]), elements_at, float(p))


def _distance(
    b: Builder, size: Index, elements_at: Callable[[Index], tuple[Value, Value]], p: float
) -> Tensor:
    """The norm of the differences of pairs along the last dimension."""
    dtype = b.output_meta().dtype

    def read(index: Index) -> Value:
        return call("sub", *(upcast(element, dtype) for element in elements_at(index)))

    difference = Tensor(size, dtype, read)
    if size[-1] == 0:
        return Tensor(size[:-1], dtype, lambda _: const(0.0, dtype))
    return reduce_norm(b, difference, (len(size) - 1,), p, dtype, size[:-1])
