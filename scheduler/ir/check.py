"""Checks a graph's consistency: names, order of nodes, metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from scheduler.errors import UserError
from scheduler.ir.bindings import hint_bindings
from scheduler.ir.graph import (
    Argument,
    ConstantOutput,
    Expr,
    Graph,
    Node,
    Ref,
    Subgraph,
    TensorMeta,
)
from scheduler.ir.index.functions import degrees, evaluate
from scheduler.ir.index.parser import check_name, quote_text
from scheduler.limits import (
    INT64_END,
    MAX_GRAPH_NESTING,
    MAX_NODES,
    MAX_RANK,
    MAX_SIZE_DEGREE,
    MAX_SYMBOLS,
    MAX_VALUES,
)


def check_graph(graph: Graph) -> None:
    """Raise ``UserError`` naming the node, value or symbol if the graph is inconsistent.

    Checked: every value is defined once and before its use; every input and output is known; every
    tensor has as many strides as sizes, none negative, and fits into a 64-bit address space;
    symbols are known and their hints within their bounds; and the graph is within the limits.
    Time is linear in the graph's size.
    """
    _check_counts(graph)
    _check_symbols(graph)
    sizes = _Sizes(graph)
    for name, meta in graph.tensors.items():
        _check_tensor(f"value {name!r}", meta, sizes)
    for name, expr in graph.sym_ints.items():
        sizes.value(f"symbolic integer {name!r}", expr)
    defined = _check_inputs(graph)
    _check_nodes(graph.nodes, defined, _Names(graph, set(), set(defined)))
    for name in graph.outputs:
        if name not in defined:
            raise UserError(f"no node computes the output {name!r} of the graph")
    _check_outputs(graph, sizes)
    check_constants(graph.constant_outputs, len(graph.returned_outputs))


def references(argument: Argument) -> Iterator[str]:
    """Yield the names of the values that an argument refers to, in order."""
    if isinstance(argument, Ref):
        yield argument.name
    elif isinstance(argument, tuple):
        for part in argument:
            yield from references(part)


def node_references(node: Node) -> Iterator[str]:
    """Yield the names of the values that a node reads, in order, with repetitions."""
    for argument in (*node.args, *node.kwargs.values()):
        yield from references(argument)


def subgraphs(node: Node) -> Iterator[Subgraph]:
    """Yield the graphs among a node's arguments, in order, without nested graphs."""
    for argument in (*node.args, *node.kwargs.values()):
        for part in argument if isinstance(argument, tuple) else (argument,):
            if isinstance(part, Subgraph):
                yield part


def last_uses(graph: Graph) -> dict[str, int]:
    """Return the position of each value's last reader; the number of nodes for outputs."""
    last = {
        name: position
        for position, node in enumerate(graph.nodes)
        for name in node_references(node)
    }
    return last | dict.fromkeys(graph.outputs, len(graph.nodes))


def free_symbols(exprs: Iterable[Expr]) -> set[str]:
    """Return the names of the symbols in expressions; duplicates are visited once."""
    return {str(s) for expr in set(exprs) if not expr.is_Integer for s in expr.free_symbols}


def _check_counts(graph: Graph) -> None:
    values = len(graph.tensors) + len(graph.sym_ints)
    counts = (
        ("nodes", _count(graph.nodes), MAX_NODES),
        ("values", values, MAX_VALUES),
        ("symbols", len(graph.symbols), MAX_SYMBOLS),
    )
    for what, count, limit in counts:
        if count > limit:
            raise UserError(f"the graph has {count} {what}; the limit is {limit}")


def _count(nodes: Iterable[Node], depth: int = 0) -> int:
    """Return the number of nodes, including those of inner graphs."""
    if depth > MAX_GRAPH_NESTING:
        raise UserError(f"graphs are nested more than {MAX_GRAPH_NESTING} deep")
    return sum(1 + sum(_count(g.nodes, depth + 1) for g in subgraphs(node)) for node in nodes)


def _check_symbols(graph: Graph) -> None:
    for name, info in graph.symbols.items():
        check_name(name)
        top = info.hint if info.maximum is None else info.maximum
        if not 0 <= info.minimum <= info.hint <= top:
            raise UserError(
                f"symbol {name!r}: example value {info.hint} is outside its range "
                f"{info.minimum} to {info.maximum}"
            )


class _Sizes:
    """The values of a graph's expressions at the example's sizes, cached."""

    def __init__(self, graph: Graph) -> None:
        self._symbols = graph.symbols
        self._hints = hint_bindings(graph.symbols)
        self._values: dict[Expr, int] = {}

    def value(self, where: str, expr: Expr) -> int:
        """Evaluate an expression. Raises ``UserError`` for an unknown symbol or a division by
        zero."""
        if expr.is_Integer:
            return int(expr)
        if expr not in self._values:
            for symbol in sorted(free_symbols((expr,))):
                if symbol not in self._symbols:
                    raise UserError(f"{where} depends on the unknown symbol {symbol!r}")
            try:
                self._values[expr] = evaluate(expr, self._hints)
            except UserError as error:
                raise UserError(f"{where}: {error}") from error
        return self._values[expr]

    def values(self, where: str, exprs: Iterable[Expr]) -> list[int]:
        """Return ``value`` of each expression."""
        return [self.value(where, expr) for expr in exprs]


