"""The device function of a reduction whose rows have one block at most: its statements.

Elements that a thread reads more than once are all read first, so that the reads are in flight
together; threads without a row read as the first row's do, and store nothing. In rows that are cut,
a loop goes through the packs first, then through the steps before and after them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from scheduler.codegen.cpp.values import upcast
from scheduler.codegen.loops.precision import precision_roots
from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.printing.lines import Lines
from scheduler.codegen.rocm.loop_versions import LoopVersion
from scheduler.codegen.rocm.reduction.online_softmax import (
    add_element,
    batched_elements,
    batched_steps,
    exponential_pairs,
    pair_op,
)
from scheduler.codegen.rocm.reduction.split_body import cut_row, unroll
from scheduler.codegen.rocm.reduction.stages import (
    Stage,
    accumulate,
    accumulate_unordered,
    combine,
    finds_index,
    init,
)
from scheduler.ir.dtypes import DType
from scheduler.ir.values import Accumulator, Load, loads

if TYPE_CHECKING:
    from scheduler.codegen.rocm.reduction.template import ReductionTemplate

# Registers of a thread for prefetched elements.
_REGISTER_BYTES = 192


class RowBody:
    """Prints the device function's statements; the threads of a row are ``kLanes`` in them.

    Sums go through ``scratch`` if a row has more than one wave.
    """

    def __init__(
        self, template: ReductionTemplate, way: LoopVersion, indent: int = 1, *, scratch: bool
    ) -> None:
        self.template = template
        self.nest = template.nest
        self.lines = template.lines(indent)
        self.printer = template.printer(self.lines, way)
        self._stages = template.stages_of(way.steps)
        looping = sum(bool(stage.loop) for stage in self._stages)
        self.printer.streamed_pointers = template.streamed_pointers(
            kept=way.steps > 0 or looping == 1
        )
        self.printer.values.allow_fast(precision_roots(self.nest))
        self._way = way
        self._vector = way.vector
        self._kept = template.shared_loads(way) if way.steps else []
        self._later = self._find_prefetched(way.steps) if way.steps else {}
        self._edges: dict[Load, str] = {}
        self._accumulators: dict[str, str] = {}
        self._exponentials = {
            name: found for stage in self._stages for name, found in stage.exponentials.items()
        }
        self._place = "[j]" if way.vector > 1 else ""  # of an element in a pack
        self._rows = 0
        self._has_scratch = scratch
        self._exchanges = 0

    def text(self) -> Lines:
        self.printer.decode("xindex", self.nest.outer)
        if self._way.cut:
            self._cut()
        if self._kept:
            self._declare_kept()
            self._prefetch([load for load in self._kept if not load.indirect])
        for number, stage in enumerate(self._stages):
            following = [load for load, at in self._later.items() if at == number + 1]
            self._stage(stage, following)
        return self.lines

    def _cut(self) -> None:
        self.lines.add(cut_row(self.printer, "0", "rnumel" if self._kept else "rend"), ())
        if self._kept:
            self.lines.add("constexpr int kEdges = kiln::most_edges<kVector, kLanes>;", ())

    def _find_prefetched(self, steps: int) -> dict[Load, int]:
        """Return the elements that only a later loop reads (weights of a norm), as far as registers
        allow: their reads are in flight while the sums before that loop are combined."""
        each = self._vector * steps
        left = _REGISTER_BYTES - sum(each * load.dtype.itemsize for load in self._kept)
        found = {}
        for load, number in self.template.later_loads(self._way).items():
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
            if self._way.cut:
                self._edges[load] = f"edge{number}"
                self.lines.add(f"{cpp} edge{number}[kEdges];", ())
        self.printer.keep_in_registers(arrays)

    def _prefetch(self, ahead: list[Load]) -> None:
        """Issue all reads before anything waits for one; a read through an index from memory is
        done where it is first needed."""
        if not ahead:
            return
        readers = [s for stage in self.template.stages for s in stage.loop]
        nodes = {
            load: next(s.store.nodes for s in readers if load in set(loads(s.value)))
            for load in ahead
        }
        with self._steps(stores=False), self.printer.values.scope():
            self.printer.decode("rindex", self.nest.inner)
            for load in ahead:
                self.printer.read_kept(load, nodes[load])
        if self._way.cut:
            with self._each_edge(stores=False):
                for load in ahead:
                    self.printer.read_kept(load, nodes[load])

    def _stage(self, stage: Stage, following: list[Load]) -> None:
        """Print a stage; ``following`` are the next stage's reads, in flight by then."""
        for statement in stage.reductions:
            name = f"acc{len(self._accumulators)}"
            self._accumulators[statement.name] = name
            operation, cpp = self._combine_op(statement)
            self.lines.add(f"{cpp} {name} = {operation}::zero;", statement.store.nodes)
        if stage.loop:
            self._loop(stage)
        self._prefetch(following)
        for statement in stage.reductions:
            self._combine(statement)
            if statement.name not in stage.points:
                self._bind_reduction(statement, self._result(statement))
        tops = {found.top: name for name, found in stage.exponentials.items()}
        for statement in stage.after:
            if statement.kind is None:
                self._print_row(statement)
            elif statement.name in tops:
                pair_of_both = self._accumulators[tops[statement.name]]
                self._bind_reduction(statement, f"{pair_of_both}.top()")
            else:
                point = self.printer.values.value(stage.points[statement.name])
                self._bind_reduction(
                    statement, f"{self._accumulators[statement.name]}.about({point})"
                )

    def _combine_op(self, statement: Statement) -> tuple[str, str]:
        """Return the operation and the type of the values that it combines."""
        if statement.name not in self._exponentials:
            return combine(statement)
        power = self._exponentials[statement.name].power
        return pair_op(statement, fast=self.printer.values.is_fast(power))

    def _loop(self, stage: Stage) -> None:
        stores = any(statement.kind is None for statement in stage.loop)
        if self._kept:
            with self._steps(stores=stores):
                self._step_body(stage)
        else:
            first, end = self._first, self._end(stores=True)
            if stage.exponentials and self._vector == 1:
                first = self._grouped_steps(stage)
            step = self._step_lines(stage)
            if first == self._first:
                streamed = bool(self.printer.streamed_pointers)
                unroll(self.lines, stage, step, packed=self._vector > 1, streamed=streamed)
            head = f"for (index_t rindex = {first}; rindex < {end}; rindex += {self._stride})"
            with self.lines.block(head):
                self.lines.extend(step)
        for statement in stage.reductions:
            if finds_index(statement.kind):
                name = self._accumulators[statement.name]
                end = self._end(stores=stores or not self._kept)
                self.lines.add(init(statement, name, self._first, end), statement.store.nodes)
        if self._way.cut:
            with self._each_edge(stores=stores):
                self.printer.run(stage.loop, self._edge_sink)

    @property
    def _first(self) -> str:
        """Return the thread's first step along the row."""
        if self._way.cut:
            return "cut.first + lane * kVector"
        return "lane * kVector" if self._vector > 1 else "lane"

    def _end(self, *, stores: bool) -> str:
        """Return where a thread's steps end; with ``stores`` at once if it has no row."""
        if self._way.cut:
            return "cut.last"
        return "rend" if stores else "rnumel"

    @property
    def _stride(self) -> str:
        return "kLanes * kVector" if self._vector > 1 else "kLanes"

    @contextmanager
    def _steps(self, *, stores: bool) -> Iterator[None]:
        """Run the lines inside for each step ``k`` of a thread; with ``stores`` if it has a row."""
        self.lines.add("#pragma unroll", ())
        with self.lines.block("for (int k = 0; k < kSteps; ++k)"):
            self.lines.add(f"const index_t rindex = {self._first} + k * ({self._stride});", ())
            active = "active && " if self._way.cut and stores else ""
            with self.lines.block(f"if ({active}rindex < {self._end(stores=stores)})"):
                yield

    @contextmanager
    def _each_edge(self, *, stores: bool) -> Iterator[None]:
        """Run the lines inside at each step of a thread that is in no pack."""
        if not self._kept:
            head = "for (index_t edge = lane; edge < cut.edges; edge += kLanes)"
            with self.lines.block(head), self._at_edge("edge", {}):
                yield
            return
        self.lines.add("#pragma unroll", ())
        active = "active && " if stores else ""
        with (
            self.lines.block("for (int k = 0; k < kEdges; ++k)"),
            self.lines.block(f"if ({active}lane + k * kLanes < cut.edges)"),
            self._at_edge("lane + k * kLanes", self._edges),
        ):
            yield

    @contextmanager
    def _at_edge(self, number: str, kept: Mapping[Load, str]) -> Iterator[None]:
        with self.printer.scalar_mode(kept), self.printer.values.scope():
            self.lines.add(f"const index_t rindex = cut.edge({number});", ())
            self.printer.decode("rindex", self.nest.inner)
            yield

    def _step_lines(self, stage: Stage) -> Lines:
        step = self.lines.new_block()
        outside, self.lines = self.lines, step
        self.printer.lines = self.printer.values.lines = step
        self._step_body(stage)
        self.lines = self.printer.lines = self.printer.values.lines = outside
        return step

    def _grouped_steps(self, stage: Stage) -> str:
        """Print steps whose elements are added together, for rows that are read one by one; return
        the first remaining step."""
        begin = f"rgroup{len(self._accumulators)}"
        with batched_steps(
            self.lines, exponential_pairs(stage, self._accumulators), begin, self._first
        ):
            self._place = "[k]"
            self._step_body(stage)
            self._place = ""
        self.lines.add("#pragma unroll 1", ())
        return begin

    def _step_body(self, stage: Stage) -> None:
        pairs = exponential_pairs(stage, self._accumulators) if self._vector > 1 else {}
        with self.printer.values.scope():
            self.printer.decode("rindex", self.nest.inner)
            with batched_elements(self.lines, pairs, "kVector"):
                self.printer.run(stage.loop, self._sink)

    def _sink(self, statement: Statement) -> None:
        if statement.kind is None:
            self.printer.store(statement)
            return
        values = self.printer.values
        with values.mark_nodes(statement.store.nodes):
            text = values.value(statement.value)
            name = self._accumulators[statement.name]
            if statement.name in self._exponentials:
                values.lines.add(add_element(statement, name, text, "", self._place))
                return
            values.lines.add(accumulate(statement, name, text, packed=self._vector > 1))

    def _edge_sink(self, statement: Statement) -> None:
        if statement.kind is None:
            self.printer.store(statement)
            return
        values = self.printer.values
        with values.mark_nodes(statement.store.nodes):
            text = values.value(statement.value)
            name = self._accumulators[statement.name]
            if statement.name in self._exponentials:
                values.lines.add(add_element(statement, name, text, "", ""))
                return
            values.lines.add(accumulate_unordered(statement, name, text))

    def _combine(self, statement: Statement) -> None:
        name = self._accumulators[statement.name]
        operation, _ = self._combine_op(statement)
        operands = f"{name}, {operation}(), {self._scratch()}"
        text = f"{name} = kiln::lanes_exchange<kLanes, kThreads>({operands});"
        self.lines.add(text, statement.store.nodes)

    def _result(self, statement: Statement) -> str:
        name = self._accumulators[statement.name]
        return f"static_cast<int64_t>({name}.index)" if finds_index(statement.kind) else name

    def _bind_reduction(self, statement: Statement, result: str) -> None:
        """Bind the result of a reduction, ``result``, for its store and for later reads."""
        dtype = DType.I64 if finds_index(statement.kind) else statement.accumulate
        values = self.printer.values
        values.bind(Accumulator(dtype.compute_dtype, statement.name), result)
        values.bind(Accumulator(dtype, statement.name), result)
        with values.scope():
            values.bind(Accumulator(dtype.compute_dtype), result)
            values.bind(Accumulator(dtype), result)
            kept = self._write_row(statement)
        store = statement.store
        values.bind(Load(store.buffer, store.index, self._dtype(statement)), kept)

    def _scratch(self) -> str:
        """Return one of two halves in turn: the barrier of one exchange comes after the reads of
        the previous one."""
        second = self._has_scratch and self._exchanges % 2 == 1
        self._exchanges += 1
        return "scratch + sizeof(scratch) / 2" if second else "scratch"

    def _print_row(self, statement: Statement) -> None:
        kept = self._write_row(statement)
        store = statement.store
        values = self.printer.values
        values.bind(Load(store.buffer, store.index, self._dtype(statement)), kept)

    def _dtype(self, statement: Statement) -> DType:
        return self.nest.buffer(statement.store.buffer).dtype

    def _write_row(self, statement: Statement) -> str:
        """Let one thread of the row write; all of them know the value, whose text is returned."""
        values, store = self.printer.values, statement.store
        dtype = self._dtype(statement)
        name = f"row{self._rows}"
        self._rows += 1
        with values.mark_nodes(store.nodes):
            element = values.element(store.value, dtype)
            self.lines.add(f"const {dtype.cpp} {name} = {element};")
            if store.buffer in self.nest.outputs:
                pointer = self.template.memory[store.buffer].pointer
                place = f"{pointer}[{values.store_offset(store)}]"
                self.lines.add(f"if (active && lane == 0) {place} = {name};")
        return upcast(name, dtype)
