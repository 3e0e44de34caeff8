"""Operations and schedules run by the engine's own interpreter, as kernels are compared with it.

What the interpreter leaves to its caller is tested here: that every store writes each element of
its buffer once, and that nothing reads a buffer that has no value, or none any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scheduler.fusion.nodes import Schedule
from scheduler.ir.bindings import backed
from scheduler.ir.dtypes import DType
from scheduler.ir.index.functions import evaluate
from scheduler.ir.operations import (
    Axes,
    Extern,
    Lowered,
    Operation,
    Store,
    ViewOf,
    size_of_buffer,
)
from scheduler.ir.values import IndexValue
from scheduler.lowering.interpret import interpret, view_value
from scheduler.reference import evaluate as reference
from scheduler.reference import read_sizes, symbolic_values

Array = Any


def held(value: Array, dtype: DType) -> Array:
    """As the interpreter holds it: floats in float64, the rest in its own type."""
    return np.asarray(value).astype(dtype.wide)


class Machine:
    """Memory, and what operations do to it."""

    def __init__(
        self, lowered: Lowered, inputs: Mapping[str, Array], sizes: Mapping[str, int]
    ) -> None:
        self.lowered = lowered
        self.sizes = backed(sizes)
        self.memory: dict[str, Array] = {
            name: held(array, lowered.buffers[name].dtype)
            for name, array in inputs.items()
            if name in lowered.buffers
        }

    def run(self, operation: Operation) -> None:
        if isinstance(operation, Extern):
            self._extern(operation)
            return
        for store in operation.results:
            self._assert_writes_all_once(store, operation.points)
        self.memory |= interpret(operation, self.memory, self.lowered, self.sizes)

    def _assert_writes_all_once(self, store: Store, points: Axes) -> None:
        shape = tuple(
            evaluate(size, self.sizes) for size in self.lowered.buffers[store.buffer].size
        )
        views = [ViewOf(points, IndexValue(expr, DType.I64)) for expr in store.index]
        places = tuple(view_value(view, {}, self.lowered, self.sizes) for view in views)
        count = np.zeros(shape, np.int64)
        np.add.at(count, places, 1)
        assert (count == 1).all(), f"{store.buffer} is not written exactly once everywhere"

    def _extern(self, operation: Extern) -> None:
        graph = self.lowered.graph
        node = next(n for n in graph.nodes if n.name == operation.node)
        values = dict(symbolic_values(graph, self.sizes))
        for name, view in operation.inputs.items():
            value = view_value(view, self.memory, self.lowered, self.sizes)
            if name in graph.tensors:
                shape = tuple(evaluate(s, self.sizes) for s in graph.tensors[name].size)
                values[name] = value.reshape(shape)
            else:
                values[name] = value.item()
        made = reference(node, values, self.sizes, graph=graph)
        self.sizes |= read_sizes(graph, made)
        for output, buffer in zip(node.outputs, operation.outputs, strict=False):
            self.memory[buffer] = held(made[output], self.lowered.buffers[buffer].dtype)
        for buffer in operation.outputs[len(node.outputs) :]:
            self.memory[buffer] = np.asarray(self.sizes[size_of_buffer(buffer)])

    def outputs(self) -> dict[str, Array]:
        return {
            name: self.memory[buffer]
            for name, buffer in zip(self.lowered.graph.outputs, self.lowered.outputs, strict=True)
        }


def run_lowered(
    lowered: Lowered, inputs: Mapping[str, Array], sizes: Mapping[str, int]
) -> dict[str, Array]:
    """The outputs, one operation after the other."""
    machine = Machine(lowered, inputs, sizes)
    for operation in lowered.operations:
        machine.run(operation)
    return machine.outputs()


def run_schedule(
    schedule: Schedule, inputs: Mapping[str, Array], sizes: Mapping[str, int]
) -> dict[str, Array]:
    """The outputs, with memory as the schedule plans it: what a kernel does not write to memory
    is gone after it, so is what is freed, and what another buffer's storage took over."""
    machine = Machine(schedule.lowered, inputs, sizes)
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
