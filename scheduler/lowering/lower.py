"""From a graph to operations over buffers, one node after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import sympy

from scheduler.ir.graph import Argument, Expr, Graph, InputKind, Node, Ref, TensorMeta
from scheduler.ir.operations import Buffer, BufferKind, Extern, Lowered, ViewOf
from scheduler.ir.ops import UnsupportedOpError, bind, spec_of
from scheduler.lowering import layout, table
from scheduler.lowering.aliasing import written_through
from scheduler.lowering.builder import Builder, ranges_of, simplified
from scheduler.lowering.cleanup import finish
from scheduler.lowering.errors import Unsupported, where
from scheduler.lowering.tensor import Tensor
from scheduler.lowering.verifier import verify
from scheduler.lowering.views import shape
from scheduler.outcome import UserError

LoweredValue: TypeAlias = "Tensor | Expr"

_KINDS = {
    InputKind.USER: BufferKind.INPUT,
    InputKind.PARAMETER: BufferKind.PARAMETER,
    InputKind.BUFFER: BufferKind.PARAMETER,
    InputKind.CONSTANT: BufferKind.CONSTANT,
}


def lower(graph: Graph) -> Lowered:
    """The graph as operations, in an order that can be run.

    A node that no rule covers becomes an ``Extern`` that says why. Raises ``UserError`` naming
    the node, with where it came from in the model, where the graph contradicts itself.
    """
    return _Lowering(graph).run()


class _Lowering:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._b = Builder(graph)
        self._values: dict[str, LoweredValue] = {}
        self._last_use = _last_uses(graph)
        self._roots: dict[str, str] = {}  # a view's value -> the value whose memory torch shares

    def run(self) -> Lowered:
        for given in self._graph.inputs:
            self._input(given.name, _KINDS[given.kind], given.source_name)
        for position, node in enumerate(self._graph.nodes):
            self._node(node, position)
        self._b.node = None
        made = finish(self._b, [self._value(name) for name in self._graph.outputs])
        verify(made)
        return made

    def _input(self, name: str, kind: BufferKind, source_name: str) -> None:
        meta = self._graph.tensors.get(name)
        if meta is None:  # a symbolic integer
            return
        buffer = Buffer(name, meta.dtype, meta.size, meta.stride, kind, source_name or name)
        self._b.buffers[name] = buffer
        self._values[name] = self._b.tensor(buffer)

    def _value(self, name: str) -> LoweredValue:
        if name in self._graph.sym_ints:
            return self._graph.sym_ints[name]
        known = self._values.get(name)
        if known is None:
            raise UserError(f"value {name!r} is used before a node makes it")
        return known

    def _node(self, node: Node, position: int) -> None:
        if not any(name in self._graph.tensors for name in node.outputs) and node.outputs:
            return  # symbolic integers: their expressions are in the graph
        arguments: Mapping[str, Any] = {}
        try:
            arguments = {name: self._argument(value) for name, value in bind(node).items()}
            self._b.begin(node, _sources(arguments))
            made = self._apply(node, arguments)
        except UnsupportedOpError as error:
            self._extern(node, error.reason)
            return
        except Unsupported as error:
            self._extern(node, str(error))
        else:
            for name, value in zip(node.outputs, made, strict=True):
                self._values[name] = self._checked(node, name, value)
        self._mutation(node, position)

    def _argument(self, argument: Argument) -> Any:
        if isinstance(argument, Ref):
            return self._value(argument.name)
        if isinstance(argument, tuple):
            return tuple(self._argument(part) for part in argument)
        if isinstance(argument, sympy.Integer):
            return int(argument)
        return argument

    def _apply(self, node: Node, arguments: Mapping[str, Any]) -> tuple[Tensor, ...]:
        spec = spec_of(node.target)
        rule = table.RULES.get(f"{node.target.partition('.')[0]}.{spec.function}")
        if rule is None:
            raise Unsupported("no kernel is made for this op yet")
        known = table.accepted(rule)
        given = {}
        defaults = {param.name: param.default for param in spec.params}
        for name, value in arguments.items():
            if known is None or name in known:
                given[name] = value
            elif name not in table.WITHOUT_EFFECT and value != defaults[name]:
                raise Unsupported(f"argument {name}={value} is not covered")
        made = rule(self._b, **given)
        return made if isinstance(made, tuple) else (made,)

    def _checked(self, node: Node, name: str, tensor: Tensor) -> Tensor:
        """The value with its node noted; ``UserError`` where the graph says another shape."""
        meta = self._graph.tensors[name]
        if len(tensor.size) != len(meta.size) or not all(map(_agree, tensor.size, meta.size)):
            raise UserError(
                f"{where(node)}: the graph says shape {shape(meta.size)} for {name}, "
                f"but its arguments make {shape(tensor.size)}"
            )
        if tensor.dtype is not meta.dtype:
            raise UserError(
                f"{where(node)}: the graph says type {meta.dtype.label} for {name}, "
                f"but its arguments make {tensor.dtype.label}"
            )
        made_here = tensor.buffer and tensor.nodes == ()
        own = tensor.buffer in self._b.buffers and self._b.buffers[tensor.buffer].kind
        nodes = () if made_here and own is BufferKind.INTERMEDIATE else self._b.nodes
        return Tensor(meta.size, tensor.dtype, tensor.at, tensor.buffer, nodes)

    def _mutation(self, node: Node, position: int) -> None:
        """Who shares memory with whom; after an in-place op, all of them see what it wrote.

        ``UserError`` where a value that shares the memory is used later but cannot be followed.
        """
        spec = spec_of(node.target)
        first = next(iter(bind(node).values()), None)
        if not isinstance(first, Ref):
            return
        root = self._roots.get(first.name, first.name)
        if spec.mutates or self._shares(spec.function, first.name, node):
            self._roots.update(dict.fromkeys(node.outputs, root))
        if not spec.mutates:
            return
        result = self._values[node.outputs[0]]
        before = self._values[first.name]
        self._values[first.name] = result
        seen = [
            name
            for name in self._last_use
            if self._roots.get(name, name) == root
            and name not in (first.name, *node.outputs)
            and name in self._values
            and self._last_use[name] > position
        ]
        if not seen:
            return
        tensors = {name: self._values[name] for name in (*seen, first.name)}
        tensors[first.name] = before
        assert isinstance(before, Tensor) and isinstance(result, Tensor)
        sharing = {name: t for name, t in tensors.items() if isinstance(t, Tensor)}
        try:
            changed = written_through(self._b, sharing, before, result)
        except Unsupported as error:
            raise UserError(
                f"{where(node)}: writes to {first.name!r} in place while {seen[0]!r}, which shares "
                f"its memory, is used later: {error}; export the model with run_decompositions()"
            ) from None
        self._values.update(changed)
        self._values[node.outputs[0]] = changed[first.name]

    def _shares(self, function: str, source: str, node: Node) -> bool:
        """Whether torch's result is a view of the first argument's memory."""
        meta = self._graph.tensors.get(source)
        if meta is None or function not in (*_SHARING, *_SHARING_IF_CONTIGUOUS):
            return False
        if function == "to":
            return meta.dtype is self._graph.tensors[node.outputs[0]].dtype
        return function in _SHARING or meta.stride == layout.contiguous(meta.size)

    def _extern(self, node: Node, reason: str) -> None:
        """The node as a call of the reference: its tensors as views, its results in memory."""
        self._b.begin(node, ())
        inputs: dict[str, ViewOf] = {}
        for name in _tensor_names(node, self._graph):
            tensor = self._values[name]
            assert isinstance(tensor, Tensor)
            axes, index = self._b.loops(tensor.size, "i")
            inputs[name] = ViewOf(axes, simplified(tensor.at(index), ranges_of(axes)))
        outputs = []
        for name in node.outputs:
            meta = self._graph.tensors.get(name)
            if meta is None:
                raise UserError(f"{where(node)}: {reason}; its result {name!r} is no tensor")
            buffer = self._b.buffer(meta.dtype, meta.size, _stride(meta, self._b))
            outputs.append(buffer.name)
            self._values[name] = self._b.tensor(buffer)
        op = Extern(
            self._b.operation_name(),
            node.target,
            reason,
            node.name,
            inputs,
            tuple(outputs),
            (node.name,),
        )
        self._b.add(op)


#: Functions whose result shares memory with their first argument.
_SHARING = frozenset(
    [
        "view",
        "_unsafe_view",
        "unflatten",
        "squeeze",
        "unsqueeze",
        "permute",
        "transpose",
        "t",
        "numpy_T",
        "swapaxes",
        "movedim",
        "expand",
        "expand_as",
        "broadcast_to",
        "slice",
        "select",
        "narrow",
        "split",
        "split_with_sizes",
        "chunk",
        "unbind",
        "diagonal",
        "alias",
        "detach",
        "view_as",
        "to",
        "dropout",
        "lift_fresh",
        "unfold",
    ]
)
#: Functions that copy what is not contiguous.
_SHARING_IF_CONTIGUOUS = frozenset(["reshape", "flatten", "contiguous"])


def _stride(meta: TensorMeta, b: Builder) -> tuple[Expr, ...]:
    return layout.dense(meta.size, meta.stride, b.hints)


def _agree(a: Expr, b: Expr) -> bool:
    """Whether two sizes may be the same; the export's guards are not known here."""
    difference = a - b
    return not (difference.is_Integer and difference != 0)


def _sources(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Views and constants on the way to the arguments, each once."""
    found: dict[str, None] = {}
    for value in arguments.values():
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Tensor):
                found.update(dict.fromkeys(part.nodes))
    return tuple(found)


def _tensor_names(node: Node, graph: Graph) -> list[str]:
    names: dict[str, None] = {}

    def visit(argument: Argument) -> None:
        if isinstance(argument, Ref) and argument.name in graph.tensors:
            names[argument.name] = None
        elif isinstance(argument, tuple):
            for part in argument:
                visit(part)

    for argument in (*node.args, *node.kwargs.values()):
        visit(argument)
    return list(names)


def _last_uses(graph: Graph) -> dict[str, int]:
    """Position of the last node that reads each value; the end for outputs."""
    last: dict[str, int] = {}
    for position, node in enumerate(graph.nodes):
        for name in _tensor_names(node, graph):
            last[name] = position
    return last | dict.fromkeys(graph.outputs, len(graph.nodes))
