"""Cumulative ops along a dimension, beyond sums and products."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Const, Value, call, const, index_value, upcast
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.creation import full
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.pointwise import materialize, promoted_type
from scheduler.lowering.reductions import accumulator_dtype, sum_over
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import normalize_dim, slice_dim

_ONE = sympy.Integer(1)
_ZERO = sympy.Integer(0)


def running_reduction(
    b: Builder, tensor: Tensor, dim: int, kind: ReductionKind, dtype: DType
) -> Tensor:
    """The scan of ``kind`` along ``dim``."""
    if tensor.size[dim] == 1:
        element_at = tensor.at
        return materialize(b, Tensor(tensor.size, dtype, lambda i: upcast(element_at(i), dtype)))
    return b.scan(tensor.size, dim, kind, tensor.at, dtype)


def cummax_or_cummin(kind: ReductionKind) -> Callable[..., Any]:
    """cummax and cummin: the extreme so far and its last index. A NaN persists, and its index is
    updated at every further NaN."""

    def rule(b: Builder, self: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        if self.rank == 0:
            normalize_dim(dim, 1)
            return self, full((), 0, DType.I64)
        axis = normalize_dim(dim, self.rank)
        best = running_reduction(b, self, axis, kind, self.dtype)

        def position_of_extreme(index: Index) -> Value:
            x, extreme = upcast(self.at(index), self.dtype), best.at(index)
            is_extreme = call("eq", x, upcast(extreme, self.dtype))
            if self.dtype.is_float:
                is_extreme = is_extreme | call("isnan", x)
            position, zero = index_value(index[axis]), const(0, DType.I64)
            return call("where", is_extreme, position, zero)

        positions = Tensor(self.size, DType.I64, position_of_extreme)
        return best, running_reduction(b, positions, axis, ReductionKind.MAX, DType.I64)

    return rule


def logcumsumexp(b: Builder, self: Tensor, dim: int) -> Tensor:
    if self.rank == 0:
        normalize_dim(dim, 1)
        return self
    if self.dtype.is_complex:
        return _logcumsumexp_of_complex(b, self, normalize_dim(dim, self.rank))
    return running_reduction(
        b, self, normalize_dim(dim, self.rank), ReductionKind.LOGSUMEXP, self.dtype
    )


_MAX_COMPLEX_LENGTH = 4096  # maximum length: each element sums all elements before it


def _logcumsumexp_of_complex(b: Builder, x: Tensor, dim: int) -> Tensor:
    """The cumulative log-sum-exp of complex numbers, shifted by the greatest real part so far, with
    the same number of turns of the angle as torch.

    torch computes ``log(exp(a) + exp(x))`` step by step, shifted by the operand with the greater
    real part. The angle stays within a quarter turn of that operand's, and may exceed half a turn.
    It therefore continues from the previous step, or restarts at an element greater than the sum
    before it.
    """
    size, dtype, real = x.size, x.dtype, x.dtype.real
    extent = size[dim]
    if not extent.is_Integer or int(extent) > _MAX_COMPLEX_LENGTH:
        raise Unsupported(
            f"a running log-sum-exp of more than {_MAX_COMPLEX_LENGTH} complex numbers is not "
            "supported"
        )
    principal = _sums_of_exponents(b, x, dim)
    full_turn = const(2 * math.pi, real)

    def component(op: str, tensor: Tensor, index: Index) -> Value:
        return call(op, upcast(tensor.at(index), dtype))

    def turns(angle: Value, index: Index) -> Value:
        """The number of turns between an angle and the principal value at this index."""
        return call("round", (angle - component("imag", principal, index)) / full_turn)

    def after_first(index: Index, value: Callable[[Index], Value], first: Value) -> Value:
        previous = (*index[:dim], index[dim] - 1, *index[dim + 1 :])
        return trees.masked_value(trees.less_than(_ZERO, index[dim]), value(previous), first)

    def restart_position(index: Index) -> Value:
        restarts = after_first(
            index,
            lambda before: component("real", principal, before) < component("real", x, index),
            Const(True, DType.BOOL),
        )
        return call("where", restarts, index_value(index[dim]), 0)

    def step_turns(index: Index) -> Value:
        return after_first(
            index, lambda before: turns(component("imag", principal, before), index), const(0, real)
        )

    starts = running_reduction(
        b, Tensor(size, DType.I64, restart_position), dim, ReductionKind.MAX, DType.I64
    )
    total_turns = running_reduction(b, Tensor(size, real, step_turns), dim, ReductionKind.SUM, real)

    def at_start(index: Index, start: Expr) -> Value:
        start_index = (*index[:dim], start, *index[dim + 1 :])
        return turns(component("imag", x, start_index), start_index) - total_turns.at(start_index)

    def with_turns(index: Index) -> Value:
        turns_since_start = b.indirect(starts, index, extent, lambda start: at_start(index, start))
        angle = full_turn * (total_turns.at(index) + turns_since_start)
        return call(
            "complex",
            component("real", principal, index),
            component("imag", principal, index) + angle,
        )

    return materialize(b, Tensor(size, dtype, with_turns))


def _sums_of_exponents(b: Builder, x: Tensor, dim: int) -> Tensor:
    """The principal value at each index."""
    dtype, real = x.dtype, x.dtype.real

    def element_at(index: Index, position: Expr) -> Value:
        return upcast(x.at((*index[:dim], position, *index[dim + 1 :])), dtype)

    real_parts = Tensor(x.size, real, lambda i: call("real", upcast(x.at(i), dtype)))
    maximum = running_reduction(b, real_parts, dim, ReductionKind.MAX, real)

    def finite(index: Index) -> Value:
        greatest = maximum.at(index)
        return upcast(call("where", call("isinf", greatest), 0, greatest), dtype)

    def term(index: Index, inner: Index) -> Value:
        exponential = call("exp", element_at(index, inner[0]) - finite(index))
        return trees.masked_value(
            trees.less_than(inner[0], index[dim] + 1), exponential, const(0, dtype)
        )

    return b.reduction(
        x.size,
        (x.size[dim],),
        ReductionKind.SUM,
        term,
        dtype=dtype,
        after=lambda total, index: call("log", total) + finite(index),
    )


def _areas(y: Tensor, x: Any, dim: int) -> Tensor:
    """Twice the areas of the trapezoids between neighbours along ``dim``, of width 1 without ``x``;
    integers for integer input, as in torch."""
    dtype = y.dtype if x is None else promoted_type((y, x))
    axis = normalize_dim(dim, y.rank)
    length = y.size[axis] - 1 if y.size[axis] != 0 else _ZERO
    first, second = slice_dim(y, axis, _ZERO, length), slice_dim(y, axis, _ONE, length)

    def step(index: Index, start: Expr) -> Value:
        shifted_index = (*index[:axis], index[axis] + start, *index[axis + 1 :])
        coordinate_index = (
            shifted_index[axis : axis + 1] if x.rank == 1 else shifted_index[y.rank - x.rank :]
        )
        broadcast_index = tuple(
            _ZERO if e == 1 else i for e, i in zip(x.size, coordinate_index, strict=True)
        )
        return upcast(x.at(broadcast_index), x.dtype)

    def area(index: Index) -> Value:
        height_sum = call(
            "add", *(upcast(neighbour.at(index), y.dtype) for neighbour in (first, second))
        )
        if x is None:
            return height_sum
        width = step(index, _ONE) - step(index, _ZERO)
        return upcast(height_sum, dtype) * upcast(width, dtype)

    return Tensor(first.size, dtype, area)


def trapezoid(b: Builder, y: Tensor, x: Any = None, dx: Any = 1, dim: int = -1) -> Tensor:
    """The integral by the trapezoidal rule."""
    meta = b.output_meta()
    areas = _areas(y, x, dim)
    return sum_over(
        b,
        areas,
        (normalize_dim(dim, y.rank),),
        dtype=meta.dtype,
        accumulate=accumulator_dtype(areas.dtype),
        size=meta.size,
        after=lambda acc, _: _halved(upcast(acc, meta.dtype), x, dx),
    )


def _halved(value: Value, x: Tensor | None, dx: float) -> Value:
    return value * (dx / 2) if x is None else value / 2.0


def cumulative_trapezoid(
    b: Builder, y: Tensor, x: Any = None, dx: Any = 1, dim: int = -1
) -> Tensor:
    """The cumulative integral by the trapezoidal rule."""
    meta = b.output_meta()
    areas = _areas(y, x, dim)
    axis = normalize_dim(dim, y.rank)
    if x is None:
        scaled = Tensor(
            areas.size, meta.dtype, lambda i: _halved(upcast(areas.at(i), meta.dtype), x, dx)
        )
        return running_reduction(b, scaled, axis, ReductionKind.SUM, meta.dtype)
    sum_dtype = areas.dtype if areas.dtype.is_inexact else DType.I64
    sums = running_reduction(b, areas, axis, ReductionKind.SUM, sum_dtype)
    sum_at = sums.at
    return materialize(
        b, Tensor(sums.size, meta.dtype, lambda i: _halved(upcast(sum_at(i), meta.dtype), x, dx))
    )
