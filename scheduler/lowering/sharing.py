"""Which values share memory in torch: views with what they show, in-place ops with what they write.

Lowered values share nothing (``aliasing.py`` makes writes functional); this only keeps account.
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.ir.graph import Graph, Node, Ref
from scheduler.ir.ops import UnsupportedOpError, bind, spec_of
from scheduler.lowering import layout

#: Functions whose result shares memory with their first argument.
_SHARING = frozenset(
    {
        *("view", "_unsafe_view", "unflatten", "squeeze", "unsqueeze", "permute", "transpose", "t"),
        *("numpy_T", "mT", "swapaxes", "movedim", "expand", "expand_as", "broadcast_to", "slice"),
        *("select", "narrow", "split", "split_with_sizes", "chunk", "unbind", "diagonal", "alias"),
        *("detach", "view_as", "to", "dropout", "lift_fresh", "unfold"),
    }
)
#: Functions that copy what is not contiguous.
_SHARING_IF_CONTIGUOUS = frozenset({"reshape", "reshape_as", "flatten", "contiguous"})


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
        spec = spec_of(node.target)
        first = next(iter(bind(node).values()), None)
        if not isinstance(first, Ref):
            return None
        if spec.mutates or self._shares(spec.function, first.name, node):
            root = self.root(first.name)
            self._roots.update(dict.fromkeys(node.outputs, root))
            self._members.setdefault(root, [root]).extend(node.outputs)
        return first.name if spec.mutates else None

    def others(self, node: Node, written: str, position: int) -> list[str]:
        """What else shows the memory that an in-place op writes, and is used after it."""
        root = self.root(written)
        alive = [n for n in self._members[root] if self._last_use.get(n, -1) > position]
        self._members[root] = alive
        return [name for name in alive if name != written and name not in node.outputs]

    def _shares(self, function: str, source: str, node: Node) -> bool:
        meta = self._graph.tensors.get(source)
        if meta is None or function not in (*_SHARING, *_SHARING_IF_CONTIGUOUS):
            return False
        if function == "to":
            return meta.dtype is self._graph.tensors[node.outputs[0]].dtype
        return function in _SHARING or meta.stride == layout.contiguous(meta.size)


def written_memory(graph: Graph, last_use: Mapping[str, int]) -> set[str]:
    """Values whose memory is written to while something else that shows it is used later."""
    memory = SharedMemory(graph, last_use)
    found: set[str] = set()
    for position, node in enumerate(graph.nodes):
        try:
            written = memory.note(node)
        except UnsupportedOpError:
            continue
        if written is not None and memory.others(node, written, position):
            found.add(memory.root(written))
    return found
