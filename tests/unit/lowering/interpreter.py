"""Operations and schedules run by NumPy in float64: what they mean, apart from any code generator.

Every loop variable is an array along a dimension of its own. A read that is out of bounds, or of a
buffer that has no value (any more), is an error, so that lifetimes and storage are tested too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sympy

from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, Mod, evaluate
from scheduler.ir.operations import (
    Attention,
    Axis,
    Contraction,
    Extern,
    Lowered,
    Operation,
    Pointwise,
    Reduction,
    ReductionKind,
    Scan,
    Store,
)
from scheduler.ir.pointwise import FUNCTIONS
from scheduler.ir.values import (
    Accumulator,
    Call,
    Cast,
    Const,
    IndexValue,
    Load,
    Masked,
    Value,
)
from scheduler.reference import evaluate as reference
from scheduler.reference import symbolic_values

Array = Any


def numpy_type(dtype: DType) -> str:
    return "float64" if dtype.is_float else dtype.numpy


def converted(value: Array, dtype: DType) -> Array:
    with np.errstate(all="ignore"):
        if dtype is DType.BOOL:
            return np.asarray(value) != 0
        return np.asarray(value).astype(numpy_type(dtype))


class Points:
    """Loop variables as arrays, and trees evaluated over them."""

    def __init__(
        self, axes: Sequence[Axis], sizes: Mapping[str, int], memory: Mapping[str, Array]
    ) -> None:
        self.sizes = dict(sizes)
        self.memory = memory
        self.shape = tuple(evaluate(axis.size, self.sizes) for axis in axes)
        self.symbols: dict[str, Array] = dict(self.sizes)
        for d, (axis, extent) in enumerate(zip(axes, self.shape, strict=True)):
            form = [1] * len(axes)
            form[d] = extent
            self.symbols[axis.var.name] = np.arange(extent).reshape(form)
        self.accumulators: dict[str, Array] = {}

    def expr(self, expr: Expr, more: Mapping[str, Array] | None = None) -> Array:
        symbols = {**self.symbols, **(more or {})}

        def value(e: Expr) -> Array:
            if e.is_Integer:
                return int(e)
            if e.is_Symbol:
                return symbols[e.name]
            args = [value(a) for a in e.args]
            if isinstance(e, FloorDiv):
                return args[0] // args[1]
            if isinstance(e, Mod):
                return args[0] % args[1]
            if isinstance(e, sympy.Pow):
                return args[0] ** args[1]
            step = {
                sympy.Add: np.add,
                sympy.Mul: np.multiply,
                sympy.Max: np.maximum,
                sympy.Min: np.minimum,
            }[e.func]
            result = args[0]
            for arg in args[1:]:
                result = step(result, arg)
            return result

        return value(expr)

    def value(self, tree: Value, active: Array = True) -> Array:
        if isinstance(tree, Const):
            return converted(tree.value, tree.dtype)
        if isinstance(tree, IndexValue):
            return converted(self.expr(tree.expr), tree.dtype)
        if isinstance(tree, Cast):
            return converted(self.value(tree.value, active), tree.dtype)
        if isinstance(tree, Accumulator):
            return self.accumulators[tree.name]
        if isinstance(tree, Masked):
            condition = self.value(tree.condition, active)
            inside = self.value(tree.value, np.logical_and(active, condition))
            other = self.value(tree.other, np.logical_and(active, ~condition))
            return np.where(condition, inside, converted(other, tree.dtype.compute))
        if isinstance(tree, Call):
            args = [self.value(arg, active) for arg in tree.args]
            self._check_types(tree)
            with np.errstate(all="ignore"):
                return np.asarray(FUNCTIONS[tree.op].numpy(*args))
        assert isinstance(tree, Load)
        return self.load(tree, active)

    def _check_types(self, call: Call) -> None:
        function = FUNCTIONS[call.op]
        assert len(call.args) == function.arity, call
        args = call.args[1:] if call.op == "where" else call.args
        held = {arg.dtype.compute for arg in args}
        assert len(held) == 1, f"{call.op} of {held}"
        if function.result == "bool":
            assert call.dtype is DType.BOOL
        else:
            assert call.dtype.compute is args[0].dtype.compute, call

    def load(self, tree: Load, active: Array) -> Array:
        more: dict[str, Array] = {}
        for indirect in tree.indirect:
            position = self.value(indirect.value, active).astype(np.int64)
            extent = self.expr(indirect.size)
            if indirect.wrap:
                position = np.where(position < 0, position + extent, position)
            more[indirect.symbol.name] = position
        buffer = self.memory[tree.buffer]
        place = []
        for d, expr in enumerate(tree.index):
            index = np.asarray(self.expr(expr, more))
            bad = np.logical_and(active, (index < 0) | (index >= buffer.shape[d]))
            assert not bad.any(), f"{tree.buffer}[{tree.index}] out of bounds in dimension {d}"
            place.append(np.clip(index, 0, max(buffer.shape[d] - 1, 0)))
        if 0 in buffer.shape:
            return np.zeros(np.broadcast_shapes(*(p.shape for p in place)), buffer.dtype)
        return buffer[tuple(place)] if place else buffer[()]

    def full(self, array: Array) -> Array:
        return np.broadcast_to(array, self.shape)


class Interpreter:
    """Memory, and what operations do to it."""

    def __init__(self, lowered: Lowered, inputs: Mapping[str, Array], sizes: Mapping[str, int]):
        self.lowered = lowered
        self.sizes = dict(sizes)
        self.memory: dict[str, Array] = {}
        self.values: dict[str, Array] = {}
        for name, array in inputs.items():
            if name in lowered.buffers:
                self.memory[name] = converted(array, lowered.buffers[name].dtype)

    def run(self, op: Operation) -> None:
        getattr(self, f"_{type(op).__name__.lower()}")(op)

    def _points(self, axes: Sequence[Axis]) -> Points:
        return Points(axes, self.sizes, self.memory)

    def _write(self, store: Store, points: Points) -> None:
        buffer = self.lowered.buffers[store.buffer]
        held = store.value.dtype.compute
        assert held is buffer.dtype.compute, f"{store.buffer}: {held} into {buffer.dtype}"
        value = points.full(converted(points.value(store.value), buffer.dtype))
        shape = tuple(evaluate(s, self.sizes) for s in buffer.size)
        array = np.zeros(shape, numpy_type(buffer.dtype))
        count = np.zeros(shape, np.int64)
        place = tuple(points.full(points.expr(i)) for i in store.index)
        array[place] = value if place else value.reshape(())
        np.add.at(count, place, 1)
        assert (count == 1).all(), f"{store.buffer} is not written exactly once everywhere"
        self.memory[store.buffer] = array

    def _pointwise(self, op: Pointwise) -> None:
        self._write(op.store, self._points(op.axes))

    def _reduction(self, op: Reduction) -> None:
        whole = self._points((*op.axes, *op.reduction_axes))
        value = whole.full(converted(whole.value(op.value), op.accumulate))
        rows = self._points(op.axes)
        flat = value.reshape(*rows.shape, -1)
        with np.errstate(all="ignore"):
            rows.accumulators["acc"] = _reduced(op.kind, flat)
        self._write(op.store, rows)

    def _scan(self, op: Scan) -> None:
        points = self._points((*op.axes, op.scan_axis))
        value = points.full(converted(points.value(op.value), op.accumulate))
        function = {ReductionKind.SUM: np.cumsum, ReductionKind.PROD: np.cumprod}[op.kind]
        points.accumulators["acc"] = function(value, axis=-1)
        self._write(op.store, points)

    def _contraction(self, op: Contraction) -> None:
        a_points = self._points((*op.batch, *op.m, *op.k))
        b_points = self._points((*op.batch, *op.k, *op.n))
        out = self._points((*op.batch, *op.m, *op.n))
        a, b = a_points.full(a_points.value(op.a)), b_points.full(b_points.value(op.b))
        batch, k = out.shape[: len(op.batch)], len(op.k)
        steps = int(np.prod(a.shape[a.ndim - k :], dtype=np.int64))
        rows = int(np.prod(a.shape[len(batch) : a.ndim - k], dtype=np.int64))
        columns = int(np.prod(b.shape[len(batch) + k :], dtype=np.int64))
        product = a.reshape(*batch, rows, steps) @ b.reshape(*batch, steps, columns)
        out.accumulators["acc"] = product.reshape(out.shape)
        for store in op.stores:
            self._write(store, out)

    def _attention(self, op: Attention) -> None:
        batch = op.batch
        q, k, v = (
            points.full(points.value(tree))
            for points, tree in (
                (self._points((*batch, op.row, op.depth)), op.q),
                (self._points((*batch, op.column, op.depth)), op.k),
                (self._points((*batch, op.column, op.value_depth)), op.v),
            )
        )
        scores = op.scale * (q @ np.swapaxes(k, -1, -2))
        if op.mask is not None:
            points = self._points((*batch, op.row, op.column))
            mask = points.full(points.value(op.mask))
            scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
        if op.causal:
            rows, columns = scores.shape[-2:]
            seen = np.arange(columns)[None, :] <= np.arange(rows)[:, None]
            scores = np.where(seen, scores, -np.inf)
        top = scores.max(-1, keepdims=True)
        weights = np.exp(scores - np.where(np.isinf(top), 0, top))
        total = weights.sum(-1, keepdims=True)
        weights = weights / np.where(total == 0, 1, total)  # a row that is masked whole gives 0
        out = self._points((*batch, op.row, op.value_depth))
        out.accumulators["acc"] = weights @ v
        for store in op.stores:
            self._write(store, out)

    def _extern(self, op: Extern) -> None:
        graph = self.lowered.graph
        node = next(n for n in graph.nodes if n.name == op.node)
        values = dict(symbolic_values(graph, self.sizes))
        for name, view in op.inputs.items():
            points = self._points(view.axes)
            shape = tuple(evaluate(s, self.sizes) for s in graph.tensors[name].size)
            values[name] = points.full(points.value(view.value)).reshape(shape)
        made = reference(node, values, self.sizes)
        for output, buffer in zip(node.outputs, op.outputs, strict=True):
            self.memory[buffer] = converted(made[output], self.lowered.buffers[buffer].dtype)

    def outputs(self) -> dict[str, Array]:
        return {
            name: self.memory[buffer]
            for name, buffer in zip(self.lowered.graph.outputs, self.lowered.outputs, strict=True)
        }


def _reduced(kind: ReductionKind, values: Array) -> Array:
    if values.shape[-1] == 0:
        start = {ReductionKind.SUM: 0, ReductionKind.PROD: 1, ReductionKind.ALL: True}
        return np.full(values.shape[:-1], start.get(kind, False), values.dtype)
    functions = {
        ReductionKind.SUM: np.sum,
        ReductionKind.PROD: np.prod,
        ReductionKind.MAX: np.max,
        ReductionKind.MIN: np.min,
        ReductionKind.ANY: np.any,
        ReductionKind.ALL: np.all,
        ReductionKind.ARGMAX: np.argmax,
        ReductionKind.ARGMIN: np.argmin,
    }
    return functions[kind](values, axis=-1)


def run_lowered(
    lowered: Lowered, inputs: Mapping[str, Array], sizes: Mapping[str, int]
) -> dict[str, Array]:
    """The outputs, one operation after the other."""
    machine = Interpreter(lowered, inputs, sizes)
    for op in lowered.operations:
        machine.run(op)
    return machine.outputs()


def run_schedule(
    schedule: Schedule, inputs: Mapping[str, Array], sizes: Mapping[str, int]
) -> dict[str, Array]:
    """The outputs, with memory as the schedule plans it: what a kernel does not write to memory
    is gone after it, so is what is freed, and what another buffer's storage took over."""
    machine = Interpreter(schedule.lowered, inputs, sizes)
    tenant: dict[str, str] = {}
    for node in schedule.nodes:
        before = dict(machine.memory)
        taken = {schedule.storage[name]: name for name in node.writes if name in schedule.storage}
        for pool, name in taken.items():
            old = tenant.get(pool)
            if old is not None:
                assert old not in node.reads, f"{node.name} writes over {old} while it reads it"
                machine.memory.pop(old, None)
            tenant[pool] = name
        assert len(taken) == len([n for n in node.writes if n in schedule.storage])
        for name in node.reads:
            assert name in before, f"{node.name} reads {name}, which has no value"
        for member in node.members:
            machine.run(member)
        for name in set(machine.memory) - set(before) - set(node.writes):
            del machine.memory[name]
        for name in node.frees:
            machine.memory.pop(name)
    return machine.outputs()
