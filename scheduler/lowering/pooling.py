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
from scheduler.lowering.reductions import accumulator_dtype, divide_by_count
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
    meta = b.output_meta(output)
    leading_rank = tensor.rank - len(view.kernel)
    accumulate = accumulator_dtype(tensor.dtype) if tensor.dtype.is_float else tensor.dtype
    fill_value = fill
    if fill and not accumulate.is_float:
        has_sign = not accumulate.is_unsigned and accumulate is not DType.BOOL
        fill_value = -(1 << (8 * accumulate.itemsize - 1)) if has_sign else 0

    def read(index: Index, tap: Index) -> Value:
        input_index = view.input_index(index[leading_rank:], tap)
        value = upcast(tensor.at((*index[:leading_rank], *input_index)), accumulate)
        return trees.masked_value(view.inside(input_index), value, const(fill_value, accumulate))

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
        view = make_window(
            self.size, b.output_meta().size, kernel, stride or kernel, padding, dilation
        )
        values = _pool(b, self, view, ReductionKind.MAX, -math.inf)
        assert b.node is not None
        if len(b.node.outputs) == 1:
            return values
        leading_rank = self.rank - rank

        def after(acc: Value, index: Index) -> Value:
            """The flat position of the maximum in the input's plane."""
            start = view.input_index(index[leading_rank:], (_ZERO,) * rank)
            return _plane_position(acc, start, view.kernel, view.dilation, view.input)

        return values, _pool(b, self, view, ReductionKind.ARGMAX, -math.inf, output=1, after=after)

    return rule


def _plane_position(
    window_position: Value,
    start: Index,
    kernel: tuple[Expr, ...],
    dilation: tuple[int, ...],
    size: tuple[Expr, ...],
) -> Value:
    """The flat position in a plane of ``size`` of an element of the window at ``start``."""
    result: Value = index_value(0)
    for d, stride in enumerate(layout.contiguous_strides(size)):
        tap = call("floordiv", window_position, index_value(layout.contiguous_strides(kernel)[d]))
        tap = call("remainder", tap, index_value(kernel[d]))
        dilated = tap * index_value(dilation[d])
        position = dilated + index_value(start[d])
        if not is_nonnegative(start[d]):  # only -inf: the first outside the padding
            first_valid = index_value(Mod(start[d], sympy.Integer(dilation[d])))
            position = call("maximum", position, first_valid)
        result = result + position * index_value(stride)
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
        view = make_window(self.size, b.output_meta().size, kernel, stride or kernel, padding)
        leading_rank = self.rank - rank

        def after(acc: Value, index: Index) -> Value:
            if divisor_override:
                return _average(acc, sympy.Integer(divisor_override))
            return _average(acc, averaged_count(view, index[leading_rank:], count_include_pad))

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
    for d, start in enumerate(view.input_index(position, (_ZERO,) * len(position))):
        pad = view.padding[d] if with_padding else 0
        if view.within(d, pad):
            total = total * view.kernel[d]
        else:
            end = sympy.Min(start + view.kernel[d], view.input[d] + pad)
            total = total * (end - sympy.Max(start, sympy.Integer(-pad)))
    return total


def _adaptive_pool(
    b: Builder,
    tensor: Tensor,
    rank: int,
    kind: ReductionKind,
    fill: float,
    after: Callable[[AdaptiveWindows, Value, Index], Value],
    output: int = 0,
) -> Tensor:
    meta = b.output_meta(output)
    leading_rank = tensor.rank - rank
    windows = AdaptiveWindows(tensor.size[leading_rank:], meta.size[leading_rank:])
    accumulate = accumulator_dtype(tensor.dtype)

    def read(index: Index, tap: Index) -> Value:
        input_index = windows.input_index(index[leading_rank:], tap)
        value = upcast(tensor.at((*index[:leading_rank], *input_index)), accumulate)
        return trees.masked_value(
            windows.inside(index[leading_rank:], input_index), value, const(fill, accumulate)
        )

    return b.reduction(
        meta.size,
        windows.taps,
        kind,
        read,
        dtype=meta.dtype,
        accumulate=accumulate,
        after=lambda acc, index: after(windows, acc, index[leading_rank:]),
    )


