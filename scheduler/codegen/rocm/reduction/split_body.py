"""The device functions of reductions whose rows are shared by blocks, or lie side by side.

A stage's reductions take two steps: each block reduces its part of a row and writes its result to
the workspace (``save``); every block of the next launch combines all parts of its row, in one
order, and continues from there. So each launch begins with the results of all stages before it, and
the last one does the rest, without sums: stores of rows, or of elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.codegen.cpp.nest import NestPrinter
from scheduler.codegen.cpp.values import convert, upcast
from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.printing.lines import Lines
from scheduler.codegen.printing.values import Memory
from scheduler.codegen.rocm.reduction.online_softmax import (
    add_element,
    batched_elements,
    batched_steps,
    exponential_pairs,
    pair_op,
)
from scheduler.codegen.rocm.reduction.stages import (
    Stage,
    SumOfExponentials,
    accumulate,
    accumulate_unordered,
    combine,
    finds_index,
    init,
)
from scheduler.ir.dtypes import DType
from scheduler.ir.values import Accumulator, Load

_IN_FLIGHT, _SINGLE_IN_FLIGHT = 4, 8  # steps of a thread whose reads are in flight at once
_STREAMED = 8  # the same for packs that are read once, and evicted from caches first
# The index of a strided column of a thread; the last column again if there are no more.
STRIDED_COLUMN = "kiln::index_min(row + j * kAcross, xnumel - 1)"
_LONG_STEP = 24  # lines of a step that is not unrolled


@dataclass(frozen=True)
class Split:
    """How a row's steps are divided.

    ``lanes`` threads of a block and ``split`` blocks share a row; a thread takes ``vector``
    neighbouring steps at a time. With ``columns`` the threads of a block that are side by side take
    that many neighbouring rows each instead, and ``lanes`` threads, one behind the other, share
    those; 0 without. With ``cut`` rows begin anywhere, and are cut at aligned packs; with
    ``strided`` a thread's columns are spaced by the number of threads side by side: elements that
    no pack can read are read by neighbouring threads.
    """

    lanes: int
    vector: int = 1
    columns: int = 0
    split: int = 1
    cut: bool = False
    strided: bool = False

    @property
    def slots(self) -> int:
        """Return the workspace slots for each row's result: one per part, plus one for the total
        with columns."""
        return self.split + 1 if self.columns else self.split


@dataclass(frozen=True)
class Partials:
    """Workspace offsets of the blocks' results of each reduction, by name: bytes per row and slot;
    ``row_bytes`` for all of them together."""

    offsets: Mapping[str, int]
    row_bytes: int


def accumulator_bytes(statement: Statement, stage: Stage) -> int:
    """Return the maximum bytes of a reduction's combined value; a power of two."""
    if finds_index(statement.kind):
        return 16  # kiln::Found: a value and an index of 8 bytes
    each = statement.accumulate.compute_dtype.itemsize
    if statement.name in stage.exponentials:
        return 2 * each
    return 4 * each if statement.name in stage.points else each


def plan_partials(stages: tuple[Stage, ...]) -> Partials:
    """Return the offsets, widest first, so that each is aligned."""
    sizes = {s.name: accumulator_bytes(s, stage) for stage in stages for s in stage.reductions}
    offsets, end = {}, 0
    for name in sorted(sizes, key=lambda name: sizes[name], reverse=True):
        offsets[name] = end
        end += sizes[name]
    return Partials(offsets, end)


def unroll(lines: Lines, stage: Stage, step: Lines, *, packed: bool, streamed: bool) -> None:
    """Unroll the stage's loop, whose steps are ``step``, if that is worth it. ``streamed``: its
    packs are read once."""
    if len(step) <= _LONG_STEP and not any(s.kind is None for s in stage.loop):
        packs = _STREAMED if streamed else _IN_FLIGHT
        lines.add(f"#pragma unroll {packs if packed else _SINGLE_IN_FLIGHT}", ())


def cut_row(printer: NestPrinter, begin: str, end: str) -> str:
    """Return the statement that cuts these steps of a row into packs, and those before and after
    them."""
    assert printer.cut is not None
    row = printer.index(printer.cut)
    return f"const auto cut = kiln::cut_row<kVector, index_t>({row}, {begin}, {end});"


