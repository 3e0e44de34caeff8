"""Loops over operations: the operations between two markers run once per step.

The operations of a body are between a ``LoopBegin`` and its ``LoopEnd`` in the list of operations;
loops nest. Nothing is copied between steps: buffers swap their memory. ``inside`` aliases
``before``, ``next`` has other memory; after each step ``before`` and ``next`` are swapped, and
after the last step ``after`` aliases ``before``. A slice is a part of a whole buffer that advances
with each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import unbacked_sizes
from scheduler.ir.operations.base import GroupKind, OperandView, Operation, size_buffer_name
from scheduler.ir.operations.extern import WholeBufferOperation
from scheduler.ir.values import Value

#: Suffix of the name of a loop's end, after the name of its begin.
END_SUFFIX = "_end"


class _Marker(WholeBufferOperation):
    """Base class of markers: they compute nothing, and read and write whole buffers."""

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind.LOOP

    @property
    def operands(self) -> tuple[OperandView, ...]:
        return ()

    def with_operands(self, values: Sequence[Value]) -> Self:
        if values:
            raise ValueError(f"{self.name} computes from no trees")
        return self


@dataclass(frozen=True)
class LoopBegin(_Marker):
    """The marker before the first step.

    ``op`` is the model's op, and ``node`` the graph node. Either ``steps`` is the number of steps,
    or ``condition`` (a buffer of one boolean) says whether there is a first step. ``carried`` are
    pairs of ``before`` and ``inside``; ``slices`` pairs of a whole buffer and the name of its slice
    number ``first`` + step (along dimension 0).
    """

    name: str
    op: str
    node: str
    steps: Expr | None
    condition: str
    carried: tuple[tuple[str, str], ...]
    slices: tuple[tuple[str, str], ...]
    first: int
    nodes: tuple[str, ...]

    @cached_property
    def reads(self) -> tuple[str, ...]:
        sizes = () if self.steps is None else map(size_buffer_name, unbacked_sizes(self.steps))
        wholes = (whole for whole, _ in self.slices)
        conditions = [self.condition] if self.condition else []
        befores = (before for before, _ in self.carried)
        return tuple(dict.fromkeys((*befores, *wholes, *conditions, *sizes)))

    @property
    def writes(self) -> tuple[str, ...]:
        return (*(inside for _, inside in self.carried), *(part for _, part in self.slices))


@dataclass(frozen=True)
class LoopEnd(_Marker):
    """The marker after each step.

    ``condition`` is the buffer that says whether another step follows, "" if the number is known.
    ``carried`` are pairs of ``next`` and ``after``, in the order of the begin's; ``slices`` pairs
    of this step's slice and the whole buffer.
    """

    name: str
    begin: LoopBegin
    condition: str
    carried: tuple[tuple[str, str], ...]
    slices: tuple[tuple[str, str], ...]
    nodes: tuple[str, ...]

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The results of the body, and all buffers of the begin: a loop is kept as a whole."""
        nexts = (new for new, _ in self.carried)
        parts = (part for part, _ in self.slices)
        conditions = [self.condition] if self.condition else []
        return tuple(dict.fromkeys((*nexts, *parts, *conditions, *self.begin.writes)))

    @property
    def writes(self) -> tuple[str, ...]:
        return (*(after for _, after in self.carried), *(whole for _, whole in self.slices))


def unshared_buffers(operations: Iterable[Operation]) -> set[str]:
    """Return the buffers that loops rename or slice: they do not share memory with others."""
    names: set[str] = set()
    for op in operations:
        if isinstance(op, LoopBegin | LoopEnd):
            names.update(name for pair in (*op.carried, *op.slices) for name in pair)
    return names


def borrowed_buffers(operations: Iterable[Operation]) -> set[str]:
    """Return the buffers of loops that have no memory of their own, but alias others."""
    names: set[str] = set()
    for op in operations:
        if isinstance(op, LoopBegin):
            names.update(op.writes)
        if isinstance(op, LoopEnd):
            names.update(after for _, after in op.carried)
            names.update(part for part, _ in op.slices)
    return names


def loop_spans(marks: Sequence[Operation | None]) -> Iterator[tuple[int, int]]:
    """Yield the positions of each loop's begin and end; inner loops before outer loops."""
    open_begins: list[int] = []
    for position, mark in enumerate(marks):
        if isinstance(mark, LoopBegin):
            open_begins.append(position)
        elif isinstance(mark, LoopEnd):
            yield open_begins.pop(), position
