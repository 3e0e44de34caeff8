"""Lower a graph to operations over buffers, node by node."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import sympy

from scheduler.errors import UserError
from scheduler.fuel import fuel_limit
from scheduler.ir.check import last_uses, node_references
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Argument, Expr, Graph, InputKind, Node, Ref, Subgraph
from scheduler.ir.index.functions import is_unbacked, unbacked_sizes
from scheduler.ir.index.trees import simplify_tree
from scheduler.ir.operations import (
    Buffer,
    BufferKind,
    Extern,
    Lowered,
    OperandView,
    buffer_size_symbol,
    size_buffer_name,
)
from scheduler.ir.ops import NoKernel, UnsupportedOpError
from scheduler.limits import LOWERING_FUEL, MAX_VIEWS
from scheduler.lowering import layout
from scheduler.lowering.alias_analysis import AliasTracker, knows_strides, written_memory
from scheduler.lowering.attention_pattern import with_attention
from scheduler.lowering.builder import Builder
from scheduler.lowering.channels_last_regions import preferred_strides
from scheduler.lowering.cleanup import finish
from scheduler.lowering.errors import DATA_DEPENDENT_SIZE, Unsupported, error_context, node_location
from scheduler.lowering.functionalize import propagate_write
from scheduler.lowering.ops import UNKNOWN, resolve_op
from scheduler.lowering.rule_arguments import accepted_arguments, round_operands
from scheduler.lowering.tensor import Scalar, Tensor
from scheduler.lowering.verifier import verify

LoweredValue: TypeAlias = "Tensor | Expr"

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_BUFFER_KINDS = {
    InputKind.USER: BufferKind.INPUT,
    InputKind.PARAMETER: BufferKind.PARAMETER,
    InputKind.BUFFER: BufferKind.PARAMETER,
    InputKind.CONSTANT: BufferKind.CONSTANT,
}


def lower(graph: Graph) -> Lowered:
    """Lower a graph to operations in executable order.

    A node that no rule covers becomes an ``Extern`` that states the reason. Raises ``UserError``
    naming the node and its origin in the model if the graph contradicts itself, and ``LimitError``
    if lowering takes more steps than a graph of that many nodes may.
    """
    with fuel_limit("lowering", LOWERING_FUEL.for_parts(len(graph.nodes))):
        return _Lowering(graph).run()


class _Lowering:
    """Lowers a graph, or a node's inner graph with the ``builder`` of the outer one."""

    def __init__(self, graph: Graph, builder: Builder | None = None) -> None:
        self._graph = graph
        self._inner = builder is not None
        self._b = builder or Builder(graph)
        if builder is None:
            self._b.reordered = preferred_strides(graph)
        self._values: dict[str, LoweredValue] = {}
        self._missing: dict[str, str] = {}  # numbers without a tree, and the reason
        self._depths: dict[str, int] = {}  # views between memory and a value
        last_use = last_uses(graph)
        self._memory = AliasTracker(graph, last_use)
        self._b.memory_of = self._memory.root
        self._b.knows_strides = partial(knows_strides, self._graph)
        # A view that repeats or gathers elements cannot be written in place.
        self._in_own_memory = written_memory(graph, last_use)

    def run(self) -> Lowered:
        names = _buffer_names([graph_input.name for graph_input in self._graph.inputs])
        for graph_input, name in zip(self._graph.inputs, names, strict=True):
            meta = self._graph.tensors.get(graph_input.name)
            if meta is None:  # a symbolic integer
                continue
            source = graph_input.source_name or graph_input.name
            kind = _BUFFER_KINDS[graph_input.kind]
            self._b.buffers[name] = Buffer(name, meta.dtype, meta.size, meta.stride, kind, source)
            self._values[graph_input.name] = self._b.tensor(self._b.buffers[name])
        self._b.inline_subgraph = self._lower_subgraph
        self._lower_nodes()
        self._b.node = None
        self._check_sizes()
        with error_context("the graph's outputs"):
            result = finish(self._b, [self._value(name) for name in self._graph.outputs])
        result = with_attention(result)
        verify(result)
        return result

    def _check_sizes(self) -> None:
        """Check that each unbacked size outside inner graphs is made by a node. Inner graphs add no
        other sizes."""
        values = {graph_input.name for graph_input in self._graph.inputs}
        values.update(name for node in self._graph.nodes for name in node.outputs)
        tensors, numbers = self._graph.tensors, self._graph.sym_ints
        exprs = [size for name in values & tensors.keys() for size in tensors[name].size]
        exprs += [numbers[name] for name in values & numbers.keys()]
        for name in sorted({name for expr in exprs for name in unbacked_sizes(expr)}):
            if size_buffer_name(name) not in self._b.buffers:
                raise UserError(f"the size {name} depends on data, but no node computes it")

    def _lower_nodes(self) -> None:
        for position, node in enumerate(self._graph.nodes):
            with error_context(node_location(node)):
                self._lower_node(node, position)

    def _lower_subgraph(self, subgraph: Subgraph, inputs: Sequence[Any]) -> tuple[Tensor, ...]:
        """Lower an inner graph of the current node with these inputs and return its outputs."""
        b = self._b
        node, sources, outer = b.node, b.sources, b.outer
        memory_of, knows_strides = b.memory_of, b.knows_strides
        b.outer = outer or node
        try:
            result = _Lowering(self._graph.subgraph(subgraph), b).with_inputs(inputs)
        finally:
            b.outer = outer
            b.memory_of, b.knows_strides = memory_of, knows_strides
        assert node is not None
        b.begin(node, sources)
        return result

    def with_inputs(self, inputs: Sequence[Any]) -> tuple[Tensor, ...]:
        """The outputs of an inner graph whose inputs are these values."""
        for graph_input, value in zip(self._graph.inputs, inputs, strict=True):
            self._values[graph_input.name] = value
        self._lower_nodes()
        result = tuple(self._value(name) for name in self._graph.outputs)
        if not all(isinstance(graph_input, Tensor) for graph_input in result):
            raise Unsupported("its inner graph returns a number")
        return result

    def _value(self, name: str) -> LoweredValue:
        if name in self._graph.sym_ints:
            return self._graph.sym_ints[name]
        value = self._values.get(name)
        if value is None and name in self._missing:
            raise UserError(f"the number {name!r} is not available: {self._missing[name]}")
        if value is None:
            raise UserError(f"value {name!r} is used before it is computed")
        return value

    def _lower_number(self, node: Node) -> None:
        """Lower a number to the tree that its users read. The expression of a symbolic integer is
        in the graph. If there is no tree, the reason is reported to the users of the number."""
        (name, *_) = node.outputs
        if name in self._graph.sym_ints:
            if self._new_sizes(node):
                self._lower_to_extern(node, "its result is a size, which the host needs")
            return
        try:
            resolved = resolve_op(node.target)
            arguments = {n: self._argument(value) for n, value in resolved.bind(node).items()}
            self._b.begin(node, _sources(arguments))
            result = self._apply(node, arguments)
        except UnsupportedOpError as error:
            self._missing[name] = error.reason
        except Unsupported as error:
            self._missing[name] = str(error)
        else:
            if len(result) == len(node.outputs) == 1 and isinstance(result[0], Scalar):
                self._values[name] = result[0]

    def _lower_node(self, node: Node, position: int) -> None:
        if node.outputs and not any(name in self._graph.tensors for name in node.outputs):
            self._lower_number(node)
            return
        arguments: Mapping[str, Any] = {}
        try:
            if self._new_sizes(node):
                raise Unsupported(DATA_DEPENDENT_SIZE.reason)
            arguments = {
                name: self._argument(value)
                for name, value in resolve_op(node.target).bind(node).items()
            }
            self._b.begin(node, _sources(arguments))
            result = self._apply(node, arguments)
        except UnsupportedOpError as error:
            self._lower_to_extern(node, error.reason)
        except Unsupported as error:
            self._lower_to_extern(node, str(error))
        else:
            self._check_count(node, result)
            depth = 1 + max((self._depths.get(n, 0) for n in node_references(node)), default=0)
            for name, value in zip(node.outputs, result, strict=True):
                if value is None:  # a result that the op does not make in this form
                    continue
                checked = self._with_node(node, name, value)
                needs_memory = name in self._in_own_memory or depth > MAX_VIEWS
                self._values[name] = self._b.realize(checked) if needs_memory else checked
                if not self._values[name].buffer:
                    self._depths[name] = depth
        self._propagate_mutation(node, position)

    def _argument(self, argument: Argument) -> Any:
        if isinstance(argument, Ref):
            return self._value(argument.name)
        if isinstance(argument, tuple):
            return tuple(self._argument(part) for part in argument)
        if isinstance(argument, sympy.Integer):
            return int(argument)
        return argument

    def _apply(self, node: Node, arguments: Mapping[str, Any]) -> tuple[Tensor | None, ...]:
        resolved = resolve_op(node.target)
        rule = resolved.op.lowering
        if isinstance(rule, NoKernel):
            raise Unsupported(rule.reason)
        meta = self._graph.tensors.get(node.outputs[0]) if node.outputs else None
        result_type = None if meta is None else meta.dtype
        arguments = round_operands(resolved.op.name, arguments, result_type)
        result = rule(
            self._b, **accepted_arguments(rule, resolved.params, arguments, node_location(node))
        )
        return result if isinstance(result, tuple) else (result,)

    def _check_count(self, node: Node, results: tuple[Tensor | None, ...]) -> None:
        """Raise ``UserError`` if a node has another number of results than its op. None stands for
        a result that the op does not make in this form; the graph then has no shape for it."""
        if len(results) != len(node.outputs) or not all(
            isinstance(result, Tensor) or (result is None and name not in self._graph.tensors)
            for result, name in zip(results, node.outputs, strict=False)
        ):
            raise UserError(
                f"{node_location(node)}: the graph lists {len(node.outputs)} results, but "
                f"the op has {len(results)}"
            )
        for result, name in zip(results, node.outputs, strict=True):
            if result is not None and name not in self._graph.tensors:
                raise UserError(f"{node_location(node)}: its result {name!r} has no shape")

    def _with_node(self, node: Node, name: str, tensor: Tensor) -> Tensor:
        """The value with its node recorded. Raises ``UserError`` if its shape or type differs from
        the graph's."""
        meta = self._graph.tensors[name]
        self._b.check_shape(name, tensor.size)
        if tensor.dtype is not meta.dtype:
            raise UserError(
                f"{node_location(node)}: {name} has type {meta.dtype.label} in the graph, "
                f"but its arguments give {tensor.dtype.label}"
            )
        is_in_memory = tensor.buffer and tensor.nodes == ()
        buffer_kind = tensor.buffer in self._b.buffers and self._b.buffers[tensor.buffer].kind
        nodes = () if is_in_memory and buffer_kind is BufferKind.INTERMEDIATE else self._b.nodes
        return Tensor(meta.size, tensor.dtype, tensor.at, tensor.buffer, nodes)

    def _propagate_mutation(self, node: Node, position: int) -> None:
        """Track which values share memory. After an in-place op, propagate the write to all of
        them.

        Raises ``UserError`` if a value that shares the memory is used later but cannot be updated.
        """
        written = self._memory.record(node)
        if written is None:
            return
        before, result = self._values[written], self._values[node.outputs[0]]
        assert isinstance(before, Tensor) and isinstance(result, Tensor)
        self._b.writes.append((node.name, before, result))
        aliases = self._memory.live_aliases(node, written, position)
        self._values[written] = result
        if not aliases:
            return
        tensors = {name: self._values[name] for name in aliases} | {written: before}
        sharing = {name: t for name, t in tensors.items() if isinstance(t, Tensor)}
        try:
            changed = propagate_write(self._b, sharing, before, result)
        except Unsupported as error:
            raise UserError(
                f"{node_location(node)}: writes to {written!r} in place while {aliases[0]!r}, "
                f"which shares its memory, is used later: {error}; export the model "
                "with run_decompositions()"
            ) from None
        self._values.update(changed)
        self._values[node.outputs[0]] = changed[written]

    def _lower_to_extern(self, node: Node, reason: str) -> None:
        """Lower the node to a call of the reference: its inputs are views, its results are in
        memory."""
        tensor_kwargs = [
            name for name, argument in node.kwargs.items() if isinstance(argument, Ref)
        ]
        if tensor_kwargs and reason == UNKNOWN:
            raise UserError(
                f"{node_location(node)} is an unknown op, and may write to its argument "
                f"{tensor_kwargs[0]!r}: export the model with run_decompositions()"
            )
        if not node.outputs:
            raise UserError(
                f"{node_location(node)} has no results, and what it writes is unknown "
                f"({reason}): export the model with run_decompositions(), or make the op "
                "return its results"
            )
        unbacked_sizes_defined = self._new_sizes(node)
        if self._inner and (unbacked_sizes_defined or not self._b.externs_inside):
            raise Unsupported(f"{node.target} in its inner graph: {reason}")
        self._b.begin(node, ())
        inputs: dict[str, OperandView] = {}
        for name in dict.fromkeys(node_references(node)):
            if name in self._graph.sym_ints:
                continue
            tensor = self._value(name)
            assert isinstance(tensor, Tensor)
            if unbacked_sizes_defined and not isinstance(tensor, Scalar):
                tensor = self._b.realize(tensor)  # a wrapper computes it too, from whole buffers
            axes, index = self._b.loops(tensor.size, "i")
            inputs[name] = OperandView(
                axes, simplify_tree(tensor.at(index), self._b.sizes.over(axes))
            )
        outputs = []
        sizes = {size: size_buffer_name(size) for size in unbacked_sizes_defined}
        for name in sizes.values():
            self._b.buffers[name] = Buffer(name, DType.I64, (), (), BufferKind.INTERMEDIATE)
        for name in node.outputs:
            meta = self._graph.tensors.get(name)
            if meta is None and name in self._graph.sym_ints and sizes:
                outputs.append(sizes.pop(self._graph.sym_ints[name].name))
                continue
            if meta is None:
                raise UserError(
                    f"{node_location(node)}: {reason}; its result {name!r} is not a tensor"
                )
            stride = layout.dense_strides(meta.size, meta.stride, self._b.hints)
            buffer = self._b.buffer(meta.dtype, meta.size, stride)
            outputs.append(buffer.name)
            self._values[name] = self._b.tensor(buffer)
        op = Extern(
            self._b.operation_name(),
            node.target,
            reason,
            node.name,
            inputs,
            (*outputs, *sizes.values()),
            self._b.nodes,
        )
        self._b.add(op)

    def _new_sizes(self, node: Node) -> list[str]:
        """The sizes that depend on data and that this node defines."""
        exprs = [
            expr
            for name in node.outputs
            for expr in (
                (self._graph.sym_ints[name],)
                if name in self._graph.sym_ints
                else self._graph.tensors[name].size
                if name in self._graph.tensors
                else ()
            )
        ]
        names = dict.fromkeys(e.name for e in exprs if e.is_Symbol and is_unbacked(e.name))
        return [name for name in names if size_buffer_name(name) not in self._b.buffers]


def _buffer_names(inputs: Sequence[str]) -> Iterator[str]:
    """Names of the input buffers: the input's name if it is an identifier, as torch's are,
    otherwise its position. The name in the model stays the buffer's ``source_name``."""
    input_names = set(inputs)
    for position, name in enumerate(inputs):
        if _IDENTIFIER.fullmatch(name) and not buffer_size_symbol(name):
            yield name
            continue
        result = f"arg{position}"
        while result in input_names:
            result += "_"
        yield result


def _sources(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The views and constants through which the arguments are read, each once."""
    sources: dict[str, None] = {}
    for value in arguments.values():
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Tensor):
                sources.update(dict.fromkeys(part.nodes))
    return tuple(sources)
