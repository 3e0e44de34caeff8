"""Scheduler nodes from operations: kind, iteration sizes, what is read and written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.graph import Expr
from scheduler.ir.index.simplify import product
from scheduler.ir.operations import Axis, GroupKind, Operation


def numel(axes: Iterable[Axis]) -> Expr:
    """How many points loops have."""
    return product(tuple(axis.size for axis in axes))


def group_fn(operation: Operation) -> tuple[Expr, Expr]:
    """Inductor's: the product of the iteration sizes, and that of the reduction sizes."""
    outer, inner = operation.nest
    return numel(outer), numel(inner)


def single_node(operation: Operation, positions: dict[str, int]) -> SchedulerNode:
    """An operation as a kernel of its own."""
    return make_node([operation], operation.group_kind, group_fn(operation), positions)


def ordered_nodes(members: Sequence[Operation], positions: dict[str, int]) -> tuple[str, ...]:
    """Graph nodes of operations, each once, in the graph's order."""
    names = {name for member in members for name in member.nodes}
    return tuple(sorted(names, key=lambda name: positions.get(name, -1)))


def make_node(
    members: Sequence[Operation],
    kind: GroupKind,
    group: tuple[Expr, Expr],
    positions: dict[str, int],
    needed: Collection[str] | None = None,
) -> SchedulerNode:
    """One kernel to be: what its members read from outside, and what it writes to memory: of
    their results those ``needed`` outside (None: all of them)."""
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
