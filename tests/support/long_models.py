"""Models of any length, made without a file: what grows with a model is measured on them."""

from __future__ import annotations

from collections.abc import Callable

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Graph, GraphInput, InputKind, Node, Ref, TensorMeta
from scheduler.ir.serialize import with_digest
from tests.support.memory import contiguous


def chain(length: int) -> Graph:
    """relu of relu of relu …: kernels of many operations each."""
    return _chained(length, lambda name: ("aten.relu.default", (Ref(name),)))


def products(length: int) -> Graph:
    """Matrix products one after the other: a kernel each, all of one problem."""
    return _chained(length, lambda name: ("aten.mm.default", (Ref(name), Ref("w"))))


def wide(length: int) -> Graph:
    """Many values of one input, all of them outputs: a kernel each."""
    names = [f"v{number}" for number in range(length)]
    nodes = [
        Node(name, "aten.mul.Scalar", (Ref("x"), float(number)), {}, (name,))
        for number, name in enumerate(names)
    ]
    return _graph(nodes, dict.fromkeys(("x", *names), _meta(64, 64)), ["x"], names)


def shapes(length: int) -> Graph:
    """Values of as many shapes: a kernel and a problem each."""
    tensors = {f"{kind}{n}": _meta(n + 1, 32) for n in range(length) for kind in ("x", "v")}
    nodes = [
        Node(f"v{n}", "aten.relu.default", (Ref(f"x{n}"),), {}, (f"v{n}",)) for n in range(length)
    ]
    inputs, outputs = ([name for name in tensors if name[0] == kind] for kind in ("x", "v"))
    return _graph(nodes, tensors, inputs, outputs)


def _chained(length: int, call: Callable[[str], tuple[str, tuple[Ref, ...]]]) -> Graph:
    names = [f"v{number}" for number in range(length)]
    nodes = []
    for before, name in zip(["x", *names], names, strict=False):
        target, args = call(before)
        nodes.append(Node(name, target, args, {}, (name,)))
    return _graph(nodes, dict.fromkeys(("x", "w", *names), _meta(64, 64)), ["x", "w"], names[-1:])


def _meta(*size: int) -> TensorMeta:
    return TensorMeta(DType.F32, tuple(map(sympy.Integer, size)), contiguous(size))


def _graph(
    nodes: list[Node], tensors: dict[str, TensorMeta], inputs: list[str], outputs: list[str]
) -> Graph:
    given = tuple(GraphInput(name, InputKind.USER) for name in inputs)
    return with_digest(
        Graph("long", "", {}, given, tuple(outputs), tuple(nodes), tensors, {}, "tests")
    )
