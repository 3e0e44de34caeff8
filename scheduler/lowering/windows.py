"""Windows over spatial dimensions, which convolutions and poolings share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scheduler.ir.graph import Expr
from scheduler.ir.index.facts import is_less
from scheduler.ir.index.functions import as_expr
from scheduler.ir.values import Value
from scheduler.lowering import trees
from scheduler.lowering.tensor import Index


def spread(value: Any, rank: int) -> tuple[int, ...]:
    """One number a spatial dimension, from one for all or one each."""
    given = value if isinstance(value, tuple) else (value,)
    return tuple(int(x) for x in (given * rank if len(given) == 1 else given))


@dataclass(frozen=True)
class Window:
    """Where a window at an output position reads: ``position * stride - padding + tap * dilation``.

    ``input`` are the spatial sizes of the input, ``kernel`` those of the window.
    """

    input: tuple[Expr, ...]
    output: tuple[Expr, ...]
    kernel: tuple[Expr, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    def place(self, position: Index, tap: Index) -> Index:
        """The input position."""
        return tuple(
            p * s - pad + t * d
            for p, t, s, pad, d in zip(
                position, tap, self.stride, self.padding, self.dilation, strict=True
            )
        )

    def inside(self, place: Index) -> Value:
        """Whether an input position exists: tested only where the window can leave the input."""
        conditions = []
        for d, i in enumerate(place):
            if self.padding[d]:
                conditions.append(trees.call("ge", trees.index_value(i), trees.index_value(0)))
            if not self._ends_within(d, 0):
                conditions.append(trees.less(i, self.input[d]))
        return trees.both(*conditions)

    def within(self, d: int, margin: int) -> bool:
        """Whether every window lies in dimension ``d`` of the input, ``margin`` added each side."""
        return self.padding[d] <= margin and self._ends_within(d, margin)

    def _ends_within(self, d: int, margin: int) -> bool:
        last = (
            (self.output[d] - 1) * self.stride[d]
            - self.padding[d]
            + (self.kernel[d] - 1) * self.dilation[d]
        )
        return is_less(last, self.input[d] + margin)


def window(
    size: tuple[Expr, ...],
    output: tuple[Expr, ...],
    kernel: tuple[Any, ...],
    stride: Any,
    padding: Any,
    dilation: Any = 1,
) -> Window:
    """A window over the last dimensions of ``size``, as many as ``kernel`` has."""
    rank = len(kernel)
    taps = tuple(as_expr(k) for k in kernel)
    steps = spread(stride, rank) if stride not in ((), None) else spread(kernel, rank)
    return Window(
        size[-rank:],
        output[-rank:],
        taps,
        steps,
        spread(padding, rank),
        spread(dilation, rank),
    )
