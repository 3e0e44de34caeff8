"""The operation of a graph node without a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from scheduler.ir.operations.base import GroupKind, OperandView
from scheduler.ir.operations.whole_buffer import WholeBufferOperation
from scheduler.ir.values import Value


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
