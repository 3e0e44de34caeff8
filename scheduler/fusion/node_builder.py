"""Scheduler nodes from operations: kind, iteration sizes, reads and writes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.graph import Expr
from scheduler.ir.index.simplify import product
from scheduler.ir.operations import Axis, GroupKind, Operation


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
