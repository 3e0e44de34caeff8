"""The base class of operations without a kernel: they read and write whole buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from scheduler.ir.operations.base import Axes, Operation, Store


class WholeBufferOperation(Operation):
    """An operation without loops and stores; a frozen dataclass with ``name`` and ``nodes``."""

    @property
    def nest(self) -> tuple[Axes, Axes]:
        return (), ()

    @property
    def points(self) -> Axes:
        return ()

    @property
    def loops(self) -> Axes:
        return ()

    @property
    def results(self) -> tuple[Store, ...]:
        return ()

    def with_results(self, stores: Sequence[Store], nodes: tuple[str, ...]) -> Self:
        if stores:
            raise ValueError(f"{self.name} has no stores")
        return replace(self, nodes=nodes)  # type: ignore[type-var]
