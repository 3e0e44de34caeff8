# ruff: noqa: ARG001 - rules have the signature of their op
"""Poolings: reductions over a window."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.facts import is_nonnegative
from scheduler.ir.index.functions import Mod
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, call, const, index_value, upcast
from scheduler.lowering import layout, trees
from scheduler.lowering.adaptive_windows import AdaptiveWindows
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.reductions import accumulator_type, divide_by_count
from scheduler.lowering.tensor import Epilogue, Index, Tensor
from scheduler.lowering.windows import Window, expand_to_rank, make_window

_ZERO, _ONE = sympy.Integer(0), sympy.Integer(1)


def _pool(
    b: Builder,
    tensor: Tensor,
    view: Window,
    kind: ReductionKind,
    fill: float,
    *,
    output: int = 0,
    after: Epilogue | None = None,
) -> Tensor:
    """``kind`` over the window of each position; positions outside the input count as ``fill``."""
    meta = b.meta(output)
    lead = tensor.rank - len(view.kernel)
    held = accumulator_type(tensor.dtype) if tensor.dtype.is_float else tensor.dtype

    def read(index: Index, tap: Index) -> Value:
        place = view.place(index[lead:], tap)
        value = upcast(tensor.at((*index[:lead], *place)), held)
        return trees.masked_value(view.inside(place), value, _fill(fill, held))

    return b.reduction(
        meta.size, view.kernel, kind, read, dtype=meta.dtype, accumulate=held, after=after
    )


def _fill(value: float, dtype: DType) -> Value:
    if dtype.is_float or value == 0:
        return const(value, dtype)
    low = 0 if dtype.is_unsigned or dtype is DType.BOOL else -(1 << (8 * dtype.itemsize - 1))
    return const(low, dtype)


def max_pool(rank: int) -> Callable[..., Any]:
    def rule(
        b: Builder,
        self: Tensor,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Any:
        kernel = expand_to_rank(kernel_size, rank)
        view = make_window(self.size, b.meta().size, kernel, stride or kernel, padding, dilation)
        values = _pool(b, self, view, ReductionKind.MAX, -math.inf)
        assert b.node is not None
        if len(b.node.outputs) == 1:
            return values
        return values, _max_indices(b, self, view)

    return rule


def _max_indices(b: Builder, tensor: Tensor, view: Window) -> Tensor:
    """The flat position of each maximum in the input's plane."""
    lead = tensor.rank - len(view.kernel)

    def after(acc: Value, index: Index) -> Value:
        start = view.place(index[lead:], (_ZERO,) * len(view.kernel))
        return _plane_position(acc, start, view.kernel, view.dilation, view.input)

    return _pool(b, tensor, view, ReductionKind.ARGMAX, -math.inf, output=1, after=after)


def _plane_position(
    found: Value,
    start: Index,
    kernel: tuple[Expr, ...],
    dilation: tuple[int, ...],
    size: tuple[Expr, ...],
) -> Value:
    """The flat position in a plane of ``size`` of element ``found`` of a window at ``start``."""
    result: Value = index_value(0)
    for d, stride in enumerate(layout.contiguous_strides(size)):
        tap = call("floordiv", found, index_value(layout.contiguous_strides(kernel)[d]))
        tap = call("remainder", tap, index_value(kernel[d]))
        moved = tap * index_value(dilation[d])
        at = moved + index_value(start[d])
        if not is_nonnegative(start[d]):  # only -inf: the first outside the padding
            first = index_value(Mod(start[d], sympy.Integer(dilation[d])))
            at = call("maximum", at, first)
        result = result + at * index_value(stride)
    return result


def avg_pool(rank: int) -> Callable[..., Tensor]:
    def rule(
        b: Builder,
        self: Tensor,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        kernel = expand_to_rank(kernel_size, rank)
        view = make_window(self.size, b.meta().size, kernel, stride or kernel, padding)
        lead = self.rank - rank

        def after(acc: Value, index: Index) -> Value:
            if divisor_override:
                return _average(acc, sympy.Integer(divisor_override))
            return _average(acc, averaged_count(view, index[lead:], count_include_pad))

        return _pool(b, self, view, ReductionKind.SUM, 0.0, after=after)

    return rule


def _average(total: Value, number: Expr) -> Value:
    """A total divided by a number of elements; integers truncate towards zero, as in C."""
    if total.dtype.is_float:
        return divide_by_count(total, number)
    return call("truncdiv", total, upcast(index_value(number), total.dtype))


def averaged_count(view: Window, position: Index, with_padding: bool) -> Expr:
    """The number of elements in an average: those of the window within the (padded) input."""
    total: Expr = _ONE
    for d, start in enumerate(view.place(position, (_ZERO,) * len(position))):
        pad = view.padding[d] if with_padding else 0
        if view.within(d, pad):
            total = total * view.kernel[d]
        else:
            end = sympy.Min(start + view.kernel[d], view.input[d] + pad)
            total = total * (end - sympy.Max(start, sympy.Integer(-pad)))
    return total


def _adaptive(
    b: Builder,
    tensor: Tensor,
    rank: int,
    kind: ReductionKind,
    fill: float,
    after: Callable[[AdaptiveWindows, Value, Index], Value],
    output: int = 0,
) -> Tensor:
    meta = b.meta(output)
    lead = tensor.rank - rank
    windows = AdaptiveWindows(tensor.size[lead:], meta.size[lead:])
    held = accumulator_type(tensor.dtype)

    def read(index: Index, tap: Index) -> Value:
        place = windows.place(index[lead:], tap)
        value = upcast(tensor.at((*index[:lead], *place)), held)
        return trees.masked_value(windows.inside(index[lead:], place), value, const(fill, held))

    return b.reduction(
        meta.size,
        windows.taps,
        kind,
        read,
        dtype=meta.dtype,
        accumulate=held,
        after=lambda acc, index: after(windows, acc, index[lead:]),
    )


def adaptive_avg(rank: int) -> Callable[..., Tensor]:
    def rule(b: Builder, self: Tensor, output_size: Any) -> Tensor:
        return _adaptive(
            b,
            self,
            rank,
            ReductionKind.SUM,
            0.0,
            lambda windows, acc, position: divide_by_count(acc, windows.count(position)),
        )

    return rule


def adaptive_max(rank: int) -> Callable[..., tuple[Tensor, Tensor]]:
    def position(windows: AdaptiveWindows, acc: Value, index: Index) -> Value:
        start = windows.start(index)
        return _plane_position(acc, start, windows.taps, (1,) * rank, windows.input)

    def rule(b: Builder, self: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
        if not self.dtype.is_float:
            raise Unsupported("adaptive pooling of integers is not supported")
        values = _adaptive(b, self, rank, ReductionKind.MAX, -math.inf, lambda _, acc, __: acc)
        return values, _adaptive(b, self, rank, ReductionKind.ARGMAX, -math.inf, position, 1)

    return rule
