"""Exact conversion of the graph to and from JSON: ``graph.json`` of a bundle, and the digest.

An argument without a JSON type is an object with one key: ``{"ref": name}``,
``{"dtype": "f16"}``, ``{"expr": "2*s0"}``, ``{"float": "inf"}``, ``{"complex": ["0.0", "1.0"]}``,
``{"graph": {…}}``. Tuples are lists.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

import sympy

from scheduler.errors import UserError
from scheduler.ir.check import check_graph
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import (
    Argument,
    ConstantOutput,
    Frame,
    Graph,
    GraphInput,
    Guard,
    InputKind,
    MatmulPrecision,
    Node,
    Origin,
    OutputKind,
    OutputSpec,
    Ref,
    Subgraph,
    SymbolInfo,
    TensorMeta,
)
from scheduler.ir.guards import parse_guard, print_guard
from scheduler.ir.index.text import parse_expr, print_expr

__all__ = [
    "constant_from_json",
    "constant_to_json",
    "graph_from_json",
    "graph_to_json",
    "parse_expr",
    "print_expr",
    "with_digest",
]

SCHEMA = 1
MAX_NESTING = 16
_T = TypeVar("_T")


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
    constants = [constant_to_json(each) for each in graph.constant_outputs]
    text = cache(print_expr)  # graphs repeat a few expressions often
    return {
        "schema": SCHEMA,
        "name": graph.name,
        "digest": graph.digest,
        "producer": graph.producer,
        "symbols": {
            name: {"hint": info.hint, "min": info.minimum, "max": info.maximum}
            for name, info in graph.symbols.items()
        },
        "inputs": [
            {"name": i.name, "kind": i.kind.value, "source_name": i.source_name}
            for i in graph.inputs
        ],
        "outputs": list(graph.outputs),
        # Omitted if the model returns every output, for compatibility with older files.
        **({"output_specs": _specs_to_json(graph)} if graph.output_specs else {}),
        **({"constant_outputs": constants} if constants else {}),
        **_precision_to_json(graph),
        **({"guards": [print_guard(guard) for guard in graph.guards]} if graph.guards else {}),
        "nodes": [_node_to_json(node) for node in graph.nodes],
        "tensors": {
            name: {
                "dtype": meta.dtype.label,
                "size": [text(size) for size in meta.size],
                "stride": [text(stride) for stride in meta.stride],
            }
            for name, meta in graph.tensors.items()
        },
        "sym_ints": {name: text(expr) for name, expr in graph.sym_ints.items()},
    }


def constant_to_json(constant: ConstantOutput) -> dict[str, Any]:
    """Convert to ``{"place": 1, "value": 3}``; non-finite floats as in a node's arguments."""
    return {"place": constant.place, "value": _argument_to_json(constant.value)}


def _precision_to_json(graph: Graph) -> dict[str, str]:
    """Return the precision of f32 products; empty for the default."""
    precision = graph.float32_matmul_precision
    if precision is MatmulPrecision.HIGHEST:
        return {}
    return {"float32_matmul_precision": precision.value}


def _specs_to_json(graph: Graph) -> list[dict[str, str]]:
    return [
        {"kind": spec.kind.value, **({"input": spec.input} if spec.input else {})}
        for spec in graph.output_specs
    ]


def _node_to_json(node: Node) -> dict[str, Any]:
    origin = node.origin
    return {
        "name": node.name,
        "target": node.target,
        "args": [_argument_to_json(arg) for arg in node.args],
        **({"labels": list(node.labels)} if node.labels else {}),
        "kwargs": {name: _argument_to_json(arg) for name, arg in node.kwargs.items()},
        "outputs": list(node.outputs),
        "origin": {
            "frames": [[f.file, f.line, f.function, f.code] for f in origin.frames],
            "module_path": origin.module_path,
            "module_type": origin.module_type,
            "torch_function": origin.torch_function,
        },
    }


