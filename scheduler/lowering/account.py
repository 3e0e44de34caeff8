"""What became of every node of a graph: nothing that a model asks for is left out unsaid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum

from scheduler.ir.check import node_references
from scheduler.ir.graph import Graph, Node
from scheduler.ir.operations import Extern, Lowered
from scheduler.ir.ops import Elements, UnsupportedOpError
from scheduler.lowering.ops import find
from scheduler.lowering.sharing import SharedMemory


class Became(StrEnum):
    """How a node is accounted for."""

    COMPUTED = "in kernels"
    EXTERN = "externs"
    VIEW = "views, sizes and constants"  # whoever reads it computes where its elements are
    CHECK = "checks"  # of what the export assumes; it has no value
    UNREAD = "that nothing reads"


def account(lowered: Lowered) -> dict[str, Became]:
    """By a node's name what became of it. One that is needed and missing here is a fault."""
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
            if _is_known(node):
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
    """The nodes that are not accounted for."""
    found = account(lowered)
    return [node for node in lowered.graph.nodes if node.name not in found]


def _needed(graph: Graph) -> set[str]:
    """Names of the nodes that an output depends on, by their values or by what they write."""
    writers = _writers(graph)
    memory = {name: root for root, names in _members(graph).items() for name in names}
    needed: set[str] = set()
    left = list(graph.outputs)
    seen: set[str] = set()
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        makers = [maker] if (maker := graph.makers.get(name)) is not None else []
        for node in (*makers, *writers.get(memory.get(name, name), ())):
            if node.name not in needed:
                needed.add(node.name)
                left.extend(node_references(node))
    return needed


def _noted(graph: Graph) -> Iterator[tuple[Node, str | None, SharedMemory]]:
    memory = SharedMemory(graph, {})
    for node in graph.nodes:
        yield node, memory.note(node), memory


def _writers(graph: Graph) -> Mapping[str, list[Node]]:
    """Of each memory, by the value that it was made with, the nodes that write it in place."""
    found: dict[str, list[Node]] = {}
    for node, written, memory in _noted(graph):
        if written is not None:
            found.setdefault(memory.root(written), []).append(node)
    return found


def _members(graph: Graph) -> Mapping[str, set[str]]:
    """Of each memory the values that show it."""
    found: dict[str, set[str]] = {}
    for node, _, memory in _noted(graph):
        for name in (*node_references(node), *node.outputs):
            found.setdefault(memory.root(name), set()).add(name)
    return found


def _is_known(node: Node) -> bool:
    try:
        find(node.target)
    except UnsupportedOpError:
        return False
    return True


def _is_view(graph: Graph, node: Node) -> bool:
    """Whether the node moves elements or makes numbers alone: it may stand in no operation."""
    if not any(name in graph.tensors for name in node.outputs):
        return True
    if not _is_known(node):
        return False
    op = find(node.target).op
    # A copy of a value to where it is, as an assignment to a view ends with, computes nothing.
    return op.elements is not Elements.COMPUTED or op.name == "aten.copy"
