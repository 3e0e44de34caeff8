"""Windows over spatial dimensions, shared by convolutions and poolings, and those of adaptive
poolings, which cover an input of any size evenly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.facts import is_less
from scheduler.ir.index.functions import FloorDiv, Mod, as_expr
from scheduler.ir.index.simplify import product, simplify
from scheduler.ir.values import Value, call, index_value
from scheduler.lowering import trees
from scheduler.lowering.tensor import Index

_MAX_ENUMERATED = 1 << 16  # adaptive windows whose lengths are computed one by one


def expand_to_rank(value: Any, rank: int) -> tuple[int, ...]:
    """One number per spatial dimension, from one for all or one for each."""
    values = value if isinstance(value, tuple) else (value,)
    return tuple(int(x) for x in (values * rank if len(values) == 1 else values))


@dataclass(frozen=True)
class Window:
    """The input positions of a window: ``position * stride - padding + tap * dilation``.

    ``input`` are the spatial sizes of the input, ``kernel`` those of the window.
    """

    input: tuple[Expr, ...]
    output: tuple[Expr, ...]
    kernel: tuple[Expr, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    def input_index(self, position: Index, tap: Index) -> Index:
        """The input position."""
        return tuple(
            i * s - pad + tap_index * d
            for i, tap_index, s, pad, d in zip(
                position, tap, self.stride, self.padding, self.dilation, strict=True
            )
        )

    def inside(self, input_index: Index) -> Value:
        """Whether an input position exists; tested only where the window can leave the input."""
        conditions = []
        for d, i in enumerate(input_index):
            if self.padding[d]:
                conditions.append(index_value(i) >= index_value(0))
            if not self._ends_within(d, 0):
                conditions.append(trees.less_than(i, self.input[d]))
        return trees.all_of(*conditions)

    def within(self, d: int, margin: int) -> bool:
        """Whether every window lies inside dimension ``d`` of the input, extended by ``margin`` on
        each side."""
        return self.padding[d] <= margin and self._ends_within(d, margin)

    def _ends_within(self, d: int, margin: int) -> bool:
        last = (
            (self.output[d] - 1) * self.stride[d]
            - self.padding[d]
            + (self.kernel[d] - 1) * self.dilation[d]
        )
        return is_less(last, self.input[d] + margin)


def make_window(
    size: tuple[Expr, ...],
    output: tuple[Expr, ...],
    kernel: tuple[Any, ...],
    stride: Any,
    padding: Any,
    dilation: Any = 1,
) -> Window:
    """A window over the last dimensions of ``size``, one for each in ``kernel``."""
    rank = len(kernel)
    taps = tuple(as_expr(k) for k in kernel)
    strides = (
        expand_to_rank(stride, rank) if stride not in ((), None) else expand_to_rank(kernel, rank)
    )
    return Window(
        size[-rank:],
        output[-rank:],
        taps,
        strides,
        expand_to_rank(padding, rank),
        expand_to_rank(dilation, rank),
    )


@dataclass(frozen=True)
class InverseWindow:
    """The windows that touch a position, for gradients of windows and transposed convolutions.

    Window ``w`` touches ``w * stride - padding + tap * dilation`` for each tap of ``kernel``.
    ``windows`` is their number along each dimension. With dilation 1 only the taps that meet the
    position are enumerated.
    """

    windows: tuple[Expr, ...]
    kernel: tuple[Expr, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    @property
    def taps(self) -> tuple[Expr, ...]:
        """The number of candidates for each position."""
        return tuple(
            FloorDiv(k + s - 1, sympy.Integer(s)) if d == 1 else k
            for k, s, d in zip(self.kernel, self.stride, self.dilation, strict=True)
        )

    def at(self, position: Index, tap: Index) -> tuple[Index, Index, Value]:
        """The window of a candidate, the tap by which it touches ``position``, and whether it
        does."""
        candidates = [
            self._along(d, p, t) for d, (p, t) in enumerate(zip(position, tap, strict=True))
        ]
        windows, taps, conditions = zip(*candidates, strict=True) if candidates else ((), (), ())
        return (
            windows,
            taps,
            trees.all_of(*(c for candidate_conditions in conditions for c in candidate_conditions)),
        )

    def _along(self, d: int, position: Expr, tap: Expr) -> tuple[Expr, Expr, list[Value]]:
        step, spacing = sympy.Integer(self.stride[d]), self.dilation[d]
        tap_conditions: list[Value] = []
        padded = position + self.padding[d]
        if spacing == 1:
            window, touching_tap = FloorDiv(padded, step) - tap, tap * step + Mod(padded, step)
            if Mod(self.kernel[d], step) != 0:
                tap_conditions.append(trees.less_than(touching_tap, self.kernel[d]))
        else:
            distance = padded - tap * spacing
            window, touching_tap = FloorDiv(distance, step), tap
            if step != 1:
                remainder = index_value(Mod(distance, step))
                tap_conditions.append(call("eq", remainder, index_value(0)))
        return window, touching_tap, [*self.inside(d, window), *tap_conditions]

    def inside(self, d: int, window: Expr) -> list[Value]:
        """The conditions that a window along dimension ``d`` exists."""
        return [index_value(window) >= index_value(0), trees.less_than(window, self.windows[d])]


def inverse_window(view: Window) -> InverseWindow:
    """The windows of ``view`` by the input position that they touch."""
    return InverseWindow(view.output, view.kernel, view.stride, view.padding, view.dilation)


@dataclass(frozen=True)
class AdaptiveWindows:
    """Windows of an adaptive pooling: output i covers floor(i n / o) to ceil((i + 1) n / o)."""

    input: tuple[Expr, ...]
    output: tuple[Expr, ...]

    @property
    def taps(self) -> tuple[Expr, ...]:
        """The extents of the longest window."""
        longest = []
        for size, output in zip(self.input, self.output, strict=True):
            if _is_even(size, output):
                longest.append(simplify(FloorDiv(size, output)))
            elif size.is_Integer and output.is_Integer and int(output) <= _MAX_ENUMERATED:
                n, o = int(size), int(output)
                lengths = (-(-(i + 1) * n // o) - i * n // o for i in range(o))
                longest.append(sympy.Integer(max(lengths)))
            else:  # size / output, or one or two more
                longest.append(simplify(FloorDiv(size + output - 1, output) + 1))
        return tuple(longest)

    def start(self, position: Index) -> Index:
        """The first input position of a window."""
        sizes = zip(position, self.input, self.output, strict=True)
        return tuple(FloorDiv(i * n, o) for i, n, o in sizes)

    def end(self, position: Index) -> Index:
        """The input position after the last of a window."""
        sizes = zip(position, self.input, self.output, strict=True)
        return tuple(FloorDiv((i + 1) * n + o - 1, o) for i, n, o in sizes)

    def input_index(self, position: Index, tap: Index) -> Index:
        """The input position of an element of a window."""
        return tuple(s + t for s, t in zip(self.start(position), tap, strict=True))

    def inside(self, position: Index, input_index: Index) -> Value:
        """Whether an input position belongs to the window."""
        sizes = zip(input_index, self.end(position), self.input, self.output, strict=True)
        return trees.all_of(
            *(trees.less_than(p, end) for p, end, n, o in sizes if not _is_even(n, o))
        )

    @property
    def inverse(self) -> AdaptiveWindows:
        """The windows of the output that touch an input position. They equal the windows of a
        pooling from the output's size to the input's."""
        return AdaptiveWindows(self.output, self.input)

    def count(self, position: Index) -> Expr:
        """The number of elements of a window."""
        if all(map(_is_even, self.input, self.output)):
            return product(self.taps)
        ends = zip(self.start(position), self.end(position), strict=True)
        return sympy.Mul(*(end - start for start, end in ends))


def _is_even(size: Expr, output: Expr) -> bool:
    if output == 1:
        return True
    return bool(
        size.is_Integer and output.is_Integer and output != 0 and int(size) % int(output) == 0
    )
