"""Splitting fused kernels: the schedule in which some nodes run one operation a kernel.

Whether a fusion pays is for a measurement to say; this makes the other side of the comparison.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from scheduler.fusion.memory import plan_memory, with_frees
from scheduler.fusion.node_builder import single_node
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.fusion.verifier import verify
from scheduler.ir.operations import Operation

#: What a kernel's name in the schedule ends with when it was split from a fused one.
UNFUSED_SUFFIX = "_alone"


def split_nodes(plan: Schedule, names: Collection[str]) -> Schedule:
    """The schedule with these nodes split, verified.

    Nodes that hold one operation, externs, and nodes that compute on their way what another
    kernel computes too stay as they are; so does every node that is not named.
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
        if len(parts) < 2 or any(computed_elsewhere.intersection(one.writes) for one in parts):
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
    """What the kernels are called into which the node of that name is split."""
    written: set[str] = set()
    for node in plan.nodes:
        if node.name == name:
            return tuple(one.name + UNFUSED_SUFFIX for one in _operations(plan, node, written))
        written.update(node.writes)
    raise KeyError(name)


def _operations(plan: Schedule, node: SchedulerNode, written: Collection[str]) -> list[Operation]:
    """The graph's own operations that compute what the node writes from what it reads, in order.

    What was written by then is not computed again.
    """
    if not node.kind.has_kernel:
        return []
    operations = plan.lowered.operations
    writer = {name: number for number, op in enumerate(operations) for name in op.writes}
    given = {*node.reads, *written}
    needed: set[int] = set()
    pending = list(node.writes)
    while pending:
        number = writer[pending.pop()]
        if number not in needed:
            needed.add(number)
            reads = operations[number].reads
            pending += [name for name in reads if name not in given and name in writer]
    return [operations[number] for number in sorted(needed)]
