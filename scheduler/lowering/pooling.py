# ruff: noqa: ARG001 - rules have the signature of their op
"""Poolings, which are reductions over a window, and their gradients."""

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
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.reductions import accumulator_type, divide_by_count
from scheduler.lowering.tensor import Epilogue, Index, Tensor
from scheduler.lowering.windows import (
    AdaptiveWindows,
    InverseWindow,
    Window,
    expand_to_rank,
    inverse_window,
    make_window,
)

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
    accumulate = accumulator_type(tensor.dtype) if tensor.dtype.is_float else tensor.dtype
    least = fill
    if fill and not accumulate.is_float:
        has_sign = not accumulate.is_unsigned and accumulate is not DType.BOOL
        least = -(1 << (8 * accumulate.itemsize - 1)) if has_sign else 0

    def read(index: Index, tap: Index) -> Value:
        place = view.place(index[lead:], tap)
        value = upcast(tensor.at((*index[:lead], *place)), accumulate)
        return trees.masked_value(view.inside(place), value, const(least, accumulate))

    return b.reduction(
        meta.size, view.kernel, kind, read, dtype=meta.dtype, accumulate=accumulate, after=after
    )


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
        lead = self.rank - rank

        def after(acc: Value, index: Index) -> Value:
            """The flat position of the maximum in the input's plane."""
            start = view.place(index[lead:], (_ZERO,) * rank)
            return _plane_position(acc, start, view.kernel, view.dilation, view.input)

        return values, _pool(b, self, view, ReductionKind.ARGMAX, -math.inf, output=1, after=after)

    return rule


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
    accumulate = accumulator_type(tensor.dtype)

    def read(index: Index, tap: Index) -> Value:
        place = windows.place(index[lead:], tap)
        value = upcast(tensor.at((*index[:lead], *place)), accumulate)
        return trees.masked_value(
            windows.inside(index[lead:], place), value, const(fill, accumulate)
        )

    return b.reduction(
        meta.size,
        windows.taps,
        kind,
        read,
        dtype=meta.dtype,
        accumulate=accumulate,
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


# Gradients: each element of the input sums over the windows that touch it. Nothing is written to
# computed positions, and every run gives the same sums.


def _sum_over_windows(
    b: Builder,
    self: Tensor,
    taps: tuple[Expr, ...],
    touched: Callable[[Index, Index], tuple[Index, Value]],
    gradient: Callable[[Index, Index, Index], Value],
) -> Tensor:
    """The sum over the windows that touch each position. ``touched`` returns a window and whether
    it touches; ``gradient`` its contribution: (leading index, window, position)."""
    lead = self.rank - len(taps)
    accumulate = accumulator_type(self.dtype)

    def read(index: Index, tap: Index) -> Value:
        position = index[lead:]
        windows, meets = touched(position, tap)
        return trees.masked_value(
            meets, gradient(index[:lead], windows, position), const(0, accumulate)
        )

    return b.reduction(
        self.size, taps, ReductionKind.SUM, read, dtype=b.meta().dtype, accumulate=accumulate
    )


def _argmax_gradient(
    grad_output: Tensor, indices: Tensor, size: tuple[Expr, ...], held: DType
) -> Callable[[Index, Index, Index], Value]:
    """A window's gradient if the given position is its maximum."""

    def gradient(leading: Index, windows: Index, position: Index) -> Value:
        place = (*leading, *windows)
        flat = sympy.Add(
            *(p * s for p, s in zip(position, layout.contiguous_strides(size), strict=True))
        )
        same = call("eq", upcast(indices.at(place), DType.I64), index_value(flat))
        return call("where", same, upcast(grad_output.at(place), held), 0)

    return gradient


def _touching_window(seen: InverseWindow) -> Callable[[Index, Index], tuple[Index, Value]]:
    """The window that touches a position, and whether it does."""

    def touched(position: Index, tap: Index) -> tuple[Index, Value]:
        windows, _, meets = seen.at(position, tap)
        return windows, meets

    return touched


def avg_pool_backward(rank: int) -> Callable[..., Tensor]:
    def rule(
        b: Builder,
        grad_output: Tensor,
        self: Tensor,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Tensor:
        kernel = expand_to_rank(kernel_size, rank)
        view = make_window(self.size, grad_output.size, kernel, stride or kernel, padding)
        accumulate = accumulator_type(self.dtype)
        seen = inverse_window(view)

        def gradient(leading: Index, windows: Index, _: Index) -> Value:
            value = upcast(grad_output.at((*leading, *windows)), accumulate)
            if divisor_override:
                return divide_by_count(value, sympy.Integer(divisor_override))
            return divide_by_count(value, averaged_count(view, windows, count_include_pad))

        return _sum_over_windows(b, self, seen.taps, _touching_window(seen), gradient)

    return rule


def max_pool_backward(rank: int) -> Callable[..., Tensor]:
    def rule(
        b: Builder,
        grad_output: Tensor,
        self: Tensor,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        ceil_mode: bool,
        indices: Tensor,
    ) -> Tensor:
        kernel = expand_to_rank(kernel_size, rank)
        view = make_window(self.size, grad_output.size, kernel, stride or kernel, padding, dilation)
        seen, accumulate = inverse_window(view), accumulator_type(self.dtype)

        gradient = _argmax_gradient(grad_output, indices, view.input, accumulate)
        return _sum_over_windows(b, self, seen.taps, _touching_window(seen), gradient)

    return rule


def _adaptive_windows(
    self: Tensor, grad_output: Tensor, rank: int
) -> tuple[AdaptiveWindows, AdaptiveWindows, Callable[[Index, Index], tuple[Index, Value]]]:
    """The pooling's windows, their inverse, and the function for those that touch a position."""
    lead = self.rank - rank
    windows = AdaptiveWindows(self.size[lead:], grad_output.size[lead:])
    turned = windows.inverse

    def touched(position: Index, tap: Index) -> tuple[Index, Value]:
        place = turned.place(position, tap)
        return place, turned.inside(position, place)

    return windows, turned, touched


def adaptive_avg_backward(rank: int) -> Callable[..., Tensor]:
    def rule(b: Builder, grad_output: Tensor, self: Tensor) -> Tensor:
        windows, turned, touched = _adaptive_windows(self, grad_output, rank)
        accumulate = accumulator_type(self.dtype)

        def gradient(leading: Index, place: Index, _: Index) -> Value:
            value = upcast(grad_output.at((*leading, *place)), accumulate)
            return divide_by_count(value, windows.count(place))

        return _sum_over_windows(b, self, turned.taps, touched, gradient)

    return rule


def adaptive_max_backward(rank: int) -> Callable[..., Tensor]:
    def rule(b: Builder, grad_output: Tensor, self: Tensor, indices: Tensor) -> Tensor:
        windows, turned, touched = _adaptive_windows(self, grad_output, rank)
        accumulate = accumulator_type(self.dtype)
        gradient = _argmax_gradient(grad_output, indices, windows.input, accumulate)
        return _sum_over_windows(b, self, turned.taps, touched, gradient)

    return rule
