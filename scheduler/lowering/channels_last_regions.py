"""Choose which values of a graph use the channels-last layout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from scheduler.errors import UserError
from scheduler.fuel import spend_fuel
from scheduler.ir.check import node_references
from scheduler.ir.graph import Expr, Graph, Node, TensorMeta
from scheduler.ir.ops import UnsupportedOpError
from scheduler.lowering.channels_last import channels_last_strides, is_profitable
from scheduler.lowering.ops import resolve_op

_CONVOLUTION_TARGETS = (
    "aten.conv1d",
    "aten.conv2d",
    "aten.conv3d",
    "aten.convolution",
    "aten._convolution",
)

_Kind: TypeAlias = tuple[int, Expr, Expr]


def preferred_strides(graph: Graph) -> Mapping[str, tuple[Expr, ...]]:
    """Channels-last strides of values made by the graph's nodes that are connected to a profitable
    convolution through ops that keep images and channels. Outputs of the graph are copied into the
    model's order at the end."""
    hints = {name: info.hint for name, info in graph.symbols.items()}
    profitable = []
    for node in graph.nodes:
        spend_fuel()
        convolution = _convolution(graph, node)
        if convolution is not None:
            input, weight, output, groups = convolution
            if is_profitable(input, weight, output.size, groups, hints):
                profitable.append(node.outputs[0])
    if not profitable:
        return {}
    regions = _Regions(graph)
    for node in graph.nodes:
        spend_fuel()
        regions.join(node)
    region_values = regions.containing(profitable)
    input_names = {graph_input.name for graph_input in graph.inputs}
    return {
        name: channels_last_strides(graph.tensors[name].size)
        for name in sorted(region_values - input_names)
    }


def _convolution(graph: Graph, node: Node) -> tuple[TensorMeta, TensorMeta, TensorMeta, int] | None:
    """Input, weight, output and groups of a convolution that is not transposed."""
    if not node.target.startswith(_CONVOLUTION_TARGETS):
        return None
    try:
        arguments = resolve_op(node.target).bind(node)
    except (UnsupportedOpError, UserError):
        return None  # lowering reports the error
    names = [str(getattr(arguments[name], "name", "")) for name in ("input", "weight")]
    operands = [graph.tensors.get(name) for name in names]
    output = graph.tensors.get(node.outputs[0])
    groups = arguments.get("groups", 1)
    if arguments.get("transposed") or output is None or None in operands or type(groups) is not int:
        return None
    input, weight = operands
    assert input is not None and weight is not None
    return input, weight, output, groups


class _Regions:
    """Groups values that nodes connect and that have the same rank, images and channels."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._roots: dict[str, str] = {}

    def join(self, node: Node) -> None:
        """Merge the node's values of the same kind into one region."""
        first: dict[_Kind, str] = {}
        for name in (*node.outputs, *node_references(node)):
            meta = self._graph.tensors.get(name)
            if meta is not None and len(meta.size) > 2:
                kind = len(meta.size), meta.size[0], meta.size[1]
                self._roots[self._root(name)] = self._root(first.setdefault(kind, name))

    def containing(self, names: list[str]) -> set[str]:
        """All values in the regions of these values."""
        roots = {self._root(name) for name in names}
        return {name for name in [*self._roots] if self._root(name) in roots}

    def _root(self, name: str) -> str:
        while (above := self._roots.setdefault(name, name)) != name:
            self._roots[name] = self._roots.get(above, above)
            name = above
        return name
