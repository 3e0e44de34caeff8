"""The work that any kernel of a scheduler node must do: bytes to move, products to add.

The figures are lower bounds, never estimates: only what is provably needed is counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.bindings import Bindings
from scheduler.ir.index.functions import evaluate
from scheduler.ir.operations import Axis, GroupKind, Lowered, Operation, Sort
from scheduler.ir.storage import bind_buffer
from scheduler.ir.values import Call, Value, walk
from scheduler.tuning.footprint import elements_read


@dataclass(frozen=True)
class Work:
    """Bytes that cross the memory interface at least once, and operations.

    ``matrix_flops`` are multiplications and additions of products (two each) in ``matrix_dtype``
    (f16, bf16, f32, tf32, f64; "" without any); ``vector_ops`` are functions of the trees, an
    estimate.
    """

    read_bytes: int
    written_bytes: int
    matrix_flops: int
    matrix_dtype: str
    vector_ops: int

    @property
    def bytes(self) -> int:
        """Bytes read plus bytes written."""
        return self.read_bytes + self.written_bytes

    @property
    def size(self) -> int:
        """One figure that ranks problems of a kind: products, else bytes."""
        return self.matrix_flops or self.bytes


def work_of(node: SchedulerNode, lowered: Lowered, bindings: Bindings) -> Work:
    """Return the work of one node at these sizes."""
    buffers = {n: bind_buffer(lowered.buffers[n], bindings) for n in (*node.reads, *node.writes)}
    read_elements = dict.fromkeys(node.reads, 0)
    flops = vector_ops = 0
    dtype = ""
    for operation in node.members:
        for name, elements in elements_read(operation, lowered, bindings).items():
            if name in read_elements:
                read_elements[name] = max(read_elements[name], elements)
        if operation.products:
            flops += 2 * evaluate(operation.products.multiply_adds, bindings)
            dtype = operation.products.rate_key
        vector_ops += _vector_ops(operation, bindings)
    read_bytes = sum(
        min(prod(buffers[name].size), elements) * buffers[name].dtype.itemsize
        for name, elements in read_elements.items()
    )
    written_bytes = sum(prod(buffers[n].size) * buffers[n].dtype.itemsize for n in node.writes)
    return Work(read_bytes, written_bytes, flops, dtype, vector_ops)


def _vector_ops(operation: Operation, bindings: Bindings) -> int:
    if not operation.group_kind.has_kernel:
        return 0
    if operation.group_kind is GroupKind.SCATTER:
        # The initial result, and the sources, each with its combination.
        calls_per_point = _count_calls([store.value for store in operation.results])
        calls_per_source = 1 + _count_calls([scope.value for scope in operation.operands])
        return calls_per_point * _count_points(
            operation.points, bindings
        ) + calls_per_source * _count_points(operation.nest[0], bindings)
    calls = _count_calls(operation.trees)
    if operation.group_kind in (GroupKind.REDUCTION, GroupKind.SCAN):
        calls += 1  # combines two values
    axes = operation.points if operation.products else operation.loops
    if isinstance(operation, Sort):
        axes = operation.operands[0].axes
        calls += evaluate(operation.axis.size, bindings).bit_length()  # comparisons of an element
    return calls * _count_points(axes, bindings)


def _count_points(axes: Iterable[Axis], bindings: Bindings) -> int:
    return prod(evaluate(axis.size, bindings) for axis in axes)


def _count_calls(trees: Iterable[Value]) -> int:
    return sum(isinstance(part, Call) for tree in trees for part in walk(tree))