class SplitBody:
    """Prints one device function: the stages in execution order."""

    def __init__(
        self,
        printer: NestPrinter,
        memory: Mapping[str, Memory],
        shares: Split,
        kept: Partials,
    ) -> None:
        self.printer = printer
        self.nest = printer.nest
        self.lines = printer.lines
        self._memory = memory
        self.shares = shares
        self._partials = kept
        self._accumulators: dict[str, str] = {}
        self._points: dict[str, Load] = {}
        self._exponentials: dict[str, SumOfExponentials] = {}
        self._tops: dict[str, str] = {}  # by reduction name: the one that gives its result too
        self._place = "[j]" if shares.vector > 1 else ""  # of an element in a pack
        self._rows = 0
        self._cut = printer.cut is not None
        self._at = "" if not shares.columns else "[j]" if shares.columns > 1 else "[0]"

    # -- stages ----------------------------------------------------------------------------------

    def outer(self) -> None:
        """Define the variables of the thread's row, or of its first one."""
        self.printer.decode("xindex", self.nest.outer)
        if self._cut:
            self.lines.add(cut_row(self.printer, "rbegin", "rend"), ())

    def reduce(self, stage: Stage) -> None:
        """Print the stage's loop over the block's part of the row, combined over the block."""
        self._declare(stage)
        if stage.loop:
            self._loop(stage)
        self._combine(stage)

    def save(self, stage: Stage, slot: str = "part") -> None:
        """Save the block's results to the workspace."""
        with self.lines.block("if (active && lane == 0)"):
            for statement in stage.reductions:
                name = f"{self._accumulators[statement.name]}{self._at}"
                self._each_column(f"{self.partial(statement, slot)} = {name};", statement)

    def gather(self, stage: Stage) -> None:
        """Combine the results of all parts of the row, which the blocks of the previous launch
        saved."""
        self._declare(stage)
        self.lines.add("#pragma unroll", ())
        with self.lines.block("for (int i = lane; i < kSplit; i += kLanes)"):
            for statement in stage.reductions:
                operation, _ = self._combine_op(statement)
                name = f"{self._accumulators[statement.name]}{self._at}"
                partial = self.partial(statement, "i")
                self._each_column(f"{name} = {operation}()({name}, {partial});", statement)
        self._combine(stage)

    def recall(self, stage: Stage) -> None:
        """Load the results that ``gather`` saved."""
        self._declare(stage)
        for statement in stage.reductions:
            name = f"{self._accumulators[statement.name]}{self._at}"
            total = self.partial(statement, "kSplit")
            self._each_column(f"{name} = {total};", statement)
        self._bind_results(stage)

    def finish(self, stage: Stage, *, stores: bool) -> None:
        """Print the computations done once per row; without ``stores`` they were stored before."""
        first = (s for s in stage.reductions if s.name not in stage.points)
        statements = (*first, *stage.after)
        if not statements:
            return
        names = {}
        for statement in statements:
            names[statement.name] = f"row{self._rows}"
            self._rows += 1
        if self.shares.columns:
            for statement in statements:
                cpp = self._dtype(statement).cpp
                self.lines.add(f"{cpp} {names[statement.name]}[kColumns];", statement.store.nodes)

        def sink(statement: Statement) -> None:
            self._print_row(statement, names[statement.name], stores=stores)

        if self.shares.columns:
            self.printer.run_at_points(statements, sink)
            for statement in statements:
                self._bind_row(statement, names[statement.name])
        else:
            for statement in statements:
                sink(statement)

    # -- helpers ---------------------------------------------------------------------------------

    def _combine_op(self, statement: Statement) -> tuple[str, str]:
        """Return the operation and the type of the values that it combines."""
        operation, cpp = combine(statement)
        if statement.name in self._exponentials:
            power = self._exponentials[statement.name].power
            return pair_op(statement, fast=self.printer.values.is_fast(power))
        if statement.name in self._points:
            return f"kiln::JoinMoments<{cpp}>", f"kiln::Moments<{cpp}>"
        return operation, cpp

    def _has_moments(self, statement: Statement) -> bool:
        return statement.name in self._points and statement.name not in self._exponentials

    def _declare(self, stage: Stage) -> None:
        self._points |= stage.points
        self._exponentials |= stage.exponentials
        self._tops |= {found.top: name for name, found in stage.exponentials.items()}
        for statement in stage.reductions:
            name = f"acc{len(self._accumulators)}"
            self._accumulators[statement.name] = name
            operation, cpp = self._combine_op(statement)
            if not self.shares.columns:
                self.lines.add(f"{cpp} {name} = {operation}::zero;", statement.store.nodes)
                continue
            self.lines.add(f"{cpp} {name}[kColumns];", statement.store.nodes)
            self._each_column(f"{name}{self._at} = {operation}::zero;", statement)

    def _loop(self, stage: Stage) -> None:
        for statement in stage.reductions:
            if self._has_moments(statement):
                columns = "[kColumns]" if self.shares.columns else ""
                cpp = statement.accumulate.compute_dtype.cpp
                name = self._accumulators[statement.name]
                text = f"kiln::Shifted<{cpp}> {name}_elements{columns} = {{}};"
                self.lines.add(text, statement.store.nodes)
        packed = max(self.shares.vector, self.shares.columns) > 1
        streamed = bool(self.printer.streamed_pointers)
        each = " * kVector" if self.shares.vector > 1 else ""
        begin, end = ("cut.first", "cut.last") if self._cut else ("rbegin", "rend")
        begin = first = f"{begin} + lane{each}"
        if stage.exponentials and self.shares.vector == 1:
            begin = self._grouped_steps(stage, first)
        step = self._step_lines(stage)
        if begin == first:
            unroll(self.lines, stage, step, packed=packed, streamed=streamed)
        head = f"for (index_t rindex = {begin}; rindex < {end}; rindex += kLanes{each})"
        with self.lines.block(head):
            self.lines.extend(step)
        for statement in stage.reductions:
            if finds_index(statement.kind):
                name = f"{self._accumulators[statement.name]}{self._at}"
                self._each_column(init(statement, name, first, end), statement)
        if self._cut:
            self._edges(stage)
        for statement in stage.reductions:
            if self._has_moments(statement):
                accumulator = self._accumulators[statement.name]
                moments = f"{accumulator}_elements{self._at}.moments()"
                self._each_column(f"{accumulator}{self._at} = {moments};", statement)

    def _edges(self, stage: Stage) -> None:
        """Print the stage's loop over the steps that are in no pack."""
        with (
            self.lines.block("for (index_t edge = lane; edge < cut.edges; edge += kLanes)"),
            self.printer.scalar_mode({}),
            self.printer.values.scope(),
        ):
            self.lines.add("const index_t rindex = cut.edge(edge);", ())
            self.printer.decode("rindex", self.nest.inner)
            self.printer.run(stage.loop, lambda statement: self._sink(statement, edge=True))

    def _grouped_steps(self, stage: Stage, first: str) -> str:
        """Print steps whose elements are added together, for rows that are read one by one; return
        the first remaining step."""
        begin, columns = f"rgroup{len(self._accumulators)}", bool(self.shares.columns)
        with batched_steps(
            self.lines, exponential_pairs(stage, self._accumulators), begin, first, columns=columns
        ):
            self._place = "[k]"
            self._step_body(stage)
            self._place = ""
        self.lines.add("#pragma unroll 1", ())
        return begin

    def _step_lines(self, stage: Stage) -> Lines:
        step = self.lines.new_block()
        outside, self.lines = self.lines, step
        self.printer.lines = self.printer.values.lines = step
        self._step_body(stage)
        self.lines = self.printer.lines = self.printer.values.lines = outside
        return step

    def _step_body(self, stage: Stage) -> None:
        pairs = exponential_pairs(stage, self._accumulators) if self.shares.vector > 1 else {}
        with self.printer.values.scope():
            self.printer.decode("rindex", self.nest.inner)
            with batched_elements(self.lines, pairs, "kVector"):
                self.printer.run(stage.loop, self._sink)

    def _sink(self, statement: Statement, *, edge: bool = False) -> None:
        if statement.kind is None:
            self.printer.store(statement)
            return
        values = self.printer.values
        with values.mark_nodes(statement.store.nodes):
            text, name = values.value(statement.value), self._accumulators[statement.name]
            if statement.name in self._exponentials:
                place = "" if edge else self._place
                values.lines.add(add_element(statement, name, text, self._at, place))
                return
            if statement.name in self._points:
                element = convert(text, statement.value.dtype, statement.accumulate.compute_dtype)
                values.lines.add(f"{name}_elements{self._at}.add({element});")
                return
            if edge:
                values.lines.add(accumulate_unordered(statement, name, text))
                return
            packed = self.shares.vector > 1
            values.lines.add(accumulate(statement, f"{name}{self._at}", text, packed=packed))

    def _combine(self, stage: Stage) -> None:
        for statement in stage.reductions:
            name = self._accumulators[statement.name]
            operation, _ = self._combine_op(statement)
            if self.shares.columns:
                text = f"kiln::columns_reduce<kLanes, kThreads>({name}, {operation}(), scratch);"
            else:
                text = (
                    f"{name} = kiln::lanes_reduce<kLanes, kThreads>({name}, {operation}(), "
                    "scratch);"
                )
            self.lines.add(text, statement.store.nodes)
        self._bind_results(stage)

    def _bind_results(self, stage: Stage) -> None:
        for statement in stage.reductions:
            if statement.name in self._points:
                continue  # until its point is known
            for dtype in self._result_types(statement):
                result = self._result(statement)
                self.printer.values.bind(Accumulator(dtype, statement.name), result)

    def _result(self, statement: Statement) -> str:
        if statement.name in self._tops:
            return f"{self._accumulators[self._tops[statement.name]]}{self._at}.top()"
        name = f"{self._accumulators[statement.name]}{self._at}"
        if statement.name in self._points:
            return f"{name}.about({self.printer.values.value(self._points[statement.name])})"
        return f"static_cast<int64_t>({name}.index)" if finds_index(statement.kind) else name

    def _result_types(self, statement: Statement) -> tuple[DType, DType]:
        dtype = DType.I64 if finds_index(statement.kind) else statement.accumulate
        return dtype.compute_dtype, dtype

    def _print_row(self, statement: Statement, name: str, *, stores: bool) -> None:
        """Let one thread of one block write; all of them know the value."""
        values, store = self.printer.values, statement.store
        dtype = self._dtype(statement)
        with values.scope(), values.mark_nodes(store.nodes):
            if statement.kind is not None:
                result = self._result(statement)
                for held in self._result_types(statement):
                    values.bind(Accumulator(held), result)
                    values.bind(Accumulator(held, statement.name), result)
            element = values.element(store.value, dtype)
            declared = "" if self.shares.columns else f"const {dtype.cpp} "
            values.lines.add(f"{declared}{name}{self._at} = {element};")
            if stores and store.buffer in self.nest.outputs:
                place = f"{self._memory[store.buffer].pointer}[{values.store_offset(store)}]"
                first = "active && lane == 0" + (" && part == 0" if self.shares.split > 1 else "")
                values.lines.add(f"if ({first}) {place} = {name}{self._at};")
        self._bind_row(statement, name)

    def _bind_row(self, statement: Statement, name: str) -> None:
        if statement.name in self._points or statement.name in self._tops:
            for held in self._result_types(statement):
                self.printer.values.bind(Accumulator(held, statement.name), self._result(statement))
        store, dtype = statement.store, self._dtype(statement)
        load = Load(store.buffer, store.index, dtype)
        self.printer.values.bind(load, upcast(f"{name}{self._at}", dtype))

    def _each_column(self, text: str, statement: Statement) -> None:
        if self.shares.columns > 1:
            self.lines.add("#pragma unroll", ())
            text = f"for (int j = 0; j < kColumns; ++j) {text}"
        self.lines.add(text, statement.store.nodes)

    def _dtype(self, statement: Statement) -> DType:
        return self.nest.buffer(statement.store.buffer).dtype

    def partial(self, statement: Statement, slot: str) -> str:
        """Return the workspace element of a reduction's result in a slot of the thread's row. Slots
        of a row are contiguous; with columns, the columns are."""
        _, cpp = self._combine_op(statement)
        offset = self._partials.offsets[statement.name]
        begin = f" + {offset * self.shares.slots} * static_cast<size_t>(xnumel)" if offset else ""
        place = f"static_cast<size_t>(xindex) * kSplit + {slot}"
        if self.shares.columns:
            column = STRIDED_COLUMN if self.shares.strided else "xindex"
            column += " + j" if self.shares.columns > 1 and not self.shares.strided else ""
            place = f"static_cast<size_t>({slot}) * xnumel + {column}"
        return f"reinterpret_cast<{cpp}*>(workspace{begin})[{place}]"
