"""Sorting of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from scheduler.ir.operations.base import (
    Axes,
    Axis,
    GroupKind,
    MultiStoreOperation,
    OperandView,
    Store,
)
from scheduler.ir.values import Value


@dataclass(frozen=True)
class Sort(MultiStoreOperation):
    """The rows of ``key`` along ``axis``, ascending or descending; the first ``place.size`` of
    each are stored.

    ``key`` is over ``axes`` and ``axis``, stores are over ``axes`` and ``place``. Stored trees use
    the ``Accumulator`` of the key's type, which is the key at that position, and the i64
    accumulator named ``INDEX``, its original index in the row. The sort is stable (also for 0.0 and
    -0.0, and NaNs), and NaN is greater than every number, as in torch.
    """

    INDEX: ClassVar[str] = "index"

    name: str
    axes: Axes
    axis: Axis
    place: Axis
    key: Value
    descending: bool
    stores: tuple[Store, ...]
    nodes: tuple[str, ...]

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind.SORT

    @property
    def nest(self) -> tuple[Axes, Axes]:
        return self.axes, (self.axis,)

    @property
    def points(self) -> Axes:
        return (*self.axes, self.place)

    @property
    def loops(self) -> Axes:
        return (*self.axes, self.axis, self.place)

    @property
    def operands(self) -> tuple[OperandView, ...]:
        return (OperandView((*self.axes, self.axis), self.key),)

    @property
    def rounds_reads(self) -> bool:
        return True  # keys that are equal in the tensor's own type keep their order

    def with_operands(self, values: Sequence[Value]) -> Self:
        (key,) = values
        return replace(self, key=key)
