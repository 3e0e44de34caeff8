"""Track which values share memory in torch: views and their bases, in-place ops and the values they
write.

Lowered values never share memory (``functionalize.py`` makes writes functional); this module only
records the sharing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from scheduler.errors import UserError
from scheduler.fuel import LimitError, spend_fuel
from scheduler.ir.check import node_references
from scheduler.ir.graph import Argument, Graph, Node, Ref
from scheduler.ir.ops import Elements, Overload, is_in_place
from scheduler.lowering import view_strides
from scheduler.lowering.errors import error_context, node_location
from scheduler.lowering.ops import lookup_op


class AliasTracker:
    """Records aliases node by node. ``last_use`` maps a value to the position of its last
    reader."""

    def __init__(self, graph: Graph, last_use: Mapping[str, int]) -> None:
        self._graph = graph
        self._last_use = last_use
        self._roots: dict[str, str] = {}
        self._members: dict[str, list[str]] = {}
        self._uncertain: set[str] = set()
        self._inputs = {graph_input.name for graph_input in graph.inputs}

    def root(self, name: str) -> str:
        """The value whose memory this value uses."""
        return self._roots.get(name, name)

    def record(self, node: Node) -> str | None:
        """Record the memory of a node's results. Returns the value that the node writes in place,
        or None."""
        resolved = lookup_op(node.target)
        if resolved is None:
            return self._note_unknown(node)
        arguments = resolved.bind(node)
        first = (
            arguments[resolved.mutates]
            if resolved.mutates
            else next(iter(arguments.values()), None)
        )
        if isinstance(first, tuple) and resolved.op.elements is Elements.VIEWED:
            for source, output in zip(first, node.outputs, strict=False):
                if isinstance(source, Ref):
                    self._share(source.name, (output,))
            return None
        if not isinstance(first, Ref):
            return None
        shares = True if resolved.mutates else self._shares(resolved, arguments, first.name, node)
        if shares is not False:
            self._share(first.name, node.outputs, certain=bool(shares))
        return first.name if resolved.mutates else None

    def shares(self, name: str) -> bool:
        """Whether a value is known to use the memory of another."""
        return name in self._roots

    def _note_unknown(self, node: Node) -> str | None:
        """Handle an op without a row by its name: an in-place op ends in ``_`` and returns its
        first argument."""
        first = next((argument for _, argument in node.arguments()), None)
        if not (is_in_place(node.target) and isinstance(first, Ref) and len(node.outputs) == 1):
            return None
        before, after = (self._graph.tensors.get(n) for n in (first.name, node.outputs[0]))
        if before is None or after is None or before.dtype is not after.dtype:
            return None
        if before.size != after.size:
            return None
        self._share(first.name, node.outputs)
        return first.name

    def _share(self, source: str, outputs: Sequence[str], *, certain: bool = True) -> None:
        root = self.root(source)
        self._roots.update(dict.fromkeys(outputs, root))
        self._members.setdefault(root, [root]).extend(outputs)
        if not certain or source in self._uncertain:
            self._uncertain.update(outputs)

    def live_aliases(self, node: Node, written: str, position: int) -> list[str]:
        """The other values that use the memory an in-place op writes and are read after it.

        Raises ``UserError`` if it is unknown whether one of them shares the memory.
        """
        root = self.root(written)
        live = [n for n in self._members[root] if self._last_use.get(n, -1) > position]
        self._members[root] = live
        aliases = [name for name in live if name != written and name not in node.outputs]
        checked = [*aliases, root] if root in self._inputs else aliases
        uncertain_names = [name for name in aliases if name in self._uncertain]
        if written in self._uncertain and checked:
            uncertain_names.append(written)
        if uncertain_names:
            raise UserError(
                f"writes to {written!r} in place, and whether {uncertain_names[0]!r} is a view of "
                f"{root!r} or a copy depends on sizes: export the model with "
                "run_decompositions()"
            )
        return aliases

    def _shares(
        self, resolved: Overload, arguments: Mapping[str, Argument], source: str, node: Node
    ) -> bool | None:
        """Whether the result uses the first argument's memory; None if that depends on sizes."""
        before = self._graph.tensors.get(source)
        after = self._graph.tensors.get(node.outputs[0]) if node.outputs else None
        if before is None or after is None:
            return False
        symbols, memory_format = self._graph.symbols, arguments.get("memory_format")
        match resolved.op.elements:
            case Elements.CONVERTED:
                if before.dtype is not after.dtype or arguments.get("copy"):
                    return False
                return view_strides.is_converted_in_place(before, memory_format, symbols)
            case Elements.RESHAPED:
                return view_strides.can_be_viewed(before, after.size, symbols)
            case Elements.VIEWED_IF_CONTIGUOUS:
                return view_strides.is_contiguous(before, memory_format, symbols)
            case Elements.VIEWED_UNLESS_TRAINING:
                return arguments.get("train") is False
            case elements:
                return elements is Elements.VIEWED


def memory_root(graph: Graph, name: str) -> str:
    """The value that owns a value's memory: the value itself if it is not a view."""
    while (node := graph.producers.get(name)) is not None:
        spend_fuel()
        root = AliasTracker(graph, {})
        root.record(node)
        if root.root(name) == name:
            return name
        name = root.root(name)
    return name


def knows_strides(graph: Graph, name: str) -> bool:
    """Whether the strides that a file states for a value are those in eager mode.

    They are for inputs, their views and copies, and values computed from row-major tensors. For
    other layouts, eager kernels may choose strides other than the export's shape functions state
    (``roll`` of a channels-last tensor).
    """
    pending, seen = [name], set[str]()
    while pending:
        value = pending.pop()
        node = graph.producers.get(value)
        if value in seen or node is None:
            continue
        seen.add(value)
        spend_fuel()
        inputs = [name_read for name_read in node_references(node) if name_read in graph.tensors]
        resolved = lookup_op(node.target)
        if resolved is not None and (
            resolved.op.elements in (Elements.VIEWED, Elements.VIEWED_IF_CONTIGUOUS)
            or resolved.op.name == "aten.clone"
        ):
            pending += inputs[:1]  # the layout is derived from the first argument
            continue
        metas = [graph.tensors[name_read] for name_read in (value, *inputs)]
        if not all(
            view_strides.is_contiguous(name_read, None, graph.symbols) for name_read in metas
        ):
            return False
        pending += inputs
    return True


def written_memory(graph: Graph, last_use: Mapping[str, int]) -> set[str]:
    """Values whose memory is written while another value that uses it is read later."""
    memory = AliasTracker(graph, last_use)
    roots: set[str] = set()
    for position, node in enumerate(graph.nodes):
        with error_context(node_location(node)):
            written = memory.record(node)
            if written is not None and memory.live_aliases(node, written, position):
                roots.add(memory.root(written))
    return roots


def written_values(graph: Graph) -> set[str]:
    """Values whose memory ops write in place, directly or through views, each by the name of the
    value that owns the memory. A node whose arguments do not fit its op is ignored."""
    return {value for _, value in in_place_writes(graph)}


def in_place_writes(graph: Graph) -> Iterator[tuple[Node, str]]:
    """Each node that writes in place, with the value that owns the memory."""
    memory = AliasTracker(graph, {})
    for node in graph.nodes:
        try:
            with error_context(node_location(node)):
                written = memory.record(node)
        except LimitError:
            raise
        except UserError:
            continue  # lowering reports the error
        if written is not None:
            yield node, memory.root(written)
