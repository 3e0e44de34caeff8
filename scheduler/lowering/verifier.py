"""Verify that operations can run: names, shapes, types, bounds, order.

Runs after each pass. An error is a bug in the pass or a contradiction in the graph; the message
names the graph's node and its origin in the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

from scheduler.errors import UserError
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr, Graph
from scheduler.ir.index.affine import affine
from scheduler.ir.index.facts import is_nonnegative
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.index.trees import access_ranges
from scheduler.ir.operations import Axis, Buffer, BufferKind, Lowered, Operation, Scatter, Store
from scheduler.ir.pointwise import FUNCTIONS, Result
from scheduler.ir.values import Call, Const, IndexValue, Load, Masked, Value, children
from scheduler.lowering.coverage import uncovered_nodes
from scheduler.lowering.errors import node_location


class InconsistentError(UserError):
    """A pass produced operations that cannot run, or the graph contradicts itself."""


def verify(lowered: Lowered) -> None:
    """Raise ``InconsistentError`` if the operations cannot run.

    Checks: every buffer has one writer, which precedes its readers; outputs and inputs exist; every
    index has one expression per dimension, over known loops and sizes, and is inside the buffer
    wherever that can be decided; types match; in-place writes that an output depends on are
    computed. Time is linear.
    """
    Verifier(lowered.graph, lowered.buffers).run(lowered.operations)
    for name in (*lowered.inputs, *lowered.results):
        if name not in lowered.buffers:
            raise InconsistentError(f"{name!r} is an input or output, but not a buffer")
    for node in uncovered_nodes(lowered):
        raise InconsistentError(
            f"{node_location(node)}: no operation computes what it writes, which an output needs"
        )


class Verifier:
    """Checks operations in execution order."""

    def __init__(self, graph: Graph, buffers: Mapping[str, Buffer]) -> None:
        self._nodes = {node.name: node for node in graph.nodes}
        self._symbols = set(graph.symbols)
        self._buffers = buffers
        self._made = {
            name
            for name, buffer in buffers.items()
            if buffer.kind not in (BufferKind.INTERMEDIATE, BufferKind.OUTPUT)
        }
        self._sizes = Ranges.from_symbols(graph.symbols)
        self._ranges = self._sizes
        self._op: Operation | None = None

    def run(self, operations: Sequence[Operation]) -> None:
        """Check all operations in order."""
        for op in operations:
            self.check(op)
            self.write(op)

    def check(self, op: Operation) -> None:
        """Check one operation against the operations before it."""
        self._op = op
        for name in op.reads:
            if name not in self._buffers:
                self._fail(f"reads {name}, which is not a buffer")
            if name not in self._made:
                self._fail(f"reads {name} before an operation writes it")
        for scope in op.operands:
            self._tree(scope.value, scope.axes)
        if isinstance(op, Scatter):
            self._ranges = self._sizes.over(op.sources)
            self._load(op.target, guarded=not isinstance(op.condition, Const))
        for store in op.results:
            self._store(store, op.points)
        fault = op.type_fault()
        if fault:
            self._fail(fault)

    def write(self, op: Operation) -> None:
        """Record what an operation writes; each buffer has one writer."""
        self._op = op
        for name in op.writes:
            if name not in self._buffers:
                self._fail(f"writes {name}, which is not a buffer")
            if name in self._made:
                self._fail(f"writes {name}, which already has a value")
            self._made.add(name)

    def forget(self, names: Iterable[str]) -> None:
        """Remove buffers that stayed in a kernel's registers: no later operation may read them."""
        self._made.difference_update(names)

    def _store(self, store: Store, axes: Sequence[Axis]) -> None:
        buffer = self._buffers.get(store.buffer)
        if buffer is None:
            self._fail(f"writes {store.buffer}, which is not a buffer")
        self._ranges = self._sizes.over(axes)
        self._index(store.index, buffer, guarded=False)
        if store.value.dtype.compute_dtype is not buffer.dtype.compute_dtype:
            self._fail(
                f"writes a value of type {store.value.dtype.label} to {store.buffer}, which "
                f"holds {buffer.dtype.label}"
            )
        self._tree(store.value, axes)

    def _tree(self, value: Value, axes: Sequence[Axis]) -> None:
        self._ranges = self._sizes.over(axes)
        self._value(value, guarded=False)

    def _value(self, value: Value, guarded: bool) -> None:
        if isinstance(value, Load):
            self._load(value, guarded)
            return
        if isinstance(value, IndexValue):
            self._known(value.expr)
        if isinstance(value, Call):
            self._call(value)
        if isinstance(value, Masked):
            if value.condition.dtype is not DType.BOOL:
                self._fail(f"a condition has type {value.condition.dtype.label}")
            self._value(value.condition, guarded)
            self._value(value.value, True)
            self._value(value.other, True)
            return
        for child in children(value):
            self._value(child, guarded)

    def _load(self, load: Load, guarded: bool) -> None:
        buffer = self._buffers[load.buffer]
        if load.dtype is not buffer.dtype:
            self._fail(f"reads {load.buffer} as {load.dtype.label}, not {buffer.dtype.label}")
        outer = self._ranges
        self._ranges = access_ranges(load, outer)
        self._index(load.index, buffer, guarded)
        self._ranges = outer
        for indirect in load.indirect:
            if not indirect.value.dtype.is_integer:
                self._fail(f"indexes {load.buffer} by a {indirect.value.dtype.label}")
            self._value(indirect.value, guarded)

    def _call(self, call: Call) -> None:
        function = FUNCTIONS.get(call.op)
        if function is None:
            self._fail(f"calls {call.op!r}, which is not a pointwise function")
        if len(call.args) != function.arity:
            self._fail(f"calls {call.op} with {len(call.args)} arguments")
        args = call.args[1:] if function.result is Result.SECOND else call.args
        argument_dtypes = {arg.dtype.compute_dtype for arg in args}
        if len(argument_dtypes) != 1:
            self._fail(
                f"calls {call.op} with {' and '.join(sorted(d.label for d in argument_dtypes))}"
            )
        (dtype,) = argument_dtypes
        if not function.takes(dtype):
            self._fail(f"calls {call.op} with {dtype.label}")
        if function.result is Result.BITS:
            source = call.args[0].dtype
            if source.itemsize != call.dtype.itemsize:
                self._fail(f"reads the bits of {source.label} as {call.dtype.label}")
            return
        result = function.result_type(dtype)
        if call.dtype.compute_dtype is not result:
            self._fail(f"calls {call.op} for {call.dtype.label}, but its result is {result.label}")

    def _index(self, index: Sequence[Expr], buffer: Buffer, guarded: bool) -> None:
        if len(index) != len(buffer.size):
            self._fail(
                f"indexes {buffer.name} with {len(index)} expressions; it has "
                f"{len(buffer.size)} dimensions"
            )
        for i, extent in zip(index, buffer.size, strict=True):
            self._known(i)
            if not guarded and _is_outside(i, extent, self._ranges):
                self._fail(f"indexes {buffer.name} at {i}, outside its size {extent}")

    def _known(self, expr: Expr) -> None:
        if expr.is_Integer:
            return
        for symbol in expr.free_symbols:
            if symbol not in self._ranges.extents and symbol.name not in self._symbols:
                self._fail(f"uses {symbol}, which is neither a loop nor a size")

    def _fail(self, fault: str) -> NoReturn:
        assert self._op is not None
        origins = [node_location(self._nodes[n]) for n in self._op.nodes if n in self._nodes]
        location = origins[-1] if origins else "an output's copy"
        raise InconsistentError(f"{location}: {type(self._op).__name__} {self._op.name} {fault}")


def _is_outside(index: Expr, extent: Expr, ranges: Ranges) -> bool:
    """Whether an index certainly leaves its dimension at some point of the loops.

    An affine index has its extreme values at the loops' ends; any other index passes.
    """
    if index.is_Symbol and ranges.extents.get(index) == extent:
        return False
    if any(size == 0 for size in ranges.extents.values()):
        return False
    form = affine(index, ranges.extents)
    if form is None:
        return False
    low = high = form.rest
    for variable, step in form.coefficients.items():
        extent_step = step * (ranges.extents[variable] - 1)
        if is_nonnegative(step, ranges):
            high = high + extent_step
        elif is_nonnegative(-step, ranges):
            low = low + extent_step
        else:
            return False
    return is_nonnegative(-low - 1, ranges) or is_nonnegative(high - extent, ranges)
