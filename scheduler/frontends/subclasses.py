"""Replace parameters that are tensor subclasses of a library, such as quantized tensors, by their
inner tensors.

torch.export names each inner tensor where the graph first reads it
(``export.access_subclass_inner_tensor``). Here they become inputs, named after the parameter and
the attribute: ``layer.weight.qdata``.
"""

from __future__ import annotations

from dataclasses import replace

from scheduler.errors import UserError
from scheduler.ir.check import node_references
from scheduler.ir.graph import Graph, GraphInput, Ref

_ACCESS = "export.access_subclass_inner_tensor.default"


def with_inner_tensors(graph: Graph) -> Graph:
    """Return the graph with the inner tensors that nodes access as inputs. An input that is not
    read otherwise is removed. Raises ``UserError`` if the accessed value is not an input."""
    accesses = [node for node in graph.nodes if node.target == _ACCESS]
    if not accesses:
        return graph
    known = {value.name: value for value in graph.inputs}
    inner: dict[str, list[GraphInput]] = {}
    outermost: dict[str, str] = {}
    for node in accesses:
        match [value for _, value in node.arguments()], node.outputs:
            case [Ref(name=outer), str(attribute)], (name,):
                pass
            case _:
                raise UserError(
                    f"node {node.name!r}: {_ACCESS} takes a tensor and an attribute name"
                )
        if outer not in known:
            raise UserError(
                f"node {node.name!r}: reads a tensor from {outer!r}, which is not an input"
            )
        source = known[outer]
        known[name] = GraphInput(name, source.kind, f"{source.source_name or outer}.{attribute}")
        outermost[name] = outermost.get(outer, outer)
        inner.setdefault(outermost[name], []).append(known[name])
    nodes = tuple(node for node in graph.nodes if node.target != _ACCESS)
    read = {name for node in nodes for name in node_references(node)} | set(graph.outputs)
    inputs = tuple(
        value
        for outer_input in graph.inputs
        for value in (outer_input, *inner.get(outer_input.name, ()))
        if value.name in read or outer_input.name not in inner
    )
    return replace(graph, nodes=nodes, inputs=inputs)
