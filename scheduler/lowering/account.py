"""What became of every node of a graph: none of a model's nodes is dropped silently."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

from scheduler.ir.check import node_references
from scheduler.ir.graph import Graph, Node
from scheduler.ir.operations import Extern, Lowered
from scheduler.ir.ops import Elements
from scheduler.lowering.ops import known
from scheduler.lowering.sharing import SharedMemory


class Became(StrEnum):
    """How a node is accounted for."""

    COMPUTED = "in kernels"
    EXTERN = "externs"
    VIEW = "views, sizes and constants"  # its readers compute where its elements lie
    CHECK = "checks"  # of what the export assumes; it has no value
    UNREAD = "that nothing reads"


def account(lowered: Lowered) -> dict[str, Became]:
    """What became of each node, by its name. A node that is needed and missing here is a fault."""
    graph = lowered.graph
    externs = {op.node for op in lowered.operations if isinstance(op, Extern)}
    computed = {name for op in lowered.operations for name in op.nodes}
    needed = _needed(graph)
    found: dict[str, Became] = {}
    for node in graph.nodes:
        if node.name in externs:
            found[node.name] = Became.EXTERN
        elif node.name in computed:
            found[node.name] = Became.COMPUTED
        elif not node.outputs:
            if known(node.target) is not None:
                found[node.name] = Became.CHECK
        elif node.name not in needed:
            found[node.name] = Became.UNREAD
        elif _is_view(graph, node):
            found[node.name] = Became.VIEW
    return found


def summary(lowered: Lowered) -> str:
    """``21 of 21 nodes accounted for: 15 in kernels, 4 views, sizes and constants, 2 externs``."""
    found = account(lowered)
    counts = Counter(found.values())
    parts = ", ".join(f"{counts[one]} {one}" for one in Became if counts[one])
    return f"{len(found)} of {len(lowered.graph.nodes)} nodes accounted for: {parts}"


def missing(lowered: Lowered) -> list[Node]:
    """The nodes that are not accounted for. Comparing outputs would not reveal them: the reference
    goes by the same account of what is written."""
    found = account(lowered)
    return [node for node in lowered.graph.nodes if node.name not in found]


def _needed(graph: Graph) -> set[str]:
    """Names of the nodes that an output depends on, by their values or by what they write."""
    memory = SharedMemory(graph, {})
    writers: dict[str, list[Node]] = {}  # by the value that the memory was made with
    for node in graph.nodes:
        if (written := memory.note(node)) is not None:
            writers.setdefault(memory.root(written), []).append(node)
    needed: set[str] = set()
    seen: set[str] = set()
    left = list(graph.outputs)
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        makers = [maker] if (maker := graph.makers.get(name)) is not None else []
        for node in (*makers, *writers.get(memory.root(name), ())):
            if node.name not in needed:
                needed.add(node.name)
                left.extend(node_references(node))
    return needed


def _is_view(graph: Graph, node: Node) -> bool:
    """Whether the node moves elements or makes numbers alone: it may stand in no operation."""
    if not any(name in graph.tensors for name in node.outputs):
        return True
    found = known(node.target)
    if found is None:
        return False
    # A copy of a value to where it is, as an assignment to a view ends with, computes nothing.
    return found.op.elements is not Elements.COMPUTED or found.op.name == "aten.copy"
