"""Account for every node of a graph, so that no node is dropped silently."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from enum import StrEnum

from scheduler.ir.check import node_references
from scheduler.ir.graph import Graph, Node
from scheduler.ir.operations import Extern, Lowered
from scheduler.lowering.alias_analysis import AliasTracker
from scheduler.lowering.ops import lookup_op


class NodeStatus(StrEnum):
    """How a node is accounted for."""

    COMPUTED = "in kernels"
    EXTERN = "externs"
    CHECK = "checks"  # assertions that hold at all sizes, or are in a branch or loop; no outputs
    FREE = "without work"  # views, sizes, constants, writes that change nothing, unread values


def node_statuses(lowered: Lowered) -> dict[str, NodeStatus]:
    """The status of each node by name. A node missing from the result was lost: its write is read
    later, or it has no outputs and is unknown."""
    externs = {op.node for op in lowered.operations if isinstance(op, Extern)}
    computed = {name for op in lowered.operations for name in op.nodes}
    needed_writers = _needed_writers(lowered.graph) - lowered.without_work
    statuses: dict[str, NodeStatus] = {}
    for node in lowered.graph.nodes:
        if node.name in externs:
            statuses[node.name] = NodeStatus.EXTERN
        elif node.name in computed:
            statuses[node.name] = NodeStatus.COMPUTED
        elif not node.outputs:
            if lookup_op(node.target) is not None:
                statuses[node.name] = NodeStatus.CHECK
        elif node.name not in needed_writers:
            statuses[node.name] = NodeStatus.FREE
    return statuses


def coverage_summary(lowered: Lowered) -> str:
    """``21 of 21 nodes accounted for: 15 in kernels, 2 externs, 4 without work``."""
    statuses = node_statuses(lowered)
    counts = Counter(statuses.values())
    parts = ", ".join(f"{counts[status]} {status}" for status in NodeStatus if counts[status])
    return f"{len(statuses)} of {len(lowered.graph.nodes)} nodes accounted for: {parts}"


def uncovered_nodes(lowered: Lowered) -> list[Node]:
    """The nodes that are not accounted for. Comparing outputs does not find them, because the
    reference tracks writes by the same rules."""
    statuses = node_statuses(lowered)
    return [node for node in lowered.graph.nodes if node.name not in statuses]


def _needed_writers(graph: Graph) -> set[str]:
    """Names of the nodes whose writes are certainly read: by an output, or by a node that an output
    depends on, before the next write to the same memory, which may overwrite them."""
    memory = AliasTracker(graph, {})
    written = [memory.record(node) for node in graph.nodes]
    needed = set()
    read = {memory.root(name) for name in graph.outputs}  # values read after the current node
    for node, name in zip(reversed(graph.nodes), reversed(written), strict=True):
        root = "" if name is None else memory.root(name)
        if root in read:
            needed.add(node.name)
        if root in read or any(memory.root(output) in read for output in node.outputs):
            # ``zeros_like`` and ``new_zeros`` only read a shape.
            takes_shape = node.target.startswith("aten.new_") or "_like." in node.target
            reader = replace(node, args=node.args[1:]) if takes_shape else node
            read.update(map(memory.root, node_references(reader)))
        read.discard(root)
    return needed
