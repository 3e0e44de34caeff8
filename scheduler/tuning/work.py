"""What a scheduler node must do whatever its kernel looks like: bytes to move, products to add.

These are lower bounds, never estimates: whatever cannot be shown to be needed is not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.access import trees_of
from scheduler.ir.bindings import Bindings
from scheduler.ir.index.functions import evaluate
from scheduler.ir.operations import (
    Attention,
    Axis,
    Contraction,
    Extern,
    Lowered,
    Operation,
    Pointwise,
    Reduction,
    Scan,
)
from scheduler.ir.storage import bind_buffer
from scheduler.ir.values import Call, walk
from scheduler.tuning.footprint import elements_read


@dataclass(frozen=True)
class Work:
    """Bytes that cross the memory interface at least once, and operations.

    ``matrix_flops`` are multiplications and additions of products (two each) in ``matrix_dtype``
    (f16, bf16, f32, f64; "" without any); ``vector_ops`` are functions of the trees, an estimate.
    """

    read_bytes: int
    written_bytes: int
    matrix_flops: int
    matrix_dtype: str
    vector_ops: int

    @property
    def bytes(self) -> int:
        """Both ways."""
        return self.read_bytes + self.written_bytes

    @property
    def size(self) -> int:
        """One figure to compare problems of a kind by: products, else bytes."""
        return self.matrix_flops or self.bytes


def work_of(node: SchedulerNode, lowered: Lowered, bindings: Bindings) -> Work:
    """The work of one node at these sizes."""
    buffers = {n: bind_buffer(lowered.buffers[n], bindings) for n in (*node.reads, *node.writes)}
    touched = dict.fromkeys(node.reads, 0)
    flops = vector = 0
    dtype = ""
    for operation in node.members:
        read = elements_read(operation, axes_of(operation), lowered, bindings)
        for name, elements in read.items():
            if name in touched:
                touched[name] = max(touched[name], elements)
        own, own_dtype = _products(operation, bindings)
        flops, dtype = flops + own, own_dtype or dtype
        vector += _vector_ops(operation, bindings)
    read_bytes = sum(
        min(prod(buffers[name].size), elements) * buffers[name].dtype.itemsize
        for name, elements in touched.items()
    )
    written = sum(prod(buffers[n].size) * buffers[n].dtype.itemsize for n in node.writes)
    return Work(read_bytes, written, flops, dtype, vector)


def axes_of(operation: Operation) -> tuple[Axis, ...]:
    """All loops of an operation."""
    if isinstance(operation, Contraction):
        return (*operation.batch, *operation.m, *operation.n, *operation.k)
    if isinstance(operation, Attention):
        rest = (operation.row, operation.column, operation.depth, operation.value_depth)
        return (*operation.batch, *rest)
    if isinstance(operation, Reduction):
        return (*operation.axes, *operation.reduction_axes)
    if isinstance(operation, Scan):
        return (*operation.axes, operation.scan_axis)
    return operation.axes if isinstance(operation, Pointwise) else ()


def _points(axes: Sequence[Axis], bindings: Bindings) -> int:
    return prod(evaluate(axis.size, bindings) for axis in axes)


def _products(operation: Operation, bindings: Bindings) -> tuple[int, str]:
    if isinstance(operation, Contraction):
        return 2 * _points(axes_of(operation), bindings), operation.a.dtype.label
    if isinstance(operation, Attention):
        batch = _points(operation.batch, bindings)
        rows, columns = (evaluate(a.size, bindings) for a in (operation.row, operation.column))
        pairs = rows * columns
        if operation.causal:
            few = min(rows, columns)
            pairs = few * (few + 1) // 2 + max(0, rows - columns) * columns
        depth = _points([operation.depth], bindings) + _points([operation.value_depth], bindings)
        return 2 * batch * pairs * depth, operation.q.dtype.label
    return 0, ""


def _vector_ops(operation: Operation, bindings: Bindings) -> int:
    if isinstance(operation, Extern):
        return 0
    calls = sum(isinstance(part, Call) for tree in trees_of(operation) for part in walk(tree))
    if isinstance(operation, Contraction):
        return calls * _points((*operation.batch, *operation.m, *operation.n), bindings)
    if isinstance(operation, Attention):
        return calls * _points((*operation.batch, operation.row, operation.value_depth), bindings)
    extra = 1 if isinstance(operation, Reduction | Scan) else 0
    return (calls + extra) * _points(axes_of(operation), bindings)
