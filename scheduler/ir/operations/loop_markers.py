"""Loops whose bodies are operations: two marks, between which operations run once a step.

The operations of a body lie among all others, in order, between a ``LoopBegin`` and its
``LoopEnd``; loops nest. Nothing is copied on the way from one step to the next: names
take over each other's memory. ``inside`` is where ``before`` lies, ``next`` is other memory; after
a step the two change places, and when there is no further step ``after`` is what ``before`` is by
then. A slice is a part of a whole buffer, further on with each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import unbacked_sizes
from scheduler.ir.operations.base import GroupKind, OperandView, Operation, size_buffer_name
from scheduler.ir.operations.whole_buffer import WholeBufferOperation
from scheduler.ir.values import Value

#: What a loop's end is called: as its begin, and this.
END_SUFFIX = "_end"


class _Marker(WholeBufferOperation):
    """What all marks say: they compute nothing, and read and write whole buffers."""

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
    """Before the first step.

    ``op`` is what the model calls the loop, and ``node`` the graph node. Either ``steps`` says how
    many there are, or ``condition`` (a buffer of one boolean) whether there is a first one.
    ``carried`` are pairs of ``before`` and ``inside``; ``slices`` pairs of a whole buffer and what
    is called its slice ``first`` + step (along dimension 0).
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
    """After each step.

    ``condition`` is the buffer that says whether another follows, "" where their number is known.
    ``carried`` are pairs of ``next`` and ``after``, in the order of the begin's; ``slices`` pairs
    of a buffer and the whole one of which it is the slice of this step.
    """

    name: str
    begin: LoopBegin
    condition: str
    carried: tuple[tuple[str, str], ...]
    slices: tuple[tuple[str, str], ...]
    nodes: tuple[str, ...]

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """What the body makes for it, and all that the begin names: a loop is kept as a whole."""
        nexts = (made for made, _ in self.carried)
        parts = (part for part, _ in self.slices)
        conditions = [self.condition] if self.condition else []
        return tuple(dict.fromkeys((*nexts, *parts, *conditions, *self.begin.writes)))

    @property
    def writes(self) -> tuple[str, ...]:
        return (*(after for _, after in self.carried), *(whole for _, whole in self.slices))


def unshared_buffers(operations: Iterable[Operation]) -> set[str]:
    """The buffers that loops rename or take slices of: none shares its memory with others."""
    names: set[str] = set()
    for op in operations:
        if isinstance(op, LoopBegin | LoopEnd):
            names.update(name for pair in (*op.carried, *op.slices) for name in pair)
    return names


def borrowed_buffers(operations: Iterable[Operation]) -> set[str]:
    """Those of them that have no memory: names for that of others."""
    names: set[str] = set()
    for op in operations:
        if isinstance(op, LoopBegin):
            names.update(op.writes)
        if isinstance(op, LoopEnd):
            names.update(after for _, after in op.carried)
            names.update(part for part, _ in op.slices)
    return names


def loop_spans(marks: Sequence[Operation | None]) -> Iterator[tuple[int, int]]:
    """The places of each loop's begin and end in a sequence; inner loops before outer ones."""
    open_places: list[int] = []
    for place, mark in enumerate(marks):
        if isinstance(mark, LoopBegin):
            open_places.append(place)
        elif isinstance(mark, LoopEnd):
            yield open_places.pop(), place
