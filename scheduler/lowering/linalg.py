"""Linear algebra made of products and sums; matrix factorizations run through the reference."""

from __future__ import annotations

from typing import Any

import sympy

from scheduler.ir.index.functions import Mod
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, call, index_value, upcast
from scheduler.lowering import matmul, reductions
from scheduler.lowering.builder import Builder
from scheduler.lowering.complex_numbers import conj
from scheduler.lowering.errors import SPECTRA, Unsupported
from scheduler.lowering.layout import broadcast_size
from scheduler.lowering.pointwise import materialize
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import broadcast, normalize_dim

_ONE = sympy.Integer(1)
_INFINITY = float("inf")


def vecdot(b: Builder, x: Tensor, y: Tensor, dim: int = -1) -> Tensor:
    """The sum of products along ``dim``; the tensors broadcast."""
    meta = b.output_meta()
    size = broadcast_size([x.size, y.size])
    first, second = broadcast(conj(b, x), size), broadcast(y, size)
    accumulate = reductions.accumulator_dtype(meta.dtype)

    def read(index: Index) -> Value:
        return call("mul", *(upcast(vector.at(index), accumulate) for vector in (first, second)))

    return reductions.sum_over(
        b,
        Tensor(size, accumulate, read),
        (normalize_dim(dim, len(size)),),
        dtype=meta.dtype,
        accumulate=accumulate,
        size=meta.size,
    )


def cross(b: Builder, self: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product of three-element vectors along ``dim``, by default the first of size 3."""
    meta = b.output_meta()
    axis = meta.size.index(3) if dim is None else normalize_dim(dim, len(meta.size))
    first, second = broadcast(self, meta.size), broadcast(other, meta.size)

    def element(tensor: Tensor, index: Index, step: int) -> Value:
        component = Mod(index[axis] + step, sympy.Integer(3))
        return upcast(tensor.at((*index[:axis], component, *index[axis + 1 :])), meta.dtype)

    def read(index: Index) -> Value:
        positive = element(first, index, 1) * element(second, index, 2)
        negative = element(first, index, 2) * element(second, index, 1)
        return positive - negative

    return materialize(b, Tensor(meta.size, meta.dtype, read))


def vandermonde(b: Builder, x: Tensor, N: int | None = None) -> Tensor:  # noqa: N803, ARG001
    """x to the powers 0, 1, … along a new last dimension."""
    meta = b.output_meta()
    compute_dtype = meta.dtype.compute_dtype

    def read(index: Index) -> Value:
        exponent = upcast(index_value(index[-1]), compute_dtype)
        element_index = index[:-1] if x.rank else ()
        power = call("pow", upcast(x.at(element_index), compute_dtype), exponent)
        if not compute_dtype.is_complex:
            return power
        return call("where", call("eq", exponent, 0), 1, power)

    return materialize(b, Tensor(meta.size, meta.dtype, read))


def multi_dot(b: Builder, tensors: tuple[Tensor, ...]) -> Tensor:
    """The product of matrices from left to right; the first and the last may be vectors."""
    meta = b.output_meta()
    *inner, last = tensors
    if not inner:
        raise Unsupported("a product of a single matrix is not supported")
    result = (
        inner[0] if inner[0].rank > 1 else inner[0].view((_ONE, *inner[0].size), lambda i: i[1:])
    )
    for matrix in inner[1:]:
        size = (result.size[0], matrix.size[1])
        result = matmul.product(b, "multi_dot", result, matrix, size, meta.dtype, None)
    if inner[0].rank == 1:
        row = result
        result = row.view(row.size[1:], lambda i: (sympy.Integer(0), *i))
    return matmul.matmul(b, "multi_dot", result, last)


def matrix_norm(
    b: Builder, self: Tensor, ord: Any = "fro", dim: tuple[int, ...] = (-2, -1), **_: Any
) -> Tensor:
    """The root of the sum of squares, or the maximum or minimum column (1) or row (inf) sum."""
    rows, columns = (normalize_dim(d, self.rank) for d in dim)
    if ord == "fro":
        return reductions.norm(b, self, ord=2, dim=dim)
    if ord not in (1, -1, _INFINITY, -_INFINITY):
        raise Unsupported(SPECTRA.reason)
    meta = b.output_meta()
    compute_dtype = meta.dtype.compute_dtype
    summed_dim, compared_dim = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sizes = Tensor(self.size, compute_dtype, lambda i: call("abs", self.at(i)))
    sums = reductions.sum_over(b, sizes, (summed_dim,), dtype=compute_dtype)
    return reductions.reduce(
        b,
        sums,
        tuple(sorted((summed_dim, compared_dim))),
        ReductionKind.MAX if ord > 0 else ReductionKind.MIN,
        dtype=meta.dtype,
        accumulate=compute_dtype,
        size=meta.size,
        after=reductions.zero_if_empty(self, (compared_dim,)) if ord > 0 else None,
    )


def norm(b: Builder, self: Tensor, ord: Any = None, dim: Any = None, **_: Any) -> Tensor:
    """The norm of vectors along one dimension, or of matrices; without ``ord``, of all elements."""
    if dim is None and ord is not None and self.rank == 2:
        dim = (-2, -1)
    if isinstance(dim, tuple) and len(dim) == 2 and ord is not None:
        return matrix_norm(b, self, ord, dim)
    return reductions.norm(b, self, ord=2 if ord is None else ord, dim=dim)
