"""A tensor while the graph is being lowered: how to read an element of it, at any index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.values import Value

Index: TypeAlias = tuple[Expr, ...]
Reader: TypeAlias = Callable[[Index], Value]
#: The element at one position along an axis.
ReadAt: TypeAlias = Callable[[Expr], Value]
#: The element at an index of the result and an index of the reduced dimensions.
ReadReduced: TypeAlias = Callable[[Index, Index], Value]
#: Where an element goes, one place for each dimension: an expression, or an integer tree.
Places: TypeAlias = Callable[[Index], Sequence[Expr | Value]]
#: What becomes of the accumulator at an index of the result.
Epilogue: TypeAlias = Callable[[Value, Index], Value]


@dataclass(frozen=True)
class Tensor:
    """``at(index)`` is the tree of one element; it is held as kernels hold ``dtype``.

    ``buffer`` is the buffer that this is the whole of, element by element, or empty for views and
    computed values. ``nodes`` are the graph nodes (views, constants) on the way from memory.
    """

    size: tuple[Expr, ...]
    dtype: DType
    at: Reader
    buffer: str = ""
    nodes: tuple[str, ...] = ()

    @property
    def rank(self) -> int:
        return len(self.size)

    def view(self, size: tuple[Expr, ...], index: Callable[[Index], Index]) -> Tensor:
        """Another shape of the same elements: ``index`` maps its index to this one's."""
        at = self.at
        return Tensor(size, self.dtype, lambda i: at(index(i)))


class Scalar(Tensor):
    """A number of the model that is known only while it runs: a tensor without dimensions, of
    which torch promotes nothing but its kind (float64, int64, bool)."""
