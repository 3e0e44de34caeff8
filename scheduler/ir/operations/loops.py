"""Operations with one store for the loop templates: pointwise, reductions and scans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.operations.base import (
    Axes,
    Axis,
    GroupKind,
    OperandView,
    SingleStoreOperation,
    Store,
    numel,
)
from scheduler.ir.values import Value


class ReductionKind(StrEnum):
    """How values along the reduction axes are combined."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"
    ANY = "any"
    ALL = "all"
    ARGMAX = "argmax"
    ARGMIN = "argmin"
    LOGSUMEXP = "logsumexp"  # scans only


@dataclass(frozen=True)
class Pointwise(SingleStoreOperation):
    """One store at each point of ``axes``."""

    name: str
    axes: Axes
    store: Store
    nodes: tuple[str, ...]

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind.POINTWISE

    @property
    def nest(self) -> tuple[Axes, Axes]:
        return self.axes, ()

    @property
    def points(self) -> Axes:
        return self.axes

    @property
    def loops(self) -> Axes:
        return self.axes

    @property
    def operands(self) -> tuple[OperandView, ...]:
        return ()

    def with_operands(self, values: Sequence[Value]) -> Self:
        () = values
        return self


class _Accumulating(SingleStoreOperation):
    """Combines ``value`` along the inner loops of its nest; ``store.value`` contains the
    ``Accumulator``."""

    value: Value
    accumulate: DType

    @property
    def loops(self) -> Axes:
        outer, inner = self.nest
        return (*outer, *inner)

    @property
    def operands(self) -> tuple[OperandView, ...]:
        return (OperandView(self.loops, self.value),)

    def with_operands(self, values: Sequence[Value]) -> Self:
        (value,) = values
        return replace(self, value=value)  # type: ignore[type-var]

    @property
    def accumulation_length(self) -> Expr:
        return numel(self.nest[1])

    def type_fault(self) -> str:
        if self.value.dtype.compute_dtype is self.accumulate:
            return ""
        return f"reduces {self.value.dtype.label} as {self.accumulate.label}"


@dataclass(frozen=True)
class Reduction(_Accumulating):
    """``value`` reduced over ``reduction_axes``.

    The accumulator's type is ``accumulate``; arg-reductions give the flat index over
    ``reduction_axes`` in row-major order (i64), the first of equal values; NaN wins, as in torch.
    """

    name: str
    axes: Axes
    reduction_axes: Axes
    kind: ReductionKind
    value: Value
    accumulate: DType
    store: Store
    nodes: tuple[str, ...]

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind.REDUCTION

    @property
    def nest(self) -> tuple[Axes, Axes]:
        return self.axes, self.reduction_axes

    @property
    def points(self) -> Axes:
        return self.axes


@dataclass(frozen=True)
class Scan(_Accumulating):
    """Running ``kind`` (sum, prod, max, min, logsumexp) of ``value`` along ``scan_axis``, stored at
    every step."""

    name: str
    axes: Axes
    scan_axis: Axis
    kind: ReductionKind
    value: Value
    accumulate: DType
    store: Store
    nodes: tuple[str, ...]

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind.SCAN

    @property
    def nest(self) -> tuple[Axes, Axes]:
        return self.axes, (self.scan_axis,)

    @property
    def points(self) -> Axes:
        return self.loops
