"""Writes to data-dependent indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.operations.base import (
    Axes,
    GroupKind,
    OperandView,
    SingleStoreOperation,
    Store,
    numel,
)
from scheduler.ir.operations.loops import ReductionKind
from scheduler.ir.values import Indirect, Load, Value

#: Types with atomic memory operations on every target. Others are combined in a wider type.
ATOMIC = (DType.F32, DType.F64, DType.I32, DType.I64)
#: How values with the same index may be combined.
COMBINES = (ReductionKind.SUM, ReductionKind.PROD, ReductionKind.MAX, ReductionKind.MIN)


@dataclass(frozen=True)
class Scatter(SingleStoreOperation):
    """``store`` of initial values over ``axes``, then ``value`` at each point of ``sources``
    combined into it.

    The value is combined into ``index`` of the buffer that ``store`` fills, one expression for each
    dimension, over ``sources`` and the symbols of ``indirect``, whose values are clamped to their
    axes; it is skipped where ``condition`` does not hold. The buffer and ``value`` have the same
    type, one of ``ATOMIC``; ``kind`` is one of ``COMBINES``. Values with the same index are
    combined in any order, which affects only the rounding of float sums and products. NaN wins over
    every number, as in torch.

    There is no overwriting kind: the last of several values is determined by the maximum of their
    numbers (``lowering/scatter.py``).
    """

    name: str
    axes: Axes
    sources: Axes
    kind: ReductionKind
    value: Value
    condition: Value
    indirect: tuple[Indirect, ...]
    index: tuple[Expr, ...]
    store: Store
    nodes: tuple[str, ...]

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind.SCATTER

    @property
    def nest(self) -> tuple[Axes, Axes]:
        return self.sources, ()

    @property
    def points(self) -> Axes:
        return self.axes

    @property
    def loops(self) -> Axes:
        return (*self.axes, *self.sources)

    @property
    def operands(self) -> tuple[OperandView, ...]:
        trees = (self.value, self.condition, *(place.value for place in self.indirect))
        return tuple(OperandView(self.sources, tree) for tree in trees)

    @property
    def places(self) -> tuple[Indirect, ...]:
        return self.indirect

    @property
    def target(self) -> Load:
        """The element that a source is combined into."""
        return Load(self.store.buffer, self.index, self.value.dtype.compute_dtype, self.indirect)

    def with_operands(self, values: Sequence[Value]) -> Self:
        value, condition, *places = values
        pairs = zip(self.indirect, places, strict=True)
        indirect = tuple(replace(place, value=new) for place, new in pairs)
        return replace(self, value=value, condition=condition, indirect=indirect)

    @property
    def dimensions(self) -> tuple[Axes, ...]:
        return tuple(axes for axes in (self.axes, self.sources) if axes)

    @property
    def accumulation_length(self) -> Expr:
        """One for the initial value, plus the maximum number of values with the same index: a loop
        that is itself a dimension of the result keeps its points separate."""
        if self.kind not in (ReductionKind.SUM, ReductionKind.PROD):
            return sympy.Integer(0)
        separate = set(self.index)
        return 1 + numel([axis for axis in self.sources if axis.var not in separate])

    def type_fault(self) -> str:
        if self.kind not in COMBINES:
            return f"combines by {self.kind}"
        if self.condition.dtype is not DType.BOOL:
            return f"has a condition of type {self.condition.dtype.label}"
        dtype = self.value.dtype.compute_dtype
        if dtype is self.store.value.dtype.compute_dtype and dtype in ATOMIC:
            return ""
        return f"combines {self.value.dtype.label} into {self.store.value.dtype.label}"
