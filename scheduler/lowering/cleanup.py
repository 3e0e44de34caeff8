"""Finish lowering: copy outputs to separate memory and remove unread operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.operations import Assertion, BufferKind, Lowered, live_operations
from scheduler.ir.values import Value, call, index_value
from scheduler.lowering import layout, scalars, trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.tensor import Index, Tensor


def finish(b: Builder, outputs: Sequence[object]) -> Lowered:
    """Build the ``Lowered`` graph, with outputs in the model's order. A number among the outputs is
    returned as a tensor without dimensions."""
    names = []
    for name, value in zip(b.graph.outputs, outputs, strict=True):
        is_number = isinstance(value, sympy.Expr)
        result = scalars.scalar(index_value(value)) if is_number else value
        assert isinstance(result, Tensor)
        names.append(_output(b, name, result))
    assertions = _assertions(b)
    results = [*names, *(assertion.buffer for assertion in assertions)]
    operations = live_operations(b.operations, results)
    read = {*results, *(name for op in operations for name in op.reads)}
    for number, op in enumerate(operations):
        stores = [store for store in op.results if store.buffer in read]
        if 0 < len(stores) < len(op.results):
            operations[number] = op.with_results(stores, op.nodes)
    used = {name for op in operations for name in (*op.reads, *op.writes)}
    buffers = {
        name: buffer
        for name, buffer in b.buffers.items()
        if buffer.kind is not BufferKind.INTERMEDIATE or name in used
    }
    inputs = tuple(n for n, buffer in buffers.items() if buffer.kind is BufferKind.INPUT)
    computed = {name for op in operations for name in op.nodes}
    without_work = set()
    for node, before, after in b.writes:
        if node in computed:
            continue
        is_unchanged = after.buffer in buffers or 0 in before.size
        if not is_unchanged:  # equal trees have equal elements
            _, index = b.loops(before.size, "i")
            is_unchanged = before.at(index) == after.at(index)
        if is_unchanged:
            without_work.add(node)
    return Lowered(
        *(b.graph, buffers, tuple(operations), inputs, tuple(names), frozenset(without_work)),
        nonzero=tuple(b.nonzero),
        assertions=assertions,
    )


def _assertions(b: Builder) -> tuple[Assertion, ...]:
    """Store all assertions of the model in one buffer, written by one operation."""
    if not b.assertions:
        return ()
    nodes, _, values = zip(*b.assertions, strict=True)
    b.sources = nodes

    def read(index: Index) -> Value:
        result: Value = values[-1]
        for position, value in enumerate(values[:-1]):
            is_selected = trees.equal(index[0], position)
            result = call("where", is_selected, value, result)
        return result

    buffer = b.pointwise((sympy.Integer(len(values)),), DType.BOOL, read).buffer
    b.buffers[buffer] = replace(b.buffers[buffer], kind=BufferKind.OUTPUT, source_name="assertions")
    return tuple(
        Assertion(buffer, position, node, message)
        for position, (node, message, _) in enumerate(b.assertions)
    )


def _output(b: Builder, name: str, tensor: Tensor) -> str:
    """The buffer of an output: the buffer that the tensor fills, or a new copy."""
    meta = b.graph.tensors.get(name)
    stride = () if meta is None else layout.dense_strides(meta.size, meta.stride, b.hints)
    buffer = b.buffers.get(tensor.buffer)
    # An intermediate buffer may have another memory order than the model states.
    is_reordered = (
        buffer is not None
        and buffer.kind is BufferKind.INTERMEDIATE
        and bool(b.reordered)
        and len(stride) >= 3
        and not layout.is_same_layout(buffer.size, buffer.stride, stride)
    )
    if buffer is not None and not is_reordered:
        if buffer.kind is BufferKind.INTERMEDIATE:
            result = replace(buffer, kind=BufferKind.OUTPUT, source_name=name)
            b.buffers[buffer.name] = result
        return buffer.name
    b.sources = tensor.nodes
    copy = b.pointwise(tensor.size, tensor.dtype, tensor.at, stride)
    result = replace(b.buffers[copy.buffer], kind=BufferKind.OUTPUT, source_name=name)
    b.buffers[copy.buffer] = result
    return copy.buffer
