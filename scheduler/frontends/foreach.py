"""Split ops on lists of tensors (``_foreach_add_``) into ops on single tensors.

``aten._foreach_add_.Scalar([a, b], 2)`` writes to both and has no result; it becomes
``aten.add_.Scalar(a, 2)`` and ``aten.add_.Scalar(b, 2)``, which have results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType

from scheduler.ir.graph import Argument, Graph, Node, Ref, TensorMeta
from scheduler.ir.ops import is_in_place
from scheduler.lowering.ops import lookup_op

_PREFIX = "aten._foreach_"

# Overloads of the list op, with the overloads of the single-tensor op to try in order. Those of
# ``pow`` name both operands; some ops take numbers only in their default overload.
_OVERLOADS = MappingProxyType(
    {
        "Scalar": ("Scalar", "Tensor_Scalar", "default"),
        "ScalarList": ("Scalar", "Tensor_Scalar", "default"),
        "List": ("Tensor", "Tensor_Tensor", "default"),
        "Tensor": ("Tensor", "default"),
        "default": ("default",),
    }
)
# The op to use with a number, which ``maximum`` and ``minimum`` do not take.
_OF_NUMBERS = MappingProxyType({"maximum": "clamp_min", "minimum": "clamp_max"})


def with_single_ops(graph: Graph) -> Graph:
    """Return the graph with list ops split. A list op without a single-tensor op is kept."""
    tensors = dict(graph.tensors)
    nodes = tuple(single for node in graph.nodes for single in _single_ops(node, tensors))
    return graph if nodes == graph.nodes else replace(graph, nodes=nodes, tensors=tensors)


def _single_ops(node: Node, tensors: dict[str, TensorMeta]) -> Iterator[Node]:
    operands = next((value for _, value in node.arguments()), None)
    target = _single_target(node.target)
    if not target or not isinstance(operands, tuple):
        yield node
        return
    refs = [operand for operand in operands if isinstance(operand, Ref)]
    if len(refs) != len(operands) or len(node.outputs) not in (0, len(refs)):
        yield node
        return

    def element(value: Argument, index: int) -> Argument:
        """A list's element for one tensor; any other value applies to all tensors."""
        return value[index] if isinstance(value, tuple) and len(value) == len(refs) else value

    writes = is_in_place(target)
    outputs = node.outputs or tuple(f"{node.name}_{i}" for i in range(len(refs)))
    for index, (tensor, output) in enumerate(zip(refs, outputs, strict=True)):
        name = node.name if index == 0 else f"{node.name}_{index}"
        if writes and tensor.name in tensors:
            tensors.setdefault(output, tensors[tensor.name])
        yield Node(
            name if writes else output,
            target,
            tuple(element(value, index) for value in node.args),
            {key: element(value, index) for key, value in node.kwargs.items()},
            (output,),
            node.origin,
        )


def _single_target(target: str) -> str:
    """``aten.add_.Scalar`` for ``aten._foreach_add_.Scalar``; "" if there is no such op."""
    if not target.startswith(_PREFIX):
        return ""
    name, _, overload = target.removeprefix(_PREFIX).partition(".")
    if overload.startswith("Scalar"):
        plain = name.removesuffix("_")
        name = _OF_NUMBERS.get(plain, plain) + name[len(plain) :]
    targets = (f"aten.{name}.{single}" for single in _OVERLOADS.get(overload, ()))
    return next((single for single in targets if lookup_op(single) is not None), "")
