"""Which values share memory in torch: views with what they show, in-place ops with what they write.

Lowered values share nothing (``aliasing.py`` makes writes functional); this only keeps account.
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.ir.graph import Graph, Node, Ref
from scheduler.ir.ops import Elements, UnsupportedOpError
from scheduler.lowering import layout
from scheduler.lowering.errors import naming, where
from scheduler.lowering.ops import find


class SharedMemory:
    """An account that grows node by node. ``last_use``: position of the last reader of a value."""

    def __init__(self, graph: Graph, last_use: Mapping[str, int]) -> None:
        self._graph = graph
        self._last_use = last_use
        self._roots: dict[str, str] = {}
        self._members: dict[str, list[str]] = {}

    def root(self, name: str) -> str:
        """The value whose memory this one is."""
        return self._roots.get(name, name)

    def note(self, node: Node) -> str | None:
        """Note whose memory a node's results are. The value that it writes in place, or None."""
        found = find(node.target)
        first = next(iter(found.bind(node).values()), None)
        if not isinstance(first, Ref):
            return None
        if found.mutates or self._shares(found.op.elements, first.name, node):
            root = self.root(first.name)
            self._roots.update(dict.fromkeys(node.outputs, root))
            self._members.setdefault(root, [root]).extend(node.outputs)
        return first.name if found.mutates else None

    def others(self, node: Node, written: str, position: int) -> list[str]:
        """What else shows the memory that an in-place op writes, and is used after it."""
        root = self.root(written)
        alive = [n for n in self._members[root] if self._last_use.get(n, -1) > position]
        self._members[root] = alive
        return [name for name in alive if name != written and name not in node.outputs]

    def _shares(self, elements: Elements, source: str, node: Node) -> bool:
        meta = self._graph.tensors.get(source)
        if meta is None:
            return False
        if elements is Elements.CONVERTED:
            return meta.dtype is self._graph.tensors[node.outputs[0]].dtype
        if elements is Elements.VIEWED_IF_CONTIGUOUS:
            return meta.stride == layout.contiguous(meta.size)
        return elements is Elements.VIEWED


def written_memory(graph: Graph, last_use: Mapping[str, int]) -> set[str]:
    """Values whose memory is written to while something else that shows it is used later."""
    memory = SharedMemory(graph, last_use)
    found: set[str] = set()
    for position, node in enumerate(graph.nodes):
        try:
            with naming(where(node)):
                written = memory.note(node)
                if written is not None and memory.others(node, written, position):
                    found.add(memory.root(written))
        except UnsupportedOpError:
            continue
    return found
