"""The windows of adaptive poolings, which cover an input of any size evenly."""

from __future__ import annotations

from dataclasses import dataclass

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv
from scheduler.ir.index.simplify import product, simplify
from scheduler.ir.values import Value
from scheduler.lowering import trees
from scheduler.lowering.tensor import Index


@dataclass(frozen=True)
class AdaptiveWindows:
    """Windows of an adaptive pooling: output i covers floor(i n / o) to ceil((i + 1) n / o)."""

    input: tuple[Expr, ...]
    output: tuple[Expr, ...]

    @property
    def taps(self) -> tuple[Expr, ...]:
        """The extents of the longest window."""
        return tuple(_longest_window(n, o) for n, o in zip(self.input, self.output, strict=True))

    def start(self, position: Index) -> Index:
        """The first input position of a window."""
        sizes = zip(position, self.input, self.output, strict=True)
        return tuple(FloorDiv(i * n, o) for i, n, o in sizes)

    def end(self, position: Index) -> Index:
        """The input position after the last of a window."""
        sizes = zip(position, self.input, self.output, strict=True)
        return tuple(FloorDiv((i + 1) * n + o - 1, o) for i, n, o in sizes)

    def place(self, position: Index, tap: Index) -> Index:
        """The input position of an element of a window."""
        return tuple(s + t for s, t in zip(self.start(position), tap, strict=True))

    def inside(self, position: Index, place: Index) -> Value:
        """Whether an input position belongs to the window."""
        sizes = zip(place, self.end(position), self.input, self.output, strict=True)
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


_MAX_ENUMERATED = 1 << 16  # windows whose lengths are computed one by one


def _is_even(size: Expr, output: Expr) -> bool:
    if output == 1:
        return True
    return bool(
        size.is_Integer and output.is_Integer and output != 0 and int(size) % int(output) == 0
    )


def _longest_window(size: Expr, output: Expr) -> Expr:
    """The longest window: size / output, or one or two more if that is not an integer."""
    if _is_even(size, output):
        return simplify(FloorDiv(size, output))
    if size.is_Integer and output.is_Integer and int(output) <= _MAX_ENUMERATED:
        n, o = int(size), int(output)
        return sympy.Integer(max(-(-(i + 1) * n // o) - i * n // o for i in range(o)))
    return simplify(FloorDiv(size + output - 1, output) + 1)
