"""Splitting of fused kernels: a schedule in which some nodes run one operation per kernel.

A measurement decides whether a fusion is faster; this module builds the unfused alternative.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from scheduler.fusion.memory import plan_memory, with_frees
from scheduler.fusion.nodes import Schedule, SchedulerNode, single_node
from scheduler.fusion.verifier import verify
from scheduler.ir.operations import Operation

#: Suffix of the name of a kernel that was split from a fused one.
UNFUSED_SUFFIX = "_alone"


def split_nodes(plan: Schedule, names: Collection[str]) -> Schedule:
    """The schedule with these nodes split, verified.

    Nodes with one operation, externs, and nodes that compute a value that another kernel computes
    too are not changed; neither is any node that is not in ``names``.
    """
    positions = {node.name: position for position, node in enumerate(plan.lowered.graph.nodes)}
    nodes: list[SchedulerNode] = []
    split_names: list[str] = []
    written: set[str] = set()
    computed_elsewhere = {
        name
        for node in plan.nodes
        if node.name not in names
        for member in node.members
        for name in member.writes
    }
    for node in plan.nodes:
        parts = _operations(plan, node, written) if node.name in names else []
        if len(parts) < 2 or any(computed_elsewhere.intersection(part.writes) for part in parts):
            nodes.append(node)
            written.update(node.writes)
            continue
        split_names.append(node.name)
        for operation in parts:
            nodes.append(
                replace(single_node(operation, positions), name=operation.name + UNFUSED_SUFFIX)
            )
            written.update(operation.writes)
    buffers = plan.lowered.buffers
    ordered = with_frees(nodes, buffers)
    storage, pools = plan_memory(ordered, buffers, plan.lowered.graph.symbols)
    result = replace(plan, nodes=ordered, storage=storage, pools=pools, split=tuple(split_names))
    verify(result)
    return result


def part_names(plan: Schedule, name: str) -> tuple[str, ...]:
    """Return the names of the kernels that the node of that name is split into."""
    written: set[str] = set()
    for node in plan.nodes:
        if node.name == name:
            return tuple(
                operation.name + UNFUSED_SUFFIX for operation in _operations(plan, node, written)
            )
        written.update(node.writes)
    raise KeyError(name)


def _operations(plan: Schedule, node: SchedulerNode, written: Collection[str]) -> list[Operation]:
    """Return the lowered operations that compute the node's results from its reads, in order.

    Buffers in ``written`` are not computed again.
    """
    if not node.kind.has_kernel:
        return []
    operations = plan.lowered.operations
    writer = {name: number for number, op in enumerate(operations) for name in op.writes}
    available = {*node.reads, *written}
    needed: set[int] = set()
    pending = list(node.writes)
    while pending:
        number = writer[pending.pop()]
        if number not in needed:
            needed.add(number)
            reads = operations[number].reads
            pending += [name for name in reads if name not in available and name in writer]
    return [operations[number] for number in sorted(needed)]