def _argument_to_json(value: Argument) -> Any:
    if isinstance(value, Ref):
        return {"ref": value.name}
    if isinstance(value, DType):
        return {"dtype": value.label}
    if isinstance(value, sympy.Expr):
        return {"expr": print_expr(value)}
    if isinstance(value, tuple):
        return [_argument_to_json(part) for part in value]
    if isinstance(value, Subgraph):
        return {"graph": _subgraph_to_json(value)}
    if isinstance(value, complex):
        return {"complex": [repr(value.real), repr(value.imag)]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    return value


def _subgraph_to_json(inner: Subgraph) -> dict[str, Any]:
    return {
        "name": inner.name,
        "inputs": list(inner.inputs),
        "outputs": list(inner.outputs),
        "nodes": [_node_to_json(node) for node in inner.nodes],
    }


def graph_from_json(data: Mapping[str, Any]) -> Graph:
    """Read a graph that ``graph_to_json`` wrote.

    Raises ``UserError`` naming the invalid part, also for an inconsistent graph (``check_graph``).
    Nothing in it is executed; the digest is not verified.
    """
    if not isinstance(data, Mapping) or data.get("schema") != SCHEMA:
        raise UserError(f"graph.json: not a graph of schema {SCHEMA}")
    graph = Graph(
        name=_read_text(data, "name", "the graph"),
        digest=_read_text(data, "digest", "the graph"),
        producer=_read_text(data, "producer", "the graph"),
        symbols={
            n: _symbol(n, s) for n, s in _read_field(data, "symbols", dict, "the graph").items()
        },
        inputs=tuple(_read_each(data, "inputs", _input)),
        outputs=tuple(_read_names(data, "outputs", "the graph")),
        nodes=tuple(_read_each(data, "nodes", _node)),
        tensors={
            n: _tensor(n, t) for n, t in _read_field(data, "tensors", dict, "the graph").items()
        },
        sym_ints={
            name: _expr(text, f"sym_ints.{name}")
            for name, text in _read_field(data, "sym_ints", dict, "the graph").items()
        },
        output_specs=tuple(_read_each(data, "output_specs", _spec))
        if "output_specs" in data
        else (),
        constant_outputs=tuple(_read_each(data, "constant_outputs", constant_from_json))
        if "constant_outputs" in data
        else (),
        float32_matmul_precision=_precision(data),
        guards=tuple(_read_each(data, "guards", _guard)) if "guards" in data else (),
    )
    check_graph(graph)
    return graph


def _read_field(data: Any, label: str, kind: Any, where: str) -> Any:
    present = isinstance(data, dict) and label in data
    value = data[label] if present else None
    if not present or not isinstance(value, kind) or isinstance(value, bool):
        raise UserError(f"graph.json: {where}: {label!r} is missing or has the wrong type")
    return value


def _read_text(data: Any, label: str, where: str) -> str:
    text: str = _read_field(data, label, str, where)
    return text


def _read_names(data: Any, label: str, where: str) -> list[str]:
    values: list[str] = _read_field(data, label, list, where)
    if not all(isinstance(value, str) for value in values):
        raise UserError(f"graph.json: {where}: {label!r} contains an invalid name")
    return values


def _read_each(data: Mapping[str, Any], label: str, read: Callable[[Any, str], _T]) -> list[_T]:
    values = _read_field(data, label, list, "the graph")
    return [read(value, f"{label}[{index}]") for index, value in enumerate(values)]


def _expr(text: Any, where: str) -> sympy.Expr:
    return _parsed(text, where, "an expression", parse_expr)


def _guard(text: Any, where: str) -> Guard:
    return _parsed(text, where, "a guard", parse_guard)


def _parsed(text: Any, where: str, what: str, parse: Callable[[str], _T]) -> _T:
    if not isinstance(text, str):
        raise UserError(f"graph.json: {where}: {what} must be a string")
    try:
        return parse(text)
    except UserError as error:
        raise UserError(f"graph.json: {where}: {error}") from error


def _symbol(name: str, data: Any) -> SymbolInfo:
    where = f"symbols.{name}"
    hint, least = _read_field(data, "hint", int, where), _read_field(data, "min", int, where)
    return SymbolInfo(name, hint, least, _read_field(data, "max", int | None, where))


def _input(data: Any, where: str) -> GraphInput:
    kind = _read_text(data, "kind", where)
    if kind not in {known.value for known in InputKind}:
        raise UserError(f"graph.json: {where}: unknown kind {kind!r}")
    return GraphInput(
        _read_text(data, "name", where), InputKind(kind), _read_text(data, "source_name", where)
    )


def _spec(data: Any, where: str) -> OutputSpec:
    kind = _read_text(data, "kind", where)
    if kind not in {known.value for known in OutputKind}:
        raise UserError(f"graph.json: {where}: unknown kind {kind!r}")
    return OutputSpec(OutputKind(kind), _read_text(data, "input", where) if "input" in data else "")


def constant_from_json(data: Any, where: str) -> ConstantOutput:
    """Read a result of ``constant_to_json``. Raises ``UserError`` naming ``where``."""
    place = _read_field(data, "place", int, where)
    if "value" not in data:
        raise UserError(f"graph.json: {where}: 'value' is missing")
    value = _argument(data["value"], where)
    if value is None or isinstance(value, bool | int | float | str):
        return ConstantOutput(place, value)
    raise UserError(f"graph.json: {where}: a constant must be a number, boolean, string or null")


def _precision(data: Mapping[str, Any]) -> MatmulPrecision:
    label = "float32_matmul_precision"
    found = _read_text(data, label, "the graph") if label in data else MatmulPrecision.HIGHEST
    if found not in {known.value for known in MatmulPrecision}:
        raise UserError(f"graph.json: the graph: unknown {label} {found!r}")
    return MatmulPrecision(found)


def _tensor(name: str, data: Any) -> TensorMeta:
    where = f"tensors.{name}"
    return TensorMeta(
        _dtype(_read_text(data, "dtype", where), where),
        tuple(_expr(text, where) for text in _read_field(data, "size", list, where)),
        tuple(_expr(text, where) for text in _read_field(data, "stride", list, where)),
    )


def _dtype(label: str, where: str) -> DType:
    try:
        return DType.from_label(label)
    except KeyError as error:
        raise UserError(f"graph.json: {where}: unknown dtype {label!r}") from error


def _node(data: Any, where: str, depth: int = 0) -> Node:
    origin = _read_field(data, "origin", dict, where)
    return Node(
        name=_read_text(data, "name", where),
        target=_read_text(data, "target", where),
        args=tuple(_argument(arg, where, depth) for arg in _read_field(data, "args", list, where)),
        kwargs={
            n: _argument(a, where, depth)
            for n, a in _read_field(data, "kwargs", dict, where).items()
        },
        outputs=tuple(_read_names(data, "outputs", where)),
        origin=Origin(
            frames=tuple(
                _frame(frame, where) for frame in _read_field(origin, "frames", list, where)
            ),
            module_path=_read_text(origin, "module_path", where),
            module_type=_read_text(origin, "module_type", where),
            torch_function=_read_text(origin, "torch_function", where),
        ),
        # Bundles written before labels were kept have none.
        labels=tuple(_read_names(data, "labels", where)) if "labels" in data else (),
    )


def _subgraph(data: Any, where: str, depth: int) -> Subgraph:
    nodes = _read_field(data, "nodes", list, where)
    return Subgraph(
        name=_read_text(data, "name", where),
        inputs=tuple(_read_names(data, "inputs", where)),
        outputs=tuple(_read_names(data, "outputs", where)),
        nodes=tuple(_node(node, f"{where}.{i}", depth) for i, node in enumerate(nodes)),
    )


def _frame(data: Any, where: str) -> Frame:
    if not isinstance(data, Sequence) or [type(part) for part in data] != [str, int, str, str]:
        raise UserError(f"graph.json: {where}: a frame is [file, line, function, code]")
    return Frame(*data)


def _complex(data: Any, where: str) -> complex:
    """Read a complex number from the texts of its parts."""
    if isinstance(data, list) and [type(part) for part in data] == [str, str]:
        try:
            return complex(float(data[0]), float(data[1]))
        except ValueError:
            pass
    raise UserError(f"graph.json: {where}: a complex number must be two strings of floats")


def _argument(data: Any, where: str, depth: int = 0) -> Argument:
    if isinstance(data, list) and depth < MAX_NESTING:
        return tuple(_argument(part, where, depth + 1) for part in data)
    if isinstance(data, dict) and len(data) == 1:
        ((tag, value),) = data.items()
        if tag == "ref" and isinstance(value, str):
            return Ref(value)
        if tag == "dtype" and isinstance(value, str):
            return _dtype(value, where)
        if tag == "expr":
            return _expr(value, where)
        if tag == "graph" and depth < MAX_NESTING:
            return _subgraph(value, where, depth + 1)
        if tag == "complex":
            return _complex(value, where)
        if tag == "float" and value in ("inf", "-inf", "nan"):
            return float(value)
    if data is None or isinstance(data, bool | int | float | str):
        return data
    raise UserError(f"graph.json: {where}: an argument of unknown form")
