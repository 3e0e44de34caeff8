"""Operations without a kernel: they read and write whole buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from scheduler.ir.operations.base import Axes, GroupKind, OperandView, Operation, Store
from scheduler.ir.values import Value


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


@dataclass(frozen=True)
class Extern(WholeBufferOperation):
    """A graph node without a kernel, which runs through the reference.

    ``reason`` is shown to the user; ``inputs`` maps the node's tensor values to the buffer and
    index expressions (over ``axes`` of its sizes) that hold them.
    """

    name: str
    op: str
    reason: str
    node: str
    inputs: Mapping[str, OperandView]
    outputs: tuple[str, ...]
    nodes: tuple[str, ...]

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind.EXTERN

    @property
    def operands(self) -> tuple[OperandView, ...]:
        return tuple(self.inputs.values())

    @property
    def writes(self) -> tuple[str, ...]:
        return self.outputs

    def with_operands(self, values: Sequence[Value]) -> Self:
        pairs = zip(self.inputs.items(), values, strict=True)
        return replace(self, inputs={n: replace(view, value=new) for (n, view), new in pairs})
