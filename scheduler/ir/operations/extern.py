"""What has no kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from scheduler.ir.operations.base import Axes, GroupKind, Operation, Store, ViewOf
from scheduler.ir.values import Value


@dataclass(frozen=True)
class Extern(Operation):
    """A graph node that no kernel was made for: it runs through the reference.

    ``reason`` says why, for the user; ``inputs`` maps the node's tensor values to the buffer and
    index expressions (over ``axes`` of its sizes) that hold them.
    """

    name: str
    op: str
    reason: str
    node: str
    inputs: Mapping[str, ViewOf]
    outputs: tuple[str, ...]
    nodes: tuple[str, ...]

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind.EXTERN

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
    def scopes(self) -> tuple[ViewOf, ...]:
        return tuple(self.inputs.values())

    @property
    def results(self) -> tuple[Store, ...]:
        return ()

    @property
    def writes(self) -> tuple[str, ...]:
        return self.outputs

    def with_results(self, stores: Sequence[Store], nodes: tuple[str, ...]) -> Self:
        if stores:
            raise ValueError(f"{self.name} has no stores")
        return replace(self, nodes=nodes)

    def with_scopes(self, values: Sequence[Value]) -> Self:
        pairs = zip(self.inputs.items(), values, strict=True)
        return replace(self, inputs={n: replace(view, value=new) for (n, view), new in pairs})
