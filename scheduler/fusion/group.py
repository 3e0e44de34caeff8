"""A group of operations during fusion: its loops, reads and writes, and their points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from scheduler.ir.index.inverse import Index
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.operations import Axis, GroupKind, Operation
from scheduler.ir.values import loads

TEMPLATES = (GroupKind.GEMM, GroupKind.CONVOLUTION, GroupKind.DEPTHWISE, GroupKind.ATTENTION)


@dataclass
class Group:
    """Operations that share their loops, in order; ``number`` is unique within a schedule.

    ``outer`` and ``inner`` are the loops. A pointwise group has no inner loops; a template's loops
    are the points that it stores. ``indices`` are positions of the operations in the lowered graph;
    ``sizes`` are the ranges of the graph's symbolic sizes; ``inner_members`` names the members that
    run at each step of the inner loops.
    """

    number: int
    kind: GroupKind
    outer: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    members: list[Operation]
    indices: list[int]
    sizes: Ranges
    depends: set[int] = field(default_factory=set)
    inner_members: set[str] = field(default_factory=set)

    @property
    def ranges(self) -> Ranges:
        """The ranges of all loops."""
        return self.sizes.over((*self.outer, *self.inner))

    @property
    def name(self) -> str:
        """The name of its first operation."""
        return self.members[0].name

    @property
    def is_template(self) -> bool:
        """Whether a template with one main operation renders it."""
        return self.kind in TEMPLATES

    def written(self) -> dict[str, Index]:
        """Return the store index of each written buffer, over the loops."""
        return {s.buffer: s.index for member in self.members for s in member.results}

    def reads(self) -> set[str]:
        """Return all buffers that members read."""
        return {name for member in self.members for name in member.reads}

    def accesses(self, buffer: str) -> Iterator[Index]:
        """Yield the distinct indices at which a buffer is accessed: the store first, then reads."""
        seen: dict[Index, None] = {}
        for member in self.members:
            for store in member.results:
                if store.buffer == buffer:
                    seen[store.index] = None
        if not self.is_template:
            for member in self.members:
                for tree in member.trees:
                    for load in loads(tree):
                        if load.buffer == buffer and not load.indirect:
                            seen[load.index] = None
        yield from seen


def new_group(number: int, op: Operation, index: int, sizes: Ranges) -> Group:
    """Return a group of one operation."""
    outer, inner = group_loops(op)
    return Group(number, op.group_kind, outer, inner, [op], [index], sizes)


def group_loops(op: Operation) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
    """Return the loops over which an operation stores, and those that it reduces over.

    For a sort these are the loops over which it reads its keys: no other operation joins it.
    """
    if op.group_kind is GroupKind.REDUCTION:
        return op.nest
    if op.group_kind is GroupKind.SORT:
        outer, inner = op.nest
        return (*outer, *inner), ()
    if op.group_kind in TEMPLATES:
        return tuple(axis for axis in op.points if axis.size != 1), ()
    return op.points, ()
