"""Sums of what is a number, and areas under points: reductions of values made on the way."""

from __future__ import annotations

from typing import Any

import sympy

from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value
from scheduler.lowering.builder import Builder
from scheduler.lowering.compose import computed
from scheduler.lowering.creation import full
from scheduler.lowering.reductions import accumulator_type, dims_of, reduce, sum_op
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.trees import call, const
from scheduler.lowering.views import axis, cut

_ZERO, _ONE = sympy.Integer(0), sympy.Integer(1)


def nansum(b: Builder, self: Tensor, dim: Any = None, **_: Any) -> Tensor:
    """The sum of what is no NaN."""
    if not self.dtype.is_float:
        return sum_op(b, self, dim)
    return sum_op(b, _numbers(self), dim)


def _numbers(tensor: Tensor) -> Tensor:
    """With 0 in place of NaN."""
    return computed(
        (tensor,), lambda x: call("where", call("isnan", x), const(0, x.dtype), x), tensor.dtype
    )


def nanmean(b: Builder, self: Tensor, dim: Any = None, **_: Any) -> Tensor:
    """The mean of what is no NaN."""
    meta = b.meta()
    held = accumulator_type(meta.dtype)
    dims = dims_of(dim, self.rank)

    def counted(value: Value, _: Index) -> Value:
        return call("where", call("isnan", value), const(0, held), const(1, held))

    count = reduce(
        b,
        self,
        dims,
        ReductionKind.SUM,
        dtype=held,
        accumulate=held,
        size=meta.size,
        before=counted,
    )
    return reduce(
        b,
        _numbers(self),
        dims,
        ReductionKind.SUM,
        dtype=meta.dtype,
        accumulate=held,
        size=meta.size,
        after=lambda acc, index: call("truediv", acc, count.at(index)),
    )


def trapezoid(b: Builder, y: Tensor, x: Tensor | None = None, dx: Any = 1, dim: int = -1) -> Tensor:
    """The area under the points along ``dim``, which are ``x`` or ``dx`` apart."""
    meta = b.meta()
    areas = _areas(b, y, x, dx, dim)
    if areas is None:
        return full(meta.size, 0, meta.dtype)
    at, pieces = areas
    return reduce(
        b,
        pieces,
        (at,),
        ReductionKind.SUM,
        dtype=meta.dtype,
        accumulate=accumulator_type(meta.dtype),
        size=meta.size,
    )


def cumulative_trapezoid(
    b: Builder, y: Tensor, x: Tensor | None = None, dx: Any = 1, dim: int = -1
) -> Tensor:
    """The same up to each point."""
    meta = b.meta()
    areas = _areas(b, y, x, dx, dim)
    if areas is None:
        return full(meta.size, 0, meta.dtype)
    at, pieces = areas
    if pieces.size[at] == 1:
        return b.pointwise(meta.size, meta.dtype, pieces.at)
    return b.scan(pieces.size, at, ReductionKind.SUM, pieces.at, meta.dtype)


def _areas(b: Builder, y: Tensor, x: Tensor | None, dx: Any, dim: int) -> tuple[int, Tensor] | None:
    """The dimension, and the areas between neighbours; None where there are no two points."""
    dtype = b.meta().dtype
    rank = max(y.rank, x.rank if x is not None else 0)
    at = axis(dim, rank)
    tensors = [y if y.rank == rank else y.view(_wide(y, rank), lambda i: i[rank - y.rank :])]
    if x is not None:
        if x.rank == 1 < rank:
            points, size = x, tuple(x.size[0] if d == at else _ONE for d in range(rank))
            tensors.append(points.view(size, lambda i: (i[at],)))
        else:
            tensors.append(x if x.rank == rank else x.view(_wide(x, rank), lambda i: i[-x.rank :]))
    if any(t.size[at] in (0, 1) for t in tensors):
        return None
    ends: list[Tensor] = []
    for tensor in tensors:
        length = tensor.size[at] - 1
        ends += [cut(tensor, at, _ONE, length), cut(tensor, at, _ZERO, length)]

    def function(high: Value, low: Value, *places: Value) -> Value:
        width: Value = const(dx, dtype) if not places else call("sub", *places)
        area = call("mul", call("add", high, low), width)
        return call("mul", area, const(0.5, dtype))

    held = tuple(ends)
    return at, computed(held, function, dtype)


def _wide(tensor: Tensor, rank: int) -> tuple[Any, ...]:
    return (*(_ONE,) * (rank - tensor.rank), *tensor.size)
