"""What a scheduler node must do whatever its kernel looks like: bytes to move, products to add.

These are lower bounds, never estimates: whatever cannot be shown to be needed is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import sympy

from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.access import trees_of
from scheduler.ir.bindings import Bindings
from scheduler.ir.graph import Expr
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
from scheduler.ir.values import Call, Load, Masked, Value, children, walk


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
        for name, elements in _read(operation, bindings).items():
            if name in touched:
                touched[name] = max(touched[name], elements)
        own, own_dtype = _products(operation, bindings)
        flops, dtype = flops + own, own_dtype or dtype
        vector += _vector_ops(operation, bindings)
    read = sum(
        min(prod(buffers[name].size), elements) * buffers[name].dtype.itemsize
        for name, elements in touched.items()
    )
    written = sum(prod(buffers[n].size) * buffers[n].dtype.itemsize for n in node.writes)
    return Work(read, written, flops, dtype, vector)


def _read(operation: Operation, bindings: Bindings) -> dict[str, int]:
    """For each buffer, a number of different elements that the operation certainly reads."""
    sizes = {axis.var: evaluate(axis.size, bindings) for axis in axes_of(operation)}
    found: dict[str, int] = {}
    if any(size == 0 for size in sizes.values()):
        return found
    for tree in trees_of(operation):
        for load in _certain_loads(tree):
            elements = distinct_elements(load, sizes, bindings)
            found[load.buffer] = max(found.get(load.buffer, 0), elements)
    return found


def _certain_loads(value: Value) -> list[Load]:
    """Reads that happen at every point: none behind a mask, or chosen by a ``where``."""
    if isinstance(value, Masked):
        return _certain_loads(value.condition)
    if isinstance(value, Call) and value.op == "where":
        return _certain_loads(value.args[0])
    own = [value] if isinstance(value, Load) else []
    return own + [load for child in children(value) for load in _certain_loads(child)]


def distinct_elements(load: Load, sizes: Mapping[sympy.Symbol, int], bindings: Bindings) -> int:
    """At least so many different elements are read over all points.

    Axes are counted with which the index is certainly one-to-one: in each dimension those whose
    steps are larger than all that smaller steps reach together, and each axis in the first
    dimension that depends on it. Axes behind a division, a remainder or an indirection count once.
    """
    counted: set[sympy.Symbol] = set()
    total = 1
    for index in load.index:
        steps = _linear_steps(index, sizes, bindings)
        reach = 0
        for axis, step in sorted(steps.items(), key=lambda item: (item[1], str(item[0]))):
            if axis in counted or step <= reach:
                continue
            reach += step * (sizes[axis] - 1)
            counted.add(axis)
            total *= sizes[axis]
        counted |= {axis for axis in sizes if axis in index.free_symbols}
    return total


def _linear_steps(
    index: Expr, sizes: Mapping[sympy.Symbol, int], bindings: Bindings
) -> dict[sympy.Symbol, int]:
    """Axes that stand in sums and products alone, with their steps' sizes; none where anything
    else in the index moves."""
    moving = [symbol for symbol in index.free_symbols if symbol in sizes]
    try:
        polynomial = sympy.Poly(index, *moving) if moving else None
    except sympy.PolynomialError:
        return {}
    if polynomial is None or polynomial.total_degree() > 1:
        return {}
    steps = {axis: polynomial.coeff_monomial(axis) for axis in moving}
    known = set(bindings)
    if any({s.name for s in step.free_symbols} - known for step in steps.values()):
        return {}
    return {axis: abs(evaluate(step, bindings)) for axis, step in steps.items()}


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
        return 2 * _points(axes_of(operation), bindings), _element(operation.a)
    if isinstance(operation, Attention):
        batch = _points(operation.batch, bindings)
        rows, columns = (evaluate(a.size, bindings) for a in (operation.row, operation.column))
        pairs = rows * columns
        if operation.causal:
            few = min(rows, columns)
            pairs = few * (few + 1) // 2 + max(0, rows - columns) * columns
        depth = _points([operation.depth], bindings) + _points([operation.value_depth], bindings)
        return 2 * batch * pairs * depth, _element(operation.q)
    return 0, ""


def _element(tree: Value) -> str:
    """The element type of an operand."""
    return next((part.dtype.label for part in walk(tree) if not isinstance(part, Masked)), "")


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
