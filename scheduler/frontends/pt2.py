"""Read a torch.export file (``.pt2``) as a ``Graph``, without torch and without trusting the file.

The format is torch/_export/serde/schema.py, major versions 5 to 8. Weights are not read. A block
that torch wraps in ``wrap_with_set_grad_enabled``, a disabled ``wrap_with_autocast`` or a
checkpoint is inlined, because none of them changes a value in inference. Other graphs among a
node's arguments become ``Subgraph``, with values named after the node. Dimensions that
``torch.vmap`` hides are restored (``vmap.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from scheduler.errors import UserError
from scheduler.frontends.archive import default_name, read_model_json
from scheduler.frontends.arguments import (
    Expressions,
    is_graph,
    read_argument,
    read_tensor_meta,
    value_names,
)
from scheduler.frontends.fields import Json, field, optional_field, value_name
from scheduler.frontends.foreach import with_single_ops
from scheduler.frontends.guards import read_guards
from scheduler.frontends.mutations import with_written_inputs
from scheduler.frontends.offsets import first_element, rebase_offset
from scheduler.frontends.origins import read_origin
from scheduler.frontends.running_stats import with_written_statistics
from scheduler.frontends.signature import read_inputs, read_outputs
from scheduler.frontends.subclasses import with_inner_tensors
from scheduler.frontends.symbols import random_symbols, read_symbols
from scheduler.frontends.vmap import with_batch_dimensions
from scheduler.fuel import fuel_limit
from scheduler.ir.check import check_graph, free_symbols
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Argument, Expr, Graph, Node, Ref, Subgraph, TensorMeta, map_argument
from scheduler.ir.index.functions import symbol, unbacked_sizes
from scheduler.ir.serialize import with_digest
from scheduler.limits import (
    MAX_ARGUMENTS,
    MAX_GRAPH_NESTING,
    MAX_NAME,
    MAX_NODES,
    MAX_OUTPUTS,
    PARSE_FUEL,
)

SCHEMA_MAJORS = (5, 6, 7, 8)  # torch 2.4 to 2.15
_TRANSPARENT = {
    "higher_order.invoke_subgraph",
    "higher_order.strict_mode",
    "higher_order.tag_activation_checkpoint",
    "higher_order.wrap_with_set_grad_enabled",
    "higher_order.wrap_with_autocast",
}
# Ops whose results after the first one are indices and counts.
_UNIQUE_OPS = frozenset(
    f"aten.{name}.default"
    for name in (
        "_unique",
        "_unique2",
        "unique_dim",
        "unique_consecutive",
        "unique_dim_consecutive",
    )
)


def read(path: Path, name: str | None = None, model_name: str = "") -> Graph:
    """Read the graph of a torch.export file. ``name`` defaults to ``default_name``. If the file
    holds several models, ``model_name`` selects one.

    The outputs are all values that leave the graph, in the order of the model's results as torch
    flattens them; constants among them (None, a number) are ``constant_outputs``. ``output_specs``
    states which outputs are new values of inputs: those that the file's signature names, and last,
    the inputs that ops write in place. A value in neither ``tensors`` nor ``sym_ints`` is a number
    that its node makes (a float, a truth value, a value read from data), or None. A symbol without
    an example value in the file gets the least value in its range; a size that depends on data gets
    64 or the nearest allowed value.

    Raises ``UserError``, one line naming the file and the part, if the file is not in this format,
    is damaged or inconsistent, or holds something that the IR cannot represent.
    """
    document = read_model_json(path, model_name)
    try:
        nodes = _count_nodes(document["graph_module"]["graph"], 0)
    except (AttributeError, LookupError, TypeError):
        nodes = 0  # the reader reports the error
    try:
        with fuel_limit("reading", PARSE_FUEL.for_parts(nodes)):
            graph = _Reader(document).graph(
                default_name(path.stem, model_name) if name is None else name
            )
            check_graph(graph)
            graph = with_single_ops(with_batch_dimensions(with_inner_tensors(graph)))
            graph = with_written_inputs(with_written_statistics(graph))
    except UserError as error:
        raise UserError(f"{path.name}: {error}") from error
    return with_digest(graph)


def _count_nodes(graph: Any, depth: int) -> int:
    """Count the nodes of a graph and its inner graphs."""
    inner = (
        entry["arg"]["as_graph"]["graph"]
        for node in graph["nodes"]
        for entry in node["inputs"]
        if "as_graph" in entry["arg"]
    )
    nested = sum(_count_nodes(g, depth + 1) for g in inner) if depth < MAX_GRAPH_NESTING else 0
    return len(graph["nodes"]) + nested


class _Reader:
    """Converts one document to a graph."""

    def __init__(self, document: Any) -> None:
        version = field(document, "schema_version", dict, "model.json")
        major = field(version, "major", int, "schema_version")
        if major not in SCHEMA_MAJORS:
            raise UserError(
                f"torch.export schema version {major} is not supported; versions "
                f"{SCHEMA_MAJORS[0]} to {SCHEMA_MAJORS[-1]} are: export the model again with "
                "torch 2.4 to 2.15"
            )
        self._document: Json = document
        self._expressions = Expressions(plain=major < 8)
        self._tensors: dict[str, TensorMeta] = {}
        self._offsets: dict[str, int | None] = {}  # of each value in its storage
        self._sym_ints: dict[str, Expr] = {}
        self._node_count = 0

    def graph(self, name: str) -> Graph:
        module = field(self._document, "graph_module", dict, "model.json")
        data = field(module, "graph", dict, "graph_module")
        self._values(data, {})
        nodes = self._nodes(data, {}, "", 0)
        signature = field(module, "signature", dict, "graph_module")
        inputs = read_inputs(data, signature)
        # An input's size is known even if torch was told otherwise.
        metas = [self._tensors[value.name] for value in inputs if value.name in self._tensors]
        unbacked = {name for meta in metas for size in meta.size for name in unbacked_sizes(size)}
        new_names = {name: f"s_{name}" for name in unbacked}
        if unbacked:
            self._rename_sizes(new_names)
        outputs = read_outputs(data, signature, inputs)
        exprs = [e for meta in self._tensors.values() for e in (*meta.size, *meta.stride)]
        sizes = free_symbols(exprs)
        # A number that is read from data and is not a size may be negative: its node makes it.
        sym_ints = {
            name: expr
            for name, expr in self._sym_ints.items()
            if sizes.issuperset(unbacked_sizes(expr))
        }
        symbols = read_symbols(
            self._document,
            sorted(free_symbols((*exprs, *sym_ints.values()))),
            {new: old for old, new in new_names.items()},
            self._expressions.hints,
        )
        return Graph(
            name=name,
            digest="",
            symbols=symbols | random_symbols(nodes),
            inputs=inputs,
            outputs=outputs.names,
            nodes=tuple(nodes),
            tensors=self._tensors,
            sym_ints=sym_ints,
            producer=f"torch {str(self._document.get('torch_version', 'unknown'))[:60]}",
            output_specs=outputs.specs,
            constant_outputs=outputs.constants,
            guards=read_guards(self._document, self._tensors, sym_ints, symbols),
        )

    def _rename_sizes(self, names: Mapping[str, str]) -> None:
        new = {symbol(name): symbol(to) for name, to in names.items()}
        self._tensors = {
            name: replace(
                meta,
                size=tuple(expr.xreplace(new) for expr in meta.size),
                stride=tuple(expr.xreplace(new) for expr in meta.stride),
            )
            for name, meta in self._tensors.items()
        }
        self._sym_ints = {name: expr.xreplace(new) for name, expr in self._sym_ints.items()}

    def _values(self, data: Json, names: Mapping[str, str]) -> None:
        """Read the metas of a graph's values; ``names`` renames the values of an inner graph."""
        for name, meta in field(data, "tensor_values", dict, "graph").items():
            where = f"value {name!r}"
            new_name = names.get(name, name)
            self._tensors.setdefault(new_name, read_tensor_meta(meta, self._expressions, where))
            self._offsets.setdefault(new_name, first_element(meta))
        for name, size in field(data, "sym_int_values", dict, "graph").items():
            where = f"symbolic integer {name!r}"
            expr = self._expressions.read_number(size, where)
            if expr is not None:
                self._sym_ints.setdefault(names.get(name, name), expr)

    def _nodes(self, data: Json, names: Mapping[str, str], prefix: str, depth: int) -> list[Node]:
        """Read a graph's nodes. For an inner graph, ``names`` renames values and ``prefix`` is
        prepended to node names."""
        parts = field(data, "nodes", list, "graph")
        self._node_count += len(parts)
        if self._node_count > MAX_NODES:
            raise UserError(f"more than {MAX_NODES} nodes")
        if depth > MAX_GRAPH_NESTING:
            raise UserError(f"graphs are nested more than {MAX_GRAPH_NESTING} deep")
        nodes: list[Node] = []
        for index, part in enumerate(parts):
            target = field(part, "target", str, f"node number {index}").removeprefix("torch.ops.")
            if target.startswith("torch._higher_order_ops."):  # torch 2.4 writes the module path
                target = f"higher_order.{target.rpartition('.')[2]}"
            if target in _TRANSPARENT:
                nodes += self._inline(part, names, prefix, depth + 1)
                continue
            node, graphs = _read_node(part, target, index)
            name = prefix + node.name
            subgraphs = {
                position: self._subgraph(content, name, depth + 1)
                for position, content in graphs.items()
            }
            node = rebase_offset(_rename_values(node, names), self._offsets)
            args = tuple(subgraphs.get(i, argument) for i, argument in enumerate(node.args))
            node = replace(node, name=name, args=args)
            self._correct_dtypes(node)
            nodes.append(node)
        return nodes

    def _correct_dtypes(self, node: Node) -> None:
        """Correct the dtypes of indices and counts. torch exports them with the dtype of the values
        that they refer to, but computes int64; ``bincount`` returns a float if it has weights."""
        names, dtype = node.outputs[1:], DType.I64
        if node.target == "aten.bincount.default":
            names = node.outputs
            weights = node.args[1] if len(node.args) > 1 else node.kwargs.get("weights")
            if isinstance(weights, Ref):
                meta = self._tensors.get(weights.name)
                is_f32 = meta is not None and meta.dtype is DType.F32
                dtype = DType.F32 if is_f32 else DType.F64
        elif node.target not in _UNIQUE_OPS:
            return
        for name in names:
            if name in self._tensors:
                self._tensors[name] = replace(self._tensors[name], dtype=dtype)

    def _subgraph(self, content: Json, node: str, depth: int) -> Subgraph:
        """Read a graph among a node's arguments; its names are prefixed with the node's name."""
        where = f"node {node!r}"
        prefix = f"{node}_{value_name(content, where)}_"
        data = field(content, "graph", dict, where)
        names = {name: prefix + name for name in _inner_values(data)}
        self._values(data, names)
        inputs, outputs = (
            tuple(names.get(name, prefix + name) for name in _interface_names(data, label, where))
            for label in ("inputs", "outputs")
        )
        nodes = tuple(self._nodes(data, names, prefix, depth))
        return Subgraph(content["name"], inputs, outputs, nodes)

    def _inline(self, part: Json, names: Mapping[str, str], outer: str, depth: int) -> list[Node]:
        """Return an inner graph's nodes, which replace the node that wraps it."""
        inputs = field(part, "inputs", list, "wrapping node")
        outputs = _output_names(part, "wrapping node")
        where = f"node {part.get('name') or (outputs or ['wrapping'])[0]!r}"
        arguments = [field(entry, "arg", dict, where) for entry in inputs]
        graph_position = next(
            (i for i, argument in enumerate(arguments) if is_graph(argument)), None
        )
        if graph_position is None:
            raise UserError(f"{where}: inner graph is missing")
        if (
            part["target"].endswith("autocast")
            and {"as_bool": False} not in arguments[:graph_position]
        ):
            raise UserError(f"{where}: autocast inside the model is not supported: cast explicitly")
        content = field(arguments[graph_position], "as_graph", dict, where)
        prefix = f"{outer}{value_name(content, where)}_"
        inner = field(content, "graph", dict, where)
        operands: list[Argument] = []
        for data in arguments[graph_position + 1 :]:
            argument = map_argument(read_argument(data, where), partial(_rename, names))
            if isinstance(argument, tuple):
                operands += argument
            elif not isinstance(argument, str):  # text only names the graph (invoke_subgraph)
                operands.append(argument)
        inner_inputs, inner_outputs = (
            _interface_names(inner, label, where) for label in ("inputs", "outputs")
        )
        if len(operands) != len(inner_inputs) or len(inner_outputs) != len(outputs):
            raise UserError(
                f"{where}: its inner graph has another number of inputs or outputs than the node"
            )
        inner_names = {name: prefix + name for name in _inner_values(inner)}
        passed = dict(zip(inner_inputs, operands, strict=True))
        for name, argument in passed.items():
            if isinstance(argument, Ref):
                inner_names[name] = argument.name
        # A value made inside the inner graph takes the outer name, once; a value that is passed
        # through or returned again needs a node.
        aliases: list[Node] = []
        seen: set[str] = set()
        for name, output in zip(inner_outputs, outputs, strict=True):
            result = names.get(output, output)
            if name in passed or name in seen:
                value = passed[name] if name in passed else Ref(inner_names[name])
                aliases.append(
                    Node(f"{result}_returned", "aten.alias.default", (value,), {}, (result,))
                )
            else:
                inner_names[name] = result
            seen.add(name)
        self._values(inner, inner_names)
        return [*self._nodes(inner, inner_names, prefix, depth), *aliases]


