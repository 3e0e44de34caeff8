"""The device function of a reduction whose rows have one block at most: its statements.

What a thread reads more than once is read first, all of it, so that its reads are under way
together; threads without a row do as the first one's do, and store nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from scheduler.codegen.cpp.values import hold
from scheduler.codegen.loops.precision import roots
from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.printing.lines import Lines
from scheduler.codegen.rocm.reduction_body import unroll
from scheduler.codegen.rocm.stages import Stage, advanced, begun, combination, finds_index
from scheduler.ir.dtypes import DType
from scheduler.ir.values import Accumulator, Load, loads

if TYPE_CHECKING:
    from scheduler.codegen.rocm.reduction import ReductionTemplate

# Of a thread, for what is read before it is needed.
_REGISTER_BYTES = 192


class RowBody:
    """Prints the device function's statements; the threads of a row are ``kLanes`` in them.

    What a thread reads more than once stays in registers if it has ``steps`` along the row; 0
    where it reads it again. Sums go by way of ``scratch`` where a row has more than one wave.
    """

    def __init__(
        self,
        template: ReductionTemplate,
        vector: int,
        steps: int,
        indent: int = 1,
        *,
        scratch: bool,
    ) -> None:
        self.template = template
        self.nest = template.nest
        self.lines = template.lines(indent)
        self.printer = template.printer(self.lines, vector)
        self.printer.read_once = template.read_once(kept=steps > 0)
        self.printer.values.allow_fast(roots(self.nest))
        self._vector = vector
        self._kept = template.shared_loads(vector) if steps else []
        self._later = self._read_early(steps) if steps else {}
        self._accumulators: dict[str, str] = {}
        self._rows = 0
        self._has_scratch = scratch
        self._exchanges = 0

    def text(self) -> Lines:
        self.printer.decode("xindex", self.nest.outer)
        if self._kept:
            self._declare_kept()
            self._read_ahead([load for load in self._kept if not load.indirect])
        for number, stage in enumerate(self.template.stages):
            following = [load for load, at in self._later.items() if at == number + 1]
            self._stage(stage, following)
        return self.lines

    def _read_early(self, steps: int) -> dict[Load, int]:
        """What a later loop alone reads (weights of a norm), as far as registers go: it is under
        way while the sums before that loop are combined."""
        each = self._vector * steps
        left = _REGISTER_BYTES - sum(each * load.dtype.itemsize for load in self._kept)
        found = {}
        for load, number in self.template.later_loads(self._vector).items():
            left -= each * load.dtype.itemsize
            if left >= 0 and not load.indirect:
                found[load] = number
        return found

    def _declare_kept(self) -> None:
        arrays: dict[Load, str] = {}
        for number, load in enumerate((*self._kept, *self._later)):
            arrays[load] = f"kept{number}"
            cpp = load.dtype.cpp
            element = f"kiln::Pack<{cpp}, {self._vector}>" if self._vector > 1 else cpp
            self.lines.add(f"{element} kept{number}[kSteps];", ())
        self.printer.keep_in_registers(arrays)

    def _read_ahead(self, ahead: list[Load]) -> None:
        """All of it under way before anything waits for it; what lies at places that are read from
        memory is read where it is first needed."""
        if not ahead:
            return
        readers = [s for stage in self.template.stages for s in stage.loop]
        nodes = {
            load: next(s.store.nodes for s in readers if load in set(loads(s.value)))
            for load in ahead
        }
        with self._steps("rnumel"), self.printer.values.scope():
            self.printer.decode("rindex", self.nest.inner)
            for load in ahead:
                self.printer.read_kept(load, nodes[load])

    def _stage(self, stage: Stage, following: list[Load]) -> None:
        """``following``: what the next one reads, to be under way by then."""
        for statement in stage.reductions:
            name = f"acc{len(self._accumulators)}"
            self._accumulators[statement.name] = name
            operation, cpp = combination(statement)
            self.lines.add(f"{cpp} {name} = {operation}::zero;", statement.store.nodes)
        if stage.loop:
            self._loop(stage)
        self._read_ahead(following)
        for statement in stage.reductions:
            self._combine(statement)
        for statement in stage.after:
            self._once_a_row(statement)

    def _loop(self, stage: Stage) -> None:
        stores = any(statement.kind is None for statement in stage.loop)
        if self._kept:
            end = "rend" if stores else "rnumel"
            with self._steps(end):
                self._at_each_step(stage)
        else:
            end = "rend"
            step = self._one_step(stage)
            streamed = bool(self.printer.read_once)
            unroll(self.lines, stage, step, packed=self._vector > 1, streamed=streamed)
            head = f"for (index_t rindex = {self._first}; rindex < rend; rindex += {self._stride})"
            with self.lines.block(head):
                self.lines.extend(step)
        for statement in stage.reductions:
            if finds_index(statement.kind):
                name = self._accumulators[statement.name]
                self.lines.add(begun(statement, name, self._first, end), statement.store.nodes)

    @property
    def _first(self) -> str:
        """The thread's first step along the row."""
        return "lane * kVector" if self._vector > 1 else "lane"

    @property
    def _stride(self) -> str:
        return "kLanes * kVector" if self._vector > 1 else "kLanes"

    @contextmanager
    def _steps(self, end: str) -> Iterator[None]:
        """Lines inside run for each step ``k`` of a thread, as far as ``end``."""
        self.lines.add("#pragma unroll", ())
        with self.lines.block("for (int k = 0; k < kSteps; ++k)"):
            self.lines.add(f"const index_t rindex = {self._first} + k * ({self._stride});", ())
            with self.lines.block(f"if (rindex < {end})"):
                yield

    def _one_step(self, stage: Stage) -> Lines:
        step = self.lines.nested()
        outside, self.lines = self.lines, step
        self.printer.lines = self.printer.values.lines = step
        self._at_each_step(stage)
        self.lines = self.printer.lines = self.printer.values.lines = outside
        return step

    def _at_each_step(self, stage: Stage) -> None:
        with self.printer.values.scope():
            self.printer.decode("rindex", self.nest.inner)
            self.printer.run(stage.loop, self._sink)

    def _sink(self, statement: Statement) -> None:
        if statement.kind is None:
            self.printer.store(statement)
            return
        values = self.printer.values
        with values.computing(statement.store.nodes):
            text = values.value(statement.value)
            name = self._accumulators[statement.name]
            values.lines.add(advanced(statement, name, text, packed=self._vector > 1))

    def _combine(self, statement: Statement) -> None:
        name = self._accumulators[statement.name]
        operation, _ = combination(statement)
        operands = f"{name}, {operation}(), {self._scratch()}"
        text = f"{name} = kiln::lanes_exchange<kLanes, kThreads>({operands});"
        self.lines.add(text, statement.store.nodes)
        index = f"static_cast<int64_t>({name}.index)"
        result = index if finds_index(statement.kind) else name
        dtype = DType.I64 if finds_index(statement.kind) else statement.accumulate
        values = self.printer.values
        values.bind(Accumulator(dtype.compute, statement.name), result)
        values.bind(Accumulator(dtype, statement.name), result)
        with values.scope():
            values.bind(Accumulator(dtype.compute), result)
            values.bind(Accumulator(dtype), result)
            kept = self._write_row(statement)
        store = statement.store
        values.bind(Load(store.buffer, store.index, self._dtype(statement)), kept)

    def _scratch(self) -> str:
        """Of two halves by turns: the barrier of one exchange is behind what the last one read."""
        second = self._has_scratch and self._exchanges % 2 == 1
        self._exchanges += 1
        return "scratch + sizeof(scratch) / 2" if second else "scratch"

    def _once_a_row(self, statement: Statement) -> None:
        kept = self._write_row(statement)
        store = statement.store
        values = self.printer.values
        values.bind(Load(store.buffer, store.index, self._dtype(statement)), kept)

    def _dtype(self, statement: Statement) -> DType:
        return self.nest.buffer(statement.store.buffer).dtype

    def _write_row(self, statement: Statement) -> str:
        """One thread of the row writes; all of them know the value, whose text is returned."""
        values, store = self.printer.values, statement.store
        dtype = self._dtype(statement)
        name = f"row{self._rows}"
        self._rows += 1
        with values.computing(store.nodes):
            element = values.element(store.value, dtype)
            self.lines.add(f"const {dtype.cpp} {name} = {element};")
            if store.buffer in self.nest.outputs:
                pointer = self.template.memory[store.buffer].pointer
                place = f"{pointer}[{values.place(store)}]"
                self.lines.add(f"if (active && lane == 0) {place} = {name};")
        return hold(name, dtype)