def adaptive_avg(rank: int) -> Callable[..., Tensor]:
    def rule(b: Builder, self: Tensor, output_size: Any) -> Tensor:
        return _adaptive_pool(
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
        values = _adaptive_pool(b, self, rank, ReductionKind.MAX, -math.inf, lambda _, acc, __: acc)
        return values, _adaptive_pool(b, self, rank, ReductionKind.ARGMAX, -math.inf, position, 1)

    return rule


# Gradients: each element of the input sums over the windows that touch it. Nothing is written to
# computed positions, and every run gives the same sums.


def _sum_over_windows(
    b: Builder,
    self: Tensor,
    taps: tuple[Expr, ...],
    touching_window: Callable[[Index, Index], tuple[Index, Value]],
    gradient: Callable[[Index, Index, Index], Value],
) -> Tensor:
    """The sum over the windows that touch each position. ``touching_window`` returns a
    window and whether it touches; ``gradient`` its contribution: (leading index, window,
    position)."""
    leading_rank = self.rank - len(taps)
    accumulate = accumulator_dtype(self.dtype)

    def read(index: Index, tap: Index) -> Value:
        position = index[leading_rank:]
        windows, touches = touching_window(position, tap)
        return trees.masked_value(
            touches, gradient(index[:leading_rank], windows, position), const(0, accumulate)
        )

    return b.reduction(
        self.size, taps, ReductionKind.SUM, read, dtype=b.output_meta().dtype, accumulate=accumulate
    )


def _argmax_gradient(
    grad_output: Tensor, indices: Tensor, size: tuple[Expr, ...], dtype: DType
) -> Callable[[Index, Index, Index], Value]:
    """A window's gradient if the given position is its maximum."""

    def gradient(leading: Index, windows: Index, position: Index) -> Value:
        output_index = (*leading, *windows)
        flat = sympy.Add(
            *(p * s for p, s in zip(position, layout.contiguous_strides(size), strict=True))
        )
        is_maximum = call("eq", upcast(indices.at(output_index), DType.I64), index_value(flat))
        return call("where", is_maximum, upcast(grad_output.at(output_index), dtype), 0)

    return gradient


def _touching_window(inverse: InverseWindow) -> Callable[[Index, Index], tuple[Index, Value]]:
    """The window that touches a position, and whether it does."""

    def touching_window(position: Index, tap: Index) -> tuple[Index, Value]:
        windows, _, touches = inverse.at(position, tap)
        return windows, touches

    return touching_window


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
        accumulate = accumulator_dtype(self.dtype)
        inverse = inverse_window(view)

        def gradient(leading: Index, windows: Index, _: Index) -> Value:
            value = upcast(grad_output.at((*leading, *windows)), accumulate)
            if divisor_override:
                return divide_by_count(value, sympy.Integer(divisor_override))
            return divide_by_count(value, averaged_count(view, windows, count_include_pad))

        return _sum_over_windows(b, self, inverse.taps, _touching_window(inverse), gradient)

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
        inverse, accumulate = inverse_window(view), accumulator_dtype(self.dtype)

        gradient = _argmax_gradient(grad_output, indices, view.input, accumulate)
        return _sum_over_windows(b, self, inverse.taps, _touching_window(inverse), gradient)

    return rule


def _adaptive_windows(
    self: Tensor, grad_output: Tensor, rank: int
) -> tuple[AdaptiveWindows, AdaptiveWindows, Callable[[Index, Index], tuple[Index, Value]]]:
    """The pooling's windows, their inverse, and the function for those that touch a position."""
    leading_rank = self.rank - rank
    windows = AdaptiveWindows(self.size[leading_rank:], grad_output.size[leading_rank:])
    inverse = windows.inverse

    def touching_window(position: Index, tap: Index) -> tuple[Index, Value]:
        window = inverse.input_index(position, tap)
        return window, inverse.inside(position, window)

    return windows, inverse, touching_window


def adaptive_avg_backward(rank: int) -> Callable[..., Tensor]:
    def rule(b: Builder, grad_output: Tensor, self: Tensor) -> Tensor:
        windows, inverse, touching_window = _adaptive_windows(self, grad_output, rank)
        accumulate = accumulator_dtype(self.dtype)

        def gradient(leading: Index, window: Index, _: Index) -> Value:
            value = upcast(grad_output.at((*leading, *window)), accumulate)
            return divide_by_count(value, windows.count(window))

        return _sum_over_windows(b, self, inverse.taps, touching_window, gradient)

    return rule


def adaptive_max_backward(rank: int) -> Callable[..., Tensor]:
    def rule(b: Builder, grad_output: Tensor, self: Tensor, indices: Tensor) -> Tensor:
        windows, inverse, touching_window = _adaptive_windows(self, grad_output, rank)
        accumulate = accumulator_dtype(self.dtype)
        gradient = _argmax_gradient(grad_output, indices, windows.input, accumulate)
        return _sum_over_windows(b, self, inverse.taps, touching_window, gradient)

    return rule
