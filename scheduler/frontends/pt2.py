"""Read a torch.export file (``.pt2``) as a ``Graph``, without torch and without trusting the file.

The format is torch/_export/serde/schema.py, major versions 5 to 8. Weights are not read. A block
that torch wraps in ``wrap_with_set_grad_enabled``, a disabled ``wrap_with_autocast`` or a
checkpoint is inlined, because none of them changes a value in inference. Other graphs among a
node's arguments become ``Subgraph``, with values named after the node. Dimensions that
``torch.vmap`` hides are restored (``vmap.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scheduler.errors import UserError
from scheduler.frontends.archive import default_name, read_model_json
from scheduler.frontends.arguments import (
    Expressions,
    is_graph,
    read_argument,
    read_int,
    read_tensor_meta,
    value_names,
)
from scheduler.frontends.fields import Json, field, optional_field, read_union, value_name
from scheduler.frontends.foreach import with_single_ops
from scheduler.frontends.guards import read_guards
from scheduler.frontends.hints import infer_hints
from scheduler.frontends.mutations import with_written_inputs
from scheduler.frontends.offsets import first_element, rebase_offset
from scheduler.frontends.origins import read_origin
from scheduler.frontends.output_specs import read_outputs
from scheduler.frontends.running_stats import with_written_statistics
from scheduler.frontends.subclasses import with_inner_tensors
from scheduler.frontends.vmap import with_batch_dimensions
from scheduler.fuel import fuel_limit
from scheduler.ir.check import check_graph, free_symbols
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import (
    Argument,
    Expr,
    Graph,
    GraphInput,
    InputKind,
    Node,
    Ref,
    Subgraph,
    SymbolInfo,
    TensorMeta,
)
from scheduler.ir.index.functions import is_unbacked, symbol, unbacked_sizes
from scheduler.ir.random import (
    BLOCKS,
    BLOCKS_END,
    DEFAULT_BLOCKS,
    PHILOX_RAND,
    SEED,
    SEED_END,
    draws_random,
    has_target,
)
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
_UNBACKED_HINT = 64  # for a size that depends on data
_TRANSPARENT = {
    "higher_order.invoke_subgraph",
    "higher_order.strict_mode",
    "higher_order.tag_activation_checkpoint",
    "higher_order.wrap_with_set_grad_enabled",
    "higher_order.wrap_with_autocast",
}
_INPUT_KINDS = {
    "parameter": (InputKind.PARAMETER, "parameter_name"),
    "buffer": (InputKind.BUFFER, "buffer_name"),
    "tensor_constant": (InputKind.CONSTANT, "tensor_constant_name"),
}


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
        nodes = _count_nodes(document)
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


def _count_nodes(document: Any) -> int:
    """Count the nodes of all graphs, inner ones included. Errors are reported later, when they are
    read."""
    try:
        return _count(document["graph_module"]["graph"], 0)
    except (AttributeError, LookupError, TypeError):
        return 0


def _count(graph: Any, depth: int) -> int:
    inner = (
        entry["arg"]["as_graph"]["graph"]
        for node in graph["nodes"]
        for entry in node["inputs"]
        if "as_graph" in entry["arg"]
    )
    deeper = sum(_count(one, depth + 1) for one in inner) if depth < MAX_GRAPH_NESTING else 0
    return len(graph["nodes"]) + deeper


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


class _Reader:
    """Converts one document to a graph."""

    def __init__(self, document: Any) -> None:
        self._document: Json = _check_schema(document)
        self._expressions = Expressions(plain=document["schema_version"]["major"] < 8)
        self._tensors: dict[str, TensorMeta] = {}
        self._begins: dict[str, int | None] = {}  # offset of each value in its storage
        self._sym_ints: dict[str, Expr] = {}
        self._renamed: dict[str, str] = {}  # renamed input sizes: name in the file
        self._count = 0  # nodes read so far

    def graph(self, name: str) -> Graph:
        module = field(self._document, "graph_module", dict, "model.json")
        data = field(module, "graph", dict, "graph_module")
        self._values(data, {})
        nodes = self._nodes(data, {}, "", 0)
        inputs = tuple(self._inputs(field(module, "signature", dict, "graph_module")))
        self._check_inputs(data, inputs)
        self._name_sizes_of_inputs(inputs)
        outputs = read_outputs(data, module, inputs)
        symbols = self._symbols()
        return Graph(
            name=name,
            digest="",
            symbols=symbols | _random_symbols(nodes),
            inputs=inputs,
            outputs=outputs.names,
            nodes=tuple(nodes),
            tensors=self._tensors,
            sym_ints=self._sym_ints,
            producer=f"torch {str(self._document.get('torch_version', 'unknown'))[:60]}",
            output_specs=outputs.specs,
            constant_outputs=outputs.constants,
            guards=read_guards(self._document, self._tensors, self._sym_ints, symbols),
        )

    def _values(self, data: Json, names: Mapping[str, str]) -> None:
        """Read the metas of a graph's values; ``names`` renames the values of an inner graph."""
        for name, meta in field(data, "tensor_values", dict, "graph").items():
            where = f"value {name!r}"
            known = names.get(name, name)
            self._tensors.setdefault(known, read_tensor_meta(meta, self._expressions, where))
            self._begins.setdefault(known, first_element(meta))
        for name, size in field(data, "sym_int_values", dict, "graph").items():
            where = f"symbolic integer {name!r}"
            expr = self._expressions.read_number(size, where)
            if expr is not None:
                self._sym_ints.setdefault(names.get(name, name), expr)

    def _nodes(self, data: Json, names: Mapping[str, str], prefix: str, depth: int) -> list[Node]:
        """Read a graph's nodes. For an inner graph, ``names`` renames values and ``prefix`` is
        prepended to node names."""
        parts = field(data, "nodes", list, "graph")
        self._count += len(parts)
        if self._count > MAX_NODES:
            raise UserError(f"more than {MAX_NODES} nodes")
        if depth > MAX_GRAPH_NESTING:
            raise UserError(f"graphs are nested more than {MAX_GRAPH_NESTING} deep")
        nodes: list[Node] = []
        for index, part in enumerate(parts):
            target = _target(field(part, "target", str, f"node number {index}"))
            if target in _TRANSPARENT:
                nodes += self._inline(part, names, prefix, depth + 1)
            else:
                nodes.append(self._node(part, target, index, names, prefix, depth))
        return nodes

    def _node(
        self,
        part: Json,
        target: str,
        index: int,
        names: Mapping[str, str],
        prefix: str,
        depth: int,
    ) -> Node:
        """Read a node. The names in its inner graphs are prefixed with the node's name."""
        node, graphs = _read_node(part, target, index)
        name = prefix + node.name
        inner = {at: self._subgraph(content, name, depth + 1) for at, content in graphs.items()}
        renamed = rebase_offset(_renamed(node, names), self._begins)
        args = tuple(inner.get(at, argument) for at, argument in enumerate(renamed.args))
        if target in _UNIQUE_OPS:
            self._retype(renamed.outputs[1:], DType.I64)
        if target == "aten.bincount.default":
            self._retype(renamed.outputs, self._bincount_dtype(renamed))
        return replace(renamed, name=name, args=args)

    def _retype(self, names: Iterable[str], dtype: DType) -> None:
        """Set the dtype of values, overriding the file: torch exports indices and counts with the
        dtype of the values they refer to, but computes them as int64."""
        for name in names:
            if name in self._tensors:
                self._tensors[name] = replace(self._tensors[name], dtype=dtype)

    def _bincount_dtype(self, node: Node) -> DType:
        """The result dtype of ``bincount``: int64 without weights, float32 for float32 weights,
        otherwise float64."""
        weights = node.args[1] if len(node.args) > 1 else node.kwargs.get("weights")
        if not isinstance(weights, Ref):
            return DType.I64
        meta = self._tensors.get(weights.name)
        return DType.F32 if meta is not None and meta.dtype is DType.F32 else DType.F64

    def _subgraph(self, content: Json, node: str, depth: int) -> Subgraph:
        where = f"node {node!r}"
        prefix = f"{node}_{value_name(content, where)}_"
        data = field(content, "graph", dict, where)
        names = {name: prefix + name for name in _inner_values(data)}
        self._values(data, names)
        inputs, outputs = (
            tuple(names.get(name, prefix + name) for name in _names_of(data, label, where))
            for label in ("inputs", "outputs")
        )
        return Subgraph(
            content["name"],
            inputs,
            outputs,
            tuple(self._nodes(data, names, prefix, depth)),
        )

    def _inline(self, part: Json, names: Mapping[str, str], outer: str, depth: int) -> list[Node]:
        """Return an inner graph's nodes, which replace the node that wraps it."""
        inputs = field(part, "inputs", list, "wrapping node")
        outputs = _output_names(part, "wrapping node")
        where = f"node {part.get('name') or (outputs or ['wrapping'])[0]!r}"
        arguments = [field(entry, "arg", dict, where) for entry in inputs]
        at = next((i for i, argument in enumerate(arguments) if is_graph(argument)), None)
        if at is None:
            raise UserError(f"{where}: inner graph is missing")
        if part["target"].endswith("autocast") and {"as_bool": False} not in arguments[:at]:
            raise UserError(f"{where}: autocast inside the model is not supported: cast explicitly")
        content = field(arguments[at], "as_graph", dict, where)
        prefix = f"{outer}{value_name(content, where)}_"
        inner = field(content, "graph", dict, where)
        given = [
            _rename(value, names)
            for argument in arguments[at + 1 :]
            for value in _flatten(read_argument(argument, where))
        ]
        inner_inputs, made = (_names_of(inner, label, where) for label in ("inputs", "outputs"))
        if len(given) != len(inner_inputs) or len(made) != len(outputs):
            raise UserError(
                f"{where}: its inner graph has another number of inputs or outputs than the node"
            )
        inside = {name: prefix + name for name in _inner_values(inner)}
        passed = dict(zip(inner_inputs, given, strict=True))
        for name, argument in passed.items():
            if isinstance(argument, Ref):
                inside[name] = argument.name
        # A value made inside the inner graph takes the outer name, once.
        returned: list[Node] = []
        seen: set[str] = set()
        for name, output in zip(made, outputs, strict=True):
            if name in passed or name in seen:
                value = passed[name] if name in passed else Ref(inside[name])
                returned.append(_alias(names.get(output, output), value))
            else:
                inside[name] = names.get(output, output)
            seen.add(name)
        self._values(inner, inside)
        return [*self._nodes(inner, inside, prefix, depth), *returned]

    def _inputs(self, signature: Json) -> Iterable[GraphInput]:
        for index, spec in enumerate(field(signature, "input_specs", list, "signature")):
            where = f"signature input {index}"
            kind, content = read_union(spec, where)
            if kind == "user_input":
                for name in value_names(field(content, "arg", dict, where), where):
                    if name is not None:
                        yield GraphInput(name, InputKind.USER)
            elif kind in _INPUT_KINDS:
                role, label = _INPUT_KINDS[kind]
                name = value_name(field(content, "arg", dict, where), where)
                yield GraphInput(name, role, value_name(content, where, label))
            elif kind != "constant_input":
                raise UserError(f"{where}: inputs of kind {kind!r} are not supported")

    def _check_inputs(self, data: Json, inputs: tuple[GraphInput, ...]) -> None:
        """Raise ``UserError`` if the signature and the graph have different inputs."""
        signature_names = {
            name
            for part in field(data, "inputs", list, "graph")
            for name in value_names(part, "graph inputs")
            if name is not None
        }
        for name in sorted(signature_names ^ {value.name for value in inputs}):
            raise UserError(f"input {name!r} is not in both the graph and its signature")

    def _name_sizes_of_inputs(self, inputs: Iterable[GraphInput]) -> None:
        """Rename unbacked sizes of inputs: an input's size is known even if torch was told
        otherwise."""
        metas = [self._tensors[one.name] for one in inputs if one.name in self._tensors]
        names = {name for meta in metas for size in meta.size for name in unbacked_sizes(size)}
        if not names:
            return
        new = {symbol(name): symbol(f"s_{name}") for name in names}
        self._renamed = {to.name: name.name for name, to in new.items()}
        self._tensors = {
            name: replace(
                meta,
                size=tuple(expr.xreplace(new) for expr in meta.size),
                stride=tuple(expr.xreplace(new) for expr in meta.stride),
            )
            for name, meta in self._tensors.items()
        }
        self._sym_ints = {name: expr.xreplace(new) for name, expr in self._sym_ints.items()}

    def _symbols(self) -> dict[str, SymbolInfo]:
        ranges = optional_field(self._document, "range_constraints", dict, "model.json") or {}
        exprs = [e for meta in self._tensors.values() for e in (*meta.size, *meta.stride)]
        sizes = free_symbols(exprs)
        self._sym_ints = {
            name: expr for name, expr in self._sym_ints.items() if not _is_read(expr, sizes)
        }
        used = sorted(free_symbols((*exprs, *self._sym_ints.values())))
        hints = infer_hints(self._expressions.hints)
        found = {}
        for name in used:
            own = self._renamed.get(name, name)
            found[name] = _symbol(name, ranges.get(own, {}), hints.get(own))
        return found


