# ruff: noqa: ARG001 - rules have the signature of their op
"""Ops that replace part of a tensor (slice_scatter and similar), and gradients that are zero except
for a part: those of slices, selections, diagonals and windows."""

from __future__ import annotations

from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.index.functions import FloorDiv, Mod, as_expr
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, call, const, index_value, upcast
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.creation import full
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.pointwise import materialize
from scheduler.lowering.scatter import combine_dtype, from_combine_dtype
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import normalize_dim, position_along, start_along


def select_scatter(b: Builder, self: Tensor, src: Tensor, dim: int, index: Any) -> Tensor:
    at = normalize_dim(dim, self.rank)
    chosen = position_along(b, index, self.size[at])

    def read(i: Index) -> Value:
        here = trees.equal(i[at], chosen)
        return trees.masked_value(
            here, upcast(src.at((*i[:at], *i[at + 1 :])), self.dtype), self.at(i)
        )

    return materialize(b, Tensor(self.size, self.dtype, read))


def slice_scatter(
    b: Builder,
    self: Tensor,
    src: Tensor,
    dim: int = 0,
    start: Any = None,
    end: Any = None,
    step: int = 1,
) -> Tensor:
    at = normalize_dim(dim, self.rank)
    if not isinstance(step, int) or step < 1:
        raise Unsupported(f"slice_scatter with step {step} is not supported")
    first = start_along(b, start, self.size[at])
    last = first + src.size[at] * step

    def read(i: Index) -> Value:
        x = i[at]
        place = x - first
        conditions = [index_value(x) >= index_value(first)]
        conditions.append(trees.less_than(x, last))
        if step > 1:
            rest = index_value(Mod(place, as_expr(step)))
            conditions.append(call("eq", rest, index_value(0)))
            place = FloorDiv(place, as_expr(step))
        value = upcast(src.at((*i[:at], place, *i[at + 1 :])), self.dtype)
        return trees.masked_value(trees.all_of(*conditions), value, self.at(i))

    return materialize(b, Tensor(self.size, self.dtype, read))


def diagonal_scatter(
    b: Builder, self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    first, second = normalize_dim(dim1, self.rank), normalize_dim(dim2, self.rank)
    below, right = max(-offset, 0), max(offset, 0)

    def read(i: Index) -> Value:
        along = i[first] - below
        same = trees.equal(along, i[second] - right)
        inside = index_value(along) >= index_value(0)
        rest = tuple(x for d, x in enumerate(i) if d not in (first, second))
        return trees.masked_value(
            trees.all_of(same, inside), upcast(src.at((*rest, along)), self.dtype), self.at(i)
        )

    return materialize(b, Tensor(self.size, self.dtype, read))


def _zeros(b: Builder, grad: Tensor) -> Tensor:
    return full(b.meta().size, 0, grad.dtype)


def select_backward(
    b: Builder, grad_output: Tensor, input_sizes: Any, dim: int, index: Any
) -> Tensor:
    return select_scatter(b, _zeros(b, grad_output), grad_output, dim, index)


def slice_backward(
    b: Builder, grad_output: Tensor, input_sizes: Any, dim: int, start: Any, end: Any, step: int
) -> Tensor:
    return slice_scatter(b, _zeros(b, grad_output), grad_output, dim, start, end, step)


def diagonal_backward(
    b: Builder, grad_output: Tensor, input_sizes: Any, offset: int, dim1: int, dim2: int
) -> Tensor:
    return diagonal_scatter(b, _zeros(b, grad_output), grad_output, offset, dim1, dim2)


def unfold_backward(
    b: Builder, grad_in: Tensor, input_sizes: Any, dim: int, size: int, step: int
) -> Tensor:
    """The sum over the windows that contain an element: those that begin less than ``size`` before
    it."""
    meta = b.meta()
    at = normalize_dim(dim, len(meta.size))
    if not meta.size:
        return grad_in.view(meta.size, lambda _: (sympy.Integer(0),))
    held = combine_dtype(grad_in.dtype)
    most = -(-size // step)

    def read(i: Index, window: Index) -> Value:
        number = FloorDiv(i[at], as_expr(step)) - window[0]
        place = i[at] - number * step
        inside = trees.all_of(
            index_value(number) >= index_value(0),
            trees.less_than(number, grad_in.size[at]),
            trees.less_than(place, as_expr(size)),
        )
        value = upcast(grad_in.at((*i[:at], number, *i[at + 1 :], place)), held)
        return trees.masked_value(inside, value, const(0, held))

    def after(value: Value, _: Index) -> Value:
        return from_combine_dtype(value, grad_in.dtype)

    sums = held.compute_dtype if held.is_float else DType.I64
    return b.reduction(
        meta.size,
        (as_expr(most),),
        ReductionKind.SUM,
        read,
        dtype=grad_in.dtype,
        accumulate=sums,
        after=after,
    )
