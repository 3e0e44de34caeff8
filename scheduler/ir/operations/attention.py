"""The attention operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv
from scheduler.ir.operations.base import (
    ADDED_LATER,
    Axes,
    Axis,
    GroupKind,
    MultiStoreOperation,
    OperandView,
    Products,
    Store,
    numel,
)
from scheduler.ir.values import Value


@dataclass(frozen=True)
class Attention(MultiStoreOperation):
    """softmax(capped(scale * q k^T) + mask) v with an online softmax: a template node.

    ``q`` is a tree over (batch, row, depth), ``k`` over (batch, column, depth), ``v`` over
    (batch, column, value_depth), ``mask`` an additive (float) or selecting (bool) tree over
    (batch, row, column) or None. Grouped queries are index expressions in ``k`` and ``v``.
    ``causal``: column <= row (top-left aligned, as torch's is_causal). ``cap``: a positive number
    that bounds the magnitude of scores, by cap * tanh(score / cap), or None. A row whose scores
    are all minus infinity gives zeros if ``safe``, as torch's attention does, else NaN, as its
    softmax does.
    """

    name: str
    batch: Axes
    row: Axis
    column: Axis
    depth: Axis
    value_depth: Axis
    q: Value
    k: Value
    v: Value
    mask: Value | None
    causal: bool
    scale: float
    stores: tuple[Store, ...]
    nodes: tuple[str, ...]
    cap: float | None = field(default=None, metadata=ADDED_LATER)
    safe: bool = field(default=True, metadata=ADDED_LATER)

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind.ATTENTION

    @property
    def nest(self) -> tuple[Axes, Axes]:
        return self.points, ()

    @property
    def points(self) -> Axes:
        return (*self.batch, self.row, self.value_depth)

    @property
    def loops(self) -> Axes:
        return (*self.batch, self.row, self.column, self.depth, self.value_depth)

    @property
    def operands(self) -> tuple[OperandView, ...]:
        trees = (
            OperandView((*self.batch, self.row, self.depth), self.q),
            OperandView((*self.batch, self.column, self.depth), self.k),
            OperandView((*self.batch, self.column, self.value_depth), self.v),
        )
        if self.mask is None:
            return trees
        return (*trees, OperandView((*self.batch, self.row, self.column), self.mask))

    @property
    def needed_operands(self) -> tuple[OperandView, ...]:
        """The operands; if causal, without columns beyond the last row, which no row attends to."""
        if not self.causal:
            return self.operands
        attended = Axis(self.column.var, sympy.Min(self.row.size, self.column.size))
        return tuple(
            OperandView(
                tuple(attended if axis == self.column else axis for axis in scope.axes), scope.value
            )
            for scope in self.operands
        )

    def with_operands(self, values: Sequence[Value]) -> Self:
        if self.mask is None:
            q, k, v = values
            return replace(self, q=q, k=k, v=v)
        q, k, v, mask = values
        return replace(self, q=q, k=k, v=v, mask=mask)

    @property
    def template_op(self) -> str:
        return "attention"

    @property
    def dimensions(self) -> tuple[Axes, ...]:
        groups = (self.batch, (self.row,), (self.column,), (self.depth,))
        return tuple(axes for axes in groups if axes)

    @property
    def products(self) -> Products:
        """The multiply-adds of the pairs of a row and a column that it attends to."""
        rows, columns = self.row.size, self.column.size
        pairs = rows * columns
        if self.causal:
            square = sympy.Min(rows, columns)
            pairs = FloorDiv(square * (square + 1), 2) + sympy.Max(0, rows - columns) * columns
        depths = self.depth.size + self.value_depth.size
        return Products(numel(self.batch) * pairs * depths, self.q.dtype)

    @property
    def matrix_operands(self) -> tuple[Value, ...]:
        return self.q, self.k, self.v

    @property
    def averaged_operand(self) -> Value:
        return self.v

    @property
    def accumulation_length(self) -> Expr:
        """The length of the sums of the scores, plus that of the sums over the columns."""
        return self.depth.size + self.column.size

    def type_fault(self) -> str:
        same = self.q.dtype is self.k.dtype is self.v.dtype
        return "" if same else "queries, keys and values have different types"
