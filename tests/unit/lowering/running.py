"""Operations and schedules run by the engine's own interpreter, as kernels are compared with it.

What the interpreter leaves to its caller is tested here: that every store writes each element of
its buffer once, and that nothing reads a buffer that has no value, or none any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from scheduler.fusion.nodes import Schedule
from scheduler.ir.bindings import backed_bindings
from scheduler.ir.dtypes import DType
from scheduler.ir.index.functions import evaluate
from scheduler.ir.operations import (
    Axes,
    Extern,
    GroupKind,
    LoopBegin,
    LoopEnd,
    Lowered,
    OperandView,
    Operation,
    Store,
    buffer_size_symbol,
    loop_spans,
)
from scheduler.ir.values import IndexValue
from scheduler.lowering.interpret import interpret, view_value
from scheduler.reference import evaluate as reference
from scheduler.reference import read_sizes, symbolic_values

Array = Any


def held(value: Array, dtype: DType) -> Array:
    """As the interpreter holds it: floats in float64, the rest in its own type."""
    return np.asarray(value).astype(dtype.reference_numpy)


class Machine:
    """Memory, and what operations do to it."""

    def __init__(
        self, lowered: Lowered, inputs: Mapping[str, Array], sizes: Mapping[str, int]
    ) -> None:
        self.lowered = lowered
        self.sizes = backed_bindings(sizes)
        self.steps: dict[str, int] = {}
        self.memory: dict[str, Array] = {
            name: held(array, lowered.buffers[name].dtype)
            for name, array in inputs.items()
            if name in lowered.buffers
        }

    def run(self, operation: Operation) -> None:
        if isinstance(operation, Extern):
            self._extern(operation)
            return
        if isinstance(operation, LoopBegin):
            self._step(operation)
            return
        for store in operation.results:
            self._assert_writes_all_once(store, operation.points)
        self.memory |= interpret(operation, self.memory, self.lowered, self.sizes)

    def _assert_writes_all_once(self, store: Store, points: Axes) -> None:
        shape = tuple(
            evaluate(size, self.sizes) for size in self.lowered.buffers[store.buffer].size
        )
        views = [OperandView(points, IndexValue(expr, DType.I64)) for expr in store.index]
        places = tuple(view_value(view, {}, self.lowered, self.sizes) for view in views)
        count = np.zeros(shape, np.int64)
        np.add.at(count, places, 1)
        assert (count == 1).all(), f"{store.buffer} is not written exactly once everywhere"

    def goes_on(self, operation: Operation) -> bool:
        """Whether a loop's mark is followed by a step of its body."""
        if isinstance(operation, LoopEnd):
            return self._ended_step(operation)
        assert isinstance(operation, LoopBegin)
        self.steps[operation.name] = 0
        for before, inside in operation.carried:
            self.memory[inside] = self.memory[before]
        return self._is_due(operation, operation.condition)

    def _is_due(self, begin: LoopBegin, condition: str) -> bool:
        done = self.steps[begin.name]
        assert done < 10_000
        if begin.steps is not None:
            return done < evaluate(begin.steps, self.sizes)
        return bool(self.memory[condition].item())

    def _step(self, begin: LoopBegin) -> None:
        """What the body of the present step reads."""
        for whole, part in begin.slices:
            self.memory[part] = self.memory[whole][begin.first + self.steps[begin.name]]

    def _ended_step(self, end: LoopEnd) -> bool:
        begin = end.begin
        step = self.steps[begin.name]
        made = {part: self.memory[part] for part, _ in end.slices}
        for (part, whole), size in zip(end.slices, self._wholes(end), strict=True):
            if step == 0:
                self.memory[whole] = np.zeros(size, made[part].dtype)
            self.memory[whole][step] = made[part]
        for (_, inside), (following, after) in zip(begin.carried, end.carried, strict=True):
            assert following in self.memory
            self.memory[inside] = self.memory[after] = self.memory[following]
        self.steps[begin.name] += 1
        return self._is_due(begin, end.condition)

    def ran_no_step(self, end: LoopEnd) -> None:
        for (before, _), (_, after) in zip(end.begin.carried, end.carried, strict=True):
            self.memory[after] = self.memory[before]
        for (_, whole), size in zip(end.slices, self._wholes(end), strict=True):
            self.memory[whole] = np.zeros(size)

    def _wholes(self, end: LoopEnd) -> list[tuple[int, ...]]:
        sizes = [self.lowered.buffers[whole].size for _, whole in end.slices]
        return [tuple(evaluate(one, self.sizes) for one in size) for size in sizes]

    def in_order(self, operations: Sequence[Operation]) -> Iterator[int]:
        """Places of operations (the first ones of kernels) as they run, those of bodies again
        for each step."""
        ends = dict(loop_spans(operations))
        begins = {end: begin for begin, end in ends.items()}
        place = 0
        while place < len(operations):
            operation = operations[place]
            if place in ends and not self.goes_on(operation):
                place = ends[place]
                last = operations[place]
                assert isinstance(last, LoopEnd)
                self.ran_no_step(last)
            elif place in begins and self.goes_on(operation):
                place = begins[place]
                yield place
            elif place not in begins:
                yield place
            place += 1

    def _extern(self, operation: Extern) -> None:
        graph = self.lowered.graph
        node = graph.all_nodes_by_name[operation.node]
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
            self.memory[buffer] = np.asarray(self.sizes[buffer_size_symbol(buffer)])

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
    for place in machine.in_order(lowered.operations):
        machine.run(lowered.operations[place])
    return machine.outputs()


def run_schedule(
    schedule: Schedule, inputs: Mapping[str, Array], sizes: Mapping[str, int]
) -> dict[str, Array]:
    """The outputs, with memory as the schedule plans it: what a kernel does not write to memory
    is gone after it, so is what is freed, and what another buffer's storage took over."""
    machine = Machine(schedule.lowered, inputs, sizes)
    tenant: dict[str, str] = {}
    for place in machine.in_order([node.members[0] for node in schedule.nodes]):
        node = schedule.nodes[place]
        before = dict(machine.memory)
        taken = {schedule.storage[name]: name for name in node.writes if name in schedule.storage}
        for pool, name in taken.items():
            old = tenant.get(pool)
            if old is not None and old != name:
                assert old not in node.reads, f"{node.name} writes over {old} while it reads it"
                machine.memory.pop(old, None)
            tenant[pool] = name
        assert len(taken) == len([n for n in node.writes if n in schedule.storage])
        if node.kind is GroupKind.LOOP:
            machine.run(node.members[0])
            continue
        for name in node.reads:
            assert name in before, f"{node.name} reads {name}, which has no value"
        for member in node.members:
            machine.run(member)
        for name in set(machine.memory) - set(before) - set(node.writes):
            del machine.memory[name]
        for name in node.frees:
            machine.memory.pop(name)
    return machine.outputs()
