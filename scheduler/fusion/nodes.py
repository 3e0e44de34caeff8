"""Scheduler nodes: groups of operations that become one kernel each, and fusion decisions.

A group's ``main`` operation determines its template. Fused operations are part of its trees
(prologues) and stores (epilogues), or further ``members`` if several operations share a loop nest.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar

from scheduler.ir.graph import Expr
from scheduler.ir.index.simplify import product
from scheduler.ir.operations import Axis, Contraction, Extern, GroupKind, Lowered, Operation

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class FusionDecision:
    """Whether ``consumer`` was fused with ``producer``, and the reason in either case."""

    producer: str
    consumer: str
    fused: bool
    reason: str


@dataclass(frozen=True)
class SchedulerNode:
    """A group of operations that becomes one kernel.

    ``members`` are the operations in order, all over the same loop variables. A template group
    has one member (its epilogues are its stores), or several contractions that share ``a`` and
    the batch, m and k axes. In a reduction group the axes of a pointwise member are those of the
    reductions (computed once per row), or these followed by the reduction axes.

    Later members read a value that is computed once per row with a ``Load`` at the index of its
    store; kernels take it from a register. It is stored to memory only if it is in ``writes``: the
    results that another kernel or the user reads.

    ``group`` is Inductor's group_fn: the simplified product of the iteration sizes and of the
    reduction sizes. ``nodes`` are the graph nodes computed here. ``frees`` are the buffers whose
    last reader this is.
    """

    name: str
    kind: GroupKind
    members: tuple[Operation, ...]
    group: tuple[Expr, Expr]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    nodes: tuple[str, ...]
    frees: tuple[str, ...] = ()

    @property
    def contractions(self) -> tuple[Contraction, ...]:
        """The members that are contractions: all members of a template group of that kind."""
        return tuple(member for member in self.members if isinstance(member, Contraction))

    @property
    def externs(self) -> tuple[Extern, ...]:
        """The members that have no kernel: all members of an extern group."""
        return tuple(member for member in self.members if isinstance(member, Extern))


@dataclass(frozen=True)
class Schedule:
    """The whole graph in execution order.

    ``storage`` maps an intermediate buffer to its allocation; an allocation is reused after its
    last reader. ``pools`` maps the name of an allocation to its size in bytes.
    """

    lowered: Lowered
    nodes: tuple[SchedulerNode, ...]
    decisions: tuple[FusionDecision, ...]
    storage: Mapping[str, str]
    pools: Mapping[str, Expr]
    fused: bool = True  # False: every operation is a group of its own
    split: tuple[str, ...] = ()  # fused nodes that were split again (fusion/split.py)


def numel(axes: Iterable[Axis]) -> Expr:
    """Return the number of points of a loop nest."""
    return product(tuple(axis.size for axis in axes))


def group_fn(operation: Operation) -> tuple[Expr, Expr]:
    """Inductor's group_fn: the products of the iteration sizes and of the reduction sizes."""
    outer, inner = operation.nest
    return numel(outer), numel(inner)


def single_node(operation: Operation, positions: dict[str, int]) -> SchedulerNode:
    """Return an operation as a separate kernel."""
    return make_node([operation], operation.group_kind, group_fn(operation), positions)


def ordered_nodes(members: Sequence[Operation], positions: dict[str, int]) -> tuple[str, ...]:
    """Return the graph nodes of operations, without duplicates, in graph order."""
    names = {name for member in members for name in member.nodes}
    return tuple(sorted(names, key=lambda name: positions.get(name, -1)))


def make_node(
    members: Sequence[Operation],
    kind: GroupKind,
    group: tuple[Expr, Expr],
    positions: dict[str, int],
    needed: Collection[str] | None = None,
) -> SchedulerNode:
    """Build a scheduler node with its reads from outside and its writes to memory.

    The writes are the members' results that are ``needed`` outside (None: all results).
    """
    results = dict.fromkeys(n for m in members for n in m.writes)
    reads = dict.fromkeys(n for m in members for n in m.reads if n not in results)
    writes = [name for name in results if needed is None or name in needed]
    return SchedulerNode(
        members[0].name,
        kind,
        tuple(members),
        group,
        tuple(reads),
        tuple(writes),
        ordered_nodes(members, positions),
    )


def topological_order(
    depends: Mapping[Name, Collection[Name]], priority: Callable[[Name], Any]
) -> list[Name]:
    """Return the names in dependency order. Among ready names the one with the lowest ``priority``
    comes first, so that the order is deterministic."""
    sorter = TopologicalSorter(depends)
    try:
        sorter.prepare()
    except CycleError as error:
        raise AssertionError(f"fusion created a cycle of kernels: {error.args[1]}") from None
    ready: list[tuple[Any, Name]] = []
    ordered: list[Name] = []
    while sorter.is_active():
        for name in sorter.get_ready():
            heapq.heappush(ready, (priority(name), name))
        _, name = heapq.heappop(ready)
        ordered.append(name)
        sorter.done(name)
    return ordered
