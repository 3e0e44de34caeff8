"""Constraints that a graph imposes on random values of its inputs.

The nodes are visited backwards, so that the constraints of a value are complete before its producer
propagates them to its arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scheduler.ir.graph import Argument, Graph, InputKind, Node, Ref
from scheduler.ir.ops import Elements, Overload
from scheduler.ir.reference.constraints import Constraint, Sizes
from scheduler.lowering.ops import lookup_op


def input_constraints(graph: Graph, bindings: Mapping[str, int]) -> dict[str, Constraint]:
    """Return the constraint of every constrained value, by name."""
    roles: dict[str, Constraint] = {}
    sizes = Sizes(graph, bindings)
    gains = {
        value.name
        for value in graph.inputs
        if value.kind is InputKind.PARAMETER and len(graph.tensors[value.name].size) == 1
    }
    for node in reversed(graph.nodes):
        overload = lookup_op(node.target)
        if overload is None:
            continue
        for argument, role in _required(overload, node, roles, sizes, gains):
            if isinstance(argument, Ref):
                roles[argument.name] = roles.get(argument.name, Constraint()).merge(role)
    return roles


def _required(
    overload: Overload,
    node: Node,
    roles: Mapping[str, Constraint],
    sizes: Sizes,
    gains: set[str],
) -> Iterator[tuple[Argument, Constraint]]:
    """Yield the constraints of a node's arguments: those of the op, and those of its results."""
    op, args = overload.op, overload.bind(node)
    if op.requires is not None:
        yield from op.requires(args, sizes)
    if op.name == "aten.mul":
        for argument in args.values():
            if isinstance(argument, Ref) and argument.name in gains:
                yield argument, Constraint(gain=True)
    required = Constraint()
    for output in node.outputs:
        required = required.merge(roles.get(output, Constraint()))
    if op.elements is not Elements.COMPUTED:
        source = next(iter(args.values()))
        for part in source if isinstance(source, tuple) else (source,):
            yield part, required
    elif op.name == "aten.add" and required.below is not None and isinstance(args["other"], int):
        yield args["self"], Constraint(below=required.below - max(0, args["other"]))
