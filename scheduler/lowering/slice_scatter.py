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
    axis = normalize_dim(dim, self.rank)
    position = position_along(b, index, self.size[axis])

    def read(i: Index) -> Value:
        is_selected = trees.equal(i[axis], position)
        return trees.masked_value(
            is_selected, upcast(src.at((*i[:axis], *i[axis + 1 :])), self.dtype), self.at(i)
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
    axis = normalize_dim(dim, self.rank)
    if not isinstance(step, int) or step < 1:
        raise Unsupported(f"slice_scatter with step {step} is not supported")
    first = start_along(b, start, self.size[axis])
    last = first + src.size[axis] * step

    def read(i: Index) -> Value:
        position = i[axis]
        source_position = position - first
        conditions = [index_value(position) >= index_value(first)]
        conditions.append(trees.less_than(position, last))
        if step > 1:
            remainder = index_value(Mod(source_position, as_expr(step)))
            conditions.append(call("eq", remainder, index_value(0)))
            source_position = FloorDiv(source_position, as_expr(step))
        value = upcast(src.at((*i[:axis], source_position, *i[axis + 1 :])), self.dtype)
        return trees.masked_value(trees.all_of(*conditions), value, self.at(i))

    return materialize(b, Tensor(self.size, self.dtype, read))


def diagonal_scatter(
    b: Builder, self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    first, second = normalize_dim(dim1, self.rank), normalize_dim(dim2, self.rank)
    below, right = max(-offset, 0), max(offset, 0)

    def read(i: Index) -> Value:
        diagonal_position = i[first] - below
        is_on_diagonal = trees.equal(diagonal_position, i[second] - right)
        is_not_before = index_value(diagonal_position) >= index_value(0)
        leading = tuple(x for d, x in enumerate(i) if d not in (first, second))
        return trees.masked_value(
            trees.all_of(is_on_diagonal, is_not_before),
            upcast(src.at((*leading, diagonal_position)), self.dtype),
            self.at(i),
        )

    return materialize(b, Tensor(self.size, self.dtype, read))


def _zeros(b: Builder, grad: Tensor) -> Tensor:
    return full(b.output_meta().size, 0, grad.dtype)


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
    meta = b.output_meta()
    axis = normalize_dim(dim, len(meta.size))
    if not meta.size:
        return grad_in.view(meta.size, lambda _: (sympy.Integer(0),))
    sum_dtype = combine_dtype(grad_in.dtype)
    max_windows = -(-size // step)

    def read(i: Index, window: Index) -> Value:
        window_number = FloorDiv(i[axis], as_expr(step)) - window[0]
        tap = i[axis] - window_number * step
        is_inside = trees.all_of(
            index_value(window_number) >= index_value(0),
            trees.less_than(window_number, grad_in.size[axis]),
            trees.less_than(tap, as_expr(size)),
        )
        value = upcast(grad_in.at((*i[:axis], window_number, *i[axis + 1 :], tap)), sum_dtype)
        return trees.masked_value(is_inside, value, const(0, sum_dtype))

    def after(value: Value, _: Index) -> Value:
        return from_combine_dtype(value, grad_in.dtype)

    accumulate = sum_dtype.compute_dtype if sum_dtype.is_float else DType.I64
    return b.reduction(
        meta.size,
        (as_expr(max_windows),),
        ReductionKind.SUM,
        read,
        dtype=grad_in.dtype,
        accumulate=accumulate,
        after=after,
    )