def _check_tensor(where: str, meta: TensorMeta, sizes: _Sizes) -> None:
    """Check rank, signs, elements and bytes, including gaps that strides leave."""
    if len(meta.size) != len(meta.stride):
        raise UserError(f"{where} has {len(meta.size)} sizes but {len(meta.stride)} strides")
    if len(meta.size) > MAX_RANK:
        raise UserError(f"{where} has {len(meta.size)} dimensions; the limit is {MAX_RANK}")
    for symbol, degree in sum(map(degrees, meta.size), Counter()).items():
        if degree > MAX_SIZE_DEGREE:
            raise UserError(
                f"{where}: its number of elements has {symbol} to the power of {degree}; "
                f"the limit is {MAX_SIZE_DEGREE}"
            )
    size = sizes.values(where, meta.size)
    stride = sizes.values(where, meta.stride)
    for value, expr in zip((*size, *stride), (*meta.size, *meta.stride), strict=True):
        if value < 0:
            note = "" if expr.is_Integer else f", which is {value} at the example's sizes"
            raise UserError(f"{where} has a negative size or stride: {quote_text(str(expr))}{note}")
    reach = 1 + sum((extent - 1) * step for extent, step in zip(size, stride, strict=True))
    if 0 not in size and max(reach, prod(size)) * meta.dtype.itemsize >= INT64_END:
        raise UserError(f"{where} is larger than any memory: its sizes are {size}")


def _check_inputs(graph: Graph) -> set[str]:
    defined: set[str] = set()
    for value in graph.inputs:
        if value.name in defined:
            raise UserError(f"duplicate input {value.name!r} in the graph")
        if value.name not in graph.tensors and value.name not in graph.sym_ints:
            raise UserError(f"input {value.name!r} has no tensor meta")
        defined.add(value.name)
    return defined


def _check_outputs(graph: Graph, sizes: _Sizes) -> None:
    """Check that each mutation has its input's shape and type, and is the input's only one."""
    specs, inputs = graph.output_specs, {value.name for value in graph.inputs}
    if specs and len(specs) != len(graph.outputs):
        raise UserError(f"the graph has {len(graph.outputs)} outputs, but describes {len(specs)}")
    for name, spec in zip(graph.outputs, specs, strict=False):
        if spec.input and spec.input not in inputs:
            raise UserError(f"output {name!r} refers to {spec.input!r}, which is not an input")
    written: set[str] = set()
    for mutation in graph.mutations:
        if mutation.input in written:
            raise UserError(f"two outputs are written back to the input {mutation.input!r}")
        written.add(mutation.input)
        source, target = (graph.tensors.get(name) for name in (mutation.value, mutation.input))
        if source is None or target is None:
            raise UserError(f"output {mutation.value!r} is written back, but is not a tensor")
        same_type = source.dtype is target.dtype
        target_size = sizes.values(mutation.input, target.size)
        if not same_type or sizes.values(mutation.value, source.size) != target_size:
            raise UserError(
                f"output {mutation.value!r} is written back to the input {mutation.input!r}, "
                "which has another shape or type"
            )


def check_constants(constants: Sequence[ConstantOutput], returned: int) -> None:
    """Raise ``UserError`` unless each has a distinct position among all returned values;
    ``returned`` is the number of values that are not constants."""
    total, seen = returned + len(constants), set[int]()
    for position in (constant.place for constant in constants):
        if position in seen:
            raise UserError(f"two constants are output {position} of the model")
        if not 0 <= position < total:
            raise UserError(f"a constant is output {position} of a model that returns {total}")
        seen.add(position)


def _check_labels(node: Node) -> None:
    if node.labels and len(node.labels) != len(node.args):
        raise UserError(
            f"node {node.name!r} names {len(node.labels)} of its {len(node.args)} arguments"
        )


def _undefined_message(node: Node, name: str, producers: Mapping[str, str]) -> str:
    label = next(label for label, argument in node.arguments() if name in references(argument))
    use = f"node {node.name!r} uses {name!r}"
    if name in producers:
        return (
            f"{use} before node {producers[name]!r} computes it, as its argument {label!r}: a "
            "cycle, or nodes out of order"
        )
    return f"{use} as its argument {label!r}, but no node computes it"


@dataclass(frozen=True)
class _Names:
    """The names used in the graph and its inner graphs, which must be unique."""

    graph: Graph
    nodes: set[str]
    values: set[str]


def _check_nodes(nodes: tuple[Node, ...], defined: set[str], names: _Names) -> None:
    """Check nodes; ``made`` are the values that they may use, to which results are added."""
    makers = {output: node.name for node in nodes for output in node.outputs}
    for node in nodes:
        if node.name in names.nodes:
            raise UserError(f"two nodes have the name {node.name!r}")
        names.nodes.add(node.name)
        _check_labels(node)
        for name in node_references(node):
            if name not in defined:
                raise UserError(_undefined_message(node, name, makers))
        for inner in subgraphs(node):
            _check_subgraph(f"node {node.name!r}, graph {inner.name!r}", inner, names)
        for output in node.outputs:
            if output in names.values:
                raise UserError(f"node {node.name!r} defines {output!r}, which already exists")
            defined.add(output)
            names.values.add(output)


def _check_subgraph(where: str, inner: Subgraph, names: _Names) -> None:
    defined: set[str] = set()
    for name in inner.inputs:
        if name in names.values:
            raise UserError(f"{where}: its input {name!r} already exists")
        if name not in names.graph.tensors and name not in names.graph.sym_ints:
            raise UserError(f"{where}: its input {name!r} has no tensor meta")
        defined.add(name)
        names.values.add(name)
    _check_nodes(inner.nodes, defined, names)
    for name in inner.outputs:
        if name not in defined:
            raise UserError(f"{where}: none of its nodes computes its output {name!r}")
