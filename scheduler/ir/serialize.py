"""Exact conversion of the graph to and from JSON: ``graph.json`` of a bundle, and the digest.

An argument without a JSON type is an object with one key: ``{"ref": name}``,
``{"dtype": "f16"}``, ``{"expr": "2*s0"}``, ``{"float": "inf"}``, ``{"complex": ["0.0", "1.0"]}``,
``{"graph": {…}}``. Tuples are lists.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, get_type_hints

import sympy

from scheduler.errors import UserError
from scheduler.ir.check import check_graph
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import (
    Argument,
    ConstantOutput,
    Frame,
    Graph,
    Node,
    OutputSpec,
    Ref,
    Subgraph,
    SymbolInfo,
)

if TYPE_CHECKING:
    from cattrs import Converter

SCHEMA = 1
MAX_NESTING = 16


def with_digest(graph: Graph) -> Graph:
    """Return the graph with the sha256 of its content.

    The content excludes its name, its producer, and the names of positional arguments.
    """
    content = graph_to_json(graph)
    for label in ("name", "digest", "producer"):
        del content[label]
    _drop_labels(content["nodes"])
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return replace(graph, digest=hashlib.sha256(text.encode()).hexdigest())


def _drop_labels(nodes: list[dict[str, Any]]) -> None:
    """Remove labels, which repeat the op's schema."""
    for node in nodes:
        node.pop("labels", None)
        for argument in (*node["args"], *node["kwargs"].values()):
            for part in argument if isinstance(argument, list) else (argument,):
                if isinstance(part, dict) and "graph" in part:
                    _drop_labels(part["graph"]["nodes"])


def graph_to_json(graph: Graph) -> dict[str, Any]:
    """Convert the graph to JSON types (no NaN, no infinity), in the graph's order."""
    return {"schema": SCHEMA, **_codec().unstructure(graph)}


def graph_from_json(data: Mapping[str, Any]) -> Graph:
    """Read a graph that ``graph_to_json`` wrote.

    Raises ``UserError`` naming the invalid part, also for an inconsistent graph (``check_graph``).
    Nothing in it is executed; the digest is not verified.
    """
    from scheduler.ir.codec import decode  # noqa: PLC0415 -- printing a wrapper reads no graph

    if not isinstance(data, Mapping) or data.get("schema") != SCHEMA:
        raise UserError(f"graph.json: not a graph of schema {SCHEMA}")
    graph = decode(_codec(), data, Graph, "graph.json")
    check_graph(graph)
    return graph


def constant_to_json(constant: ConstantOutput) -> dict[str, Any]:
    """Convert to ``{"place": 1, "value": 3}``; non-finite floats as in a node's arguments."""
    return {"place": constant.place, "value": _argument_to_json(constant.value)}


def constant_from_json(data: Any, where: str) -> ConstantOutput:
    """Read a result of ``constant_to_json``. Raises ``UserError`` naming ``where``."""
    from scheduler.ir.codec import decode  # noqa: PLC0415

    return decode(_codec(), data, ConstantOutput, where)


@cache
def _codec(depth: int = 0) -> Converter:
    """Return the converter of graphs, and of nodes at that depth of subgraphs and lists."""
    from scheduler.ir.codec import key_by_name, make_codec, rename_fields  # noqa: PLC0415

    codec = make_codec()
    argument = get_type_hints(Node)["kwargs"].__args__[1]
    constant = get_type_hints(ConstantOutput)["value"]
    codec.register_unstructure_hook_func(
        lambda kind: kind in (argument, constant), _argument_to_json
    )
    codec.register_structure_hook_func(
        lambda kind: kind == argument, lambda data, _: _argument(data, depth)
    )
    codec.register_structure_hook_func(lambda kind: kind == constant, _constant)
    codec.register_unstructure_hook(Frame, lambda f: [f.file, f.line, f.function, f.code])
    codec.register_structure_hook(Frame, _frame)
    key_by_name(codec, SymbolInfo, {"minimum": "min", "maximum": "max"})
    # Fields that older files lack.
    rename_fields(codec, OutputSpec, where_default=("input",))
    rename_fields(codec, Node, where_default=("labels",))
    optional = ("output_specs", "constant_outputs", "float32_matmul_precision", "guards")
    rename_fields(codec, Graph, where_default=optional)
    return codec


def _argument_to_json(value: Argument) -> Any:
    if isinstance(value, Ref):
        return {"ref": value.name}
    if isinstance(value, DType):
        return {"dtype": value.label}
    if isinstance(value, sympy.Expr):
        return {"expr": _codec().unstructure(value)}
    if isinstance(value, tuple):
        return [_argument_to_json(part) for part in value]
    if isinstance(value, Subgraph):
        return {"graph": _codec().unstructure(value)}
    if isinstance(value, complex):
        return {"complex": [repr(value.real), repr(value.imag)]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    return value


def _argument(data: Any, depth: int) -> Argument:
    if isinstance(data, list) and depth < MAX_NESTING:
        return tuple(_argument(part, depth + 1) for part in data)
    if isinstance(data, dict) and len(data) == 1:
        ((tag, value),) = data.items()
        read = partial(_codec().structure, value)
        if tag == "ref":
            return Ref(read(str))
        if tag == "dtype":
            return read(DType)
        if tag == "expr":
            return read(sympy.Expr)
        if tag == "graph" and depth < MAX_NESTING:
            return _codec(depth + 1).structure(value, Subgraph)
        if tag == "complex":
            return complex(*map(float, read(tuple[str, str])))
        if tag == "float" and value in ("inf", "-inf", "nan"):
            return float(value)
    if data is None or isinstance(data, bool | int | float | str):
        return data
    raise UserError("an argument of unknown form")


def _constant(data: Any, _: object) -> Argument:
    value = _argument(data, 0)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise UserError("a constant must be a number, boolean, string or null")


def _frame(data: Any, _: object) -> Frame:
    if not isinstance(data, list) or [type(part) for part in data] != [str, int, str, str]:
        raise UserError("a frame is [file, line, function, code]")
    return Frame(*data)