def _inner_values(data: Json) -> list[str]:
    labels = ("tensor_values", "sym_int_values", "sym_float_values", "sym_bool_values")
    return [name for label in labels for name in optional_field(data, label, dict, "graph") or {}]


def _interface_names(data: Json, label: str, where: str) -> list[str]:
    """The inputs or outputs of an inner graph."""
    names = [n for part in field(data, label, list, where) for n in value_names(part, where)]
    if None in names:
        raise UserError(f"{where}: its inner graph has a constant among its {label}")
    return [name for name in names if name is not None]


def _read_node(part: Json, target: str, index: int) -> tuple[Node, dict[int, Json]]:
    """Read a node, and the graphs among its arguments by position; the node has None at those
    positions."""
    outputs = _output_names(part, f"node number {index}")
    name = part.get("name") or (outputs[0] if outputs else f"node_{index}")
    if not isinstance(name, str):
        raise UserError(f"node number {index}: its name is not a string")
    if max(len(name), len(target)) > MAX_NAME:
        raise UserError(f"node number {index}: its name has more than {MAX_NAME} characters")
    where = f"node {name!r}"
    args: list[Argument] = []
    graphs: dict[int, Json] = {}
    labels: list[str] = []
    kwargs: dict[str, Argument] = {}
    inputs = field(part, "inputs", list, where)
    if len(inputs) > MAX_ARGUMENTS:
        raise UserError(f"{where} has {len(inputs)} arguments; the limit is {MAX_ARGUMENTS}")
    for entry in inputs:
        label = field(entry, "name", str, where)
        content = field(entry, "arg", dict, where)
        if is_graph(content):
            graphs[len(args)] = content = field(content, "as_graph", dict, where)
            args.append(None)
            labels.append(label)
            continue
        value = read_argument(content, f"{where}, argument {label!r}")
        if label and (label in labels or label in kwargs):
            raise UserError(f"{where}: duplicate argument {label!r}")
        # Kind 2 is a keyword argument. Files before schema 8.3 do not state kinds; then only labels
        # decide.
        if entry.get("kind") == 2:
            kwargs[label] = value
        else:
            args.append(value)
            labels.append(label)
    node = Node(
        name=name,
        target=target,
        args=tuple(args),
        kwargs=kwargs,
        outputs=outputs,
        origin=read_origin(part.get("metadata")),
        # Higher-order ops have arguments without a name.
        labels=tuple(labels) if all(labels) else (),
    )
    return node, graphs


def _output_names(part: Json, where: str) -> tuple[str, ...]:
    outputs = field(part, "outputs", list, where)
    if len(outputs) > MAX_OUTPUTS:
        raise UserError(f"{where} has {len(outputs)} results; the limit is {MAX_OUTPUTS}")
    names = [n for o in outputs for n in value_names(o, where)]
    return tuple(
        name if name is not None else f"{part.get('name') or where}_none_{index}"
        for index, name in enumerate(names)
    )


def _rename_values(node: Node, names: Mapping[str, str]) -> Node:
    if not names:
        return node
    outputs = tuple(names.get(output, output) for output in node.outputs)
    return replace(node.map_arguments(partial(_rename, names)), outputs=outputs)


def _rename(names: Mapping[str, str], argument: Argument) -> Argument:
    return Ref(names.get(argument.name, argument.name)) if isinstance(argument, Ref) else argument