def _random_symbols(nodes: Sequence[Node]) -> dict[str, SymbolInfo]:
    """The symbols of a graph that draws random numbers: the seed, and torch's blocks of threads."""
    found: dict[str, SymbolInfo] = {}
    if any(draws_random(node) for node in nodes):
        found[SEED] = SymbolInfo(SEED, hint=0, minimum=0, maximum=SEED_END - 1)
    if any(has_target(node, PHILOX_RAND) for node in nodes):
        found[BLOCKS] = SymbolInfo(BLOCKS, DEFAULT_BLOCKS, minimum=1, maximum=BLOCKS_END - 1)
    return found


def _is_read(expr: Expr, sizes: set[str]) -> bool:
    """Whether a number is read from data and is not a size. Its node makes it, and it may be
    negative."""
    return any(name not in sizes for name in unbacked_sizes(expr))


def _symbol(name: str, bounds: Any, hint: int | None) -> SymbolInfo:
    where = f"range of symbol {name!r}"
    if not isinstance(bounds, dict):
        raise UserError(f"{where}: not an object")
    least, most = bounds.get("min_val"), bounds.get("max_val")
    minimum = 0 if least is None else max(0, read_int(least, where))
    maximum = None if most is None else read_int(most, where)
    if is_unbacked(name) and hint is None:
        # Well below the maximum: several such sizes may have to fit into one tensor.
        hint = _UNBACKED_HINT if maximum is None else min(_UNBACKED_HINT, -(-maximum // 4))
        return SymbolInfo(name, max(minimum, hint), minimum, maximum)
    return SymbolInfo(name, minimum if hint is None else hint, minimum, maximum)


def _check_schema(document: Any) -> Json:
    version = field(document, "schema_version", dict, "model.json")
    major = field(version, "major", int, "schema_version")
    if major not in SCHEMA_MAJORS:
        raise UserError(
            f"torch.export schema version {major} is not supported; versions "
            f"{SCHEMA_MAJORS[0]} to {SCHEMA_MAJORS[-1]} are: export the model again with "
            "torch 2.4 to 2.15"
        )
    checked: Json = document
    return checked


def _inner_values(data: Json) -> list[str]:
    labels = ("tensor_values", "sym_int_values", "sym_float_values", "sym_bool_values")
    return [name for label in labels for name in optional_field(data, label, dict, "graph") or {}]


def _names_of(data: Json, label: str, where: str) -> list[str]:
    """The inputs or outputs of an inner graph."""
    names = [n for part in field(data, label, list, where) for n in value_names(part, where)]
    if None in names:
        raise UserError(f"{where}: its inner graph has a constant among its {label}")
    return [name for name in names if name is not None]


def _flatten(argument: Argument) -> tuple[Argument, ...]:
    """The arguments of a wrapped graph. Text (of ``invoke_subgraph``) only names the graph and is
    dropped."""
    if isinstance(argument, tuple):
        return argument
    return () if isinstance(argument, str) else (argument,)


def _alias(output: str, value: Argument) -> Node:
    """A node for a result that an inner graph passes through or returns twice."""
    return Node(f"{output}_returned", "aten.alias.default", (value,), {}, (output,))


def _target(name: str) -> str:
    """The op name of a target in the form that nodes use: torch 2.4 writes the module paths of
    higher-order ops."""
    if name.startswith("torch._higher_order_ops."):
        return f"higher_order.{name.rpartition('.')[2]}"
    return name.removeprefix("torch.ops.")


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


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    if not names:
        return node
    return replace(
        node,
        args=tuple(_rename(argument, names) for argument in node.args),
        kwargs={label: _rename(argument, names) for label, argument in node.kwargs.items()},
        outputs=tuple(names.get(output, output) for output in node.outputs),
    )


def _rename(argument: Argument, names: Mapping[str, str]) -> Argument:
    if isinstance(argument, Ref):
        return Ref(names.get(argument.name, argument.name))
    if isinstance(argument, tuple):
        return tuple(_rename(part, names) for part in argument)
    return argument
