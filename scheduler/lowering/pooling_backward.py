# ruff: noqa: ARG001 - rules have the signature of their op
"""Gradients of poolings. Each element of the input sums over the windows that touch it: nothing is
written to computed positions, and every run gives the same sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, call, const, index_value, upcast
from scheduler.lowering import layout, trees
from scheduler.lowering.adaptive_windows import AdaptiveWindows
from scheduler.lowering.builder import Builder
from scheduler.lowering.pooling import averaged_count
from scheduler.lowering.reductions import accumulator_type, divide_by_count
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.windows import InverseWindow, expand_to_rank, inverse_window, make_window


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
    held = accumulator_type(self.dtype)

    def read(index: Index, tap: Index) -> Value:
        position = index[lead:]
        windows, meets = touched(position, tap)
        return trees.masked_value(meets, gradient(index[:lead], windows, position), const(0, held))

    return b.reduction(
        self.size, taps, ReductionKind.SUM, read, dtype=b.meta().dtype, accumulate=held
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
        held = accumulator_type(self.dtype)
        seen = inverse_window(view)

        def gradient(leading: Index, windows: Index, _: Index) -> Value:
            value = upcast(grad_output.at((*leading, *windows)), held)
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
        seen, held = inverse_window(view), accumulator_type(self.dtype)

        gradient = _argmax_gradient(grad_output, indices, view.input, held)
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
        held = accumulator_type(self.dtype)

        def gradient(leading: Index, place: Index, _: Index) -> Value:
            value = upcast(grad_output.at((*leading, *place)), held)
            return divide_by_count(value, windows.count(place))

        return _sum_over_windows(b, self, turned.taps, touched, gradient)

    return rule


def adaptive_max_backward(rank: int) -> Callable[..., Tensor]:
    def rule(b: Builder, grad_output: Tensor, self: Tensor, indices: Tensor) -> Tensor:
        windows, turned, touched = _adaptive_windows(self, grad_output, rank)
        held = accumulator_type(self.dtype)
        gradient = _argmax_gradient(grad_output, indices, windows.input, held)
        return _sum_over_windows(b, self, turned.taps, touched, gradient)

    return rule
