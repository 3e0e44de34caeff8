"""A tensor during lowering: how to read one of its elements at any index."""

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
#: The position written to, one component per dimension: an expression, or an integer tree.
Places: TypeAlias = Callable[[Index], Sequence[Expr | Value]]
#: Maps the accumulator at an index of the result to the stored value.
Epilogue: TypeAlias = Callable[[Value, Index], Value]


@dataclass(frozen=True)
class Tensor:
    """``at(index)`` is the tree of one element, in the compute type of ``dtype``.

    ``buffer`` names the buffer if the tensor is a whole buffer; it is empty for views and computed
    values. ``nodes`` are the graph nodes (views, constants) between memory and the tensor.
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
        """A view of other shape over the same elements: ``index`` maps the view's index to this
        tensor's."""
        at = self.at
        return Tensor(size, self.dtype, lambda i: at(index(i)))


class Scalar(Tensor):
    """A number that is known only at run time: a tensor without dimensions. In type promotion torch
    considers only its kind (float64, int64, bool)."""
