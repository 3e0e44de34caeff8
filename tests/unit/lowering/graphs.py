"""Graphs built by hand: a node's metas are found by running the reference on examples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import (
    Argument,
    Frame,
    Graph,
    GraphInput,
    InputKind,
    Node,
    Origin,
    Ref,
    SymbolInfo,
    TensorMeta,
)
from scheduler.reference import evaluate
from tests.support.memory import contiguous

_DTYPES = {"float64": DType.F64, "float32": DType.F32, "float16": DType.F16, "int64": DType.I64}
_DTYPES |= {"int32": DType.I32, "uint8": DType.U8, "int8": DType.I8, "int16": DType.I16}
_DTYPES |= {"bool": DType.BOOL}


def meta(dtype: DType, *size: Any, stride: tuple[Any, ...] | None = None) -> TensorMeta:
    """A tensor's meta, row-major unless strides are given."""
    sizes = tuple(sympy.sympify(s) for s in size)
    strides = contiguous(sizes) if stride is None else tuple(sympy.sympify(s) for s in stride)
    return TensorMeta(dtype, sizes, strides)


class GraphBuilder:
    """Adds nodes one by one; static shapes. ``values`` are example values in float64."""

    def __init__(self) -> None:
        self.tensors: dict[str, TensorMeta] = {}
        self.values: dict[str, Any] = {}
        self.inputs: list[GraphInput] = []
        self.nodes: list[Node] = []

    def input(self, array: Any, dtype: DType, stride: tuple[int, ...] | None = None) -> str:
        """An input with this example value."""
        name = f"x{len(self.inputs)}"
        self.inputs.append(GraphInput(name, InputKind.USER))
        self.tensors[name] = meta(dtype, *array.shape, stride=stride)
        self.values[name] = array
        return name

    def call(self, target: str, *args: Argument, dtype: DType | None = None, **kwargs: Any) -> str:
        """A node; its shape is that of the reference's result, its type too unless given."""
        name = f"n{len(self.nodes)}"
        origin = Origin((Frame("model.py", 10 + len(self.nodes), "forward", target),), "m.block")
        node = Node(name, target, args, kwargs, (name,), origin)
        dtypes = {n: m.dtype for n, m in self.tensors.items()}
        value = np.asarray(evaluate(node, self.values, {}, dtypes=dtypes)[name])
        self.nodes.append(node)
        self.values[name] = value
        self.tensors[name] = meta(dtype or _DTYPES[value.dtype.name], *value.shape)
        return name

    def graph(self, *outputs: str) -> Graph:
        """The graph with these outputs."""
        return graph(self.inputs, self.nodes, self.tensors, outputs)


def graph(
    inputs: list[GraphInput],
    nodes: list[Node],
    tensors: Mapping[str, TensorMeta],
    outputs: tuple[str, ...],
    symbols: Mapping[str, SymbolInfo] | None = None,
) -> Graph:
    """A graph without symbolic integers."""
    return Graph("test", "0" * 64, symbols or {}, tuple(inputs), outputs, tuple(nodes), tensors, {})


def node(name: str, target: str, *args: Argument, **kwargs: Argument) -> Node:
    """A node with one output of its own name, from a line of a model."""
    origin = Origin((Frame("model.py", 7, "forward", "y = f(x)"),), "m.layers.0")
    return Node(name, target, args, kwargs, (name,), origin)


__all__ = ["GraphBuilder", "Ref", "graph", "meta", "node"]
