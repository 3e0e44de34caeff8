"""What the device functions of all reductions have in common: the loop of a stage, and its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import ClassVar

from scheduler.codegen.cpp.nest import NestPrinter
from scheduler.codegen.cpp.values import upcast
from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.rocm.reduction.accumulators import (
    combine_operation,
    convert_element,
    finds_index,
    print_accumulate,
    print_index_init,
    print_unordered_accumulate,
)
from scheduler.codegen.rocm.reduction.stages import Stage, SumOfExponentials
from scheduler.ir.dtypes import DType
from scheduler.ir.values import Accumulator, Load

_IN_FLIGHT, _SINGLE_IN_FLIGHT = 4, 8  # steps of a thread whose reads are in flight at once
_STREAMED_IN_FLIGHT = 8  # the same for packs that are read once, and evicted from caches first
_MAX_UNROLLED_LINES = 24  # of a step
# Exponentials that a thread adds together: as many single elements as a pack has; of each column.
_GROUP_ELEMENTS, _COLUMN_GROUP_ELEMENTS = 8, 4


class ReductionBody:
    """Prints the statements of a device function; ``kLanes`` threads share a row in them.

    A thread takes ``vector`` neighbouring steps at a time, or has ``columns`` neighbouring rows
    (0: one row). Its steps begin at ``begin`` ("" if that is the row's first). In rows that are
    cut, a loop goes through the packs first, then through the steps before and after them.
    """

    shares_row_values: ClassVar[bool] = False
    """Whether values computed for one statement of a row are used by the next ones."""

    def __init__(
        self,
        printer: NestPrinter,
        vector: int,
        columns: int = 0,
        begin: str = "",
    ) -> None:
        self.printer = printer
        self.nest = printer.nest
        self.lines = printer.lines
        self.vector, self.columns = vector, columns
        self.is_cut = printer.row_start is not None
        self.column = "[j]" if columns > 1 else "[0]" if columns else ""
        vector_factor = " * kVector" if vector > 1 else ""
        begin = "cut.first" if self.is_cut else begin
        self.first = f"{begin} + lane{vector_factor}" if begin else f"lane{vector_factor}"
        self.end = "cut.last" if self.is_cut else "rend"
        self.stride = f"kLanes{vector_factor}"
        self.accumulators: dict[str, str] = {}
        self._points: dict[str, Load] = {}
        self._exponentials: dict[str, SumOfExponentials] = {}
        # By the name of a maximum: the sum of exponentials whose accumulator has it too.
        self._sum_by_maximum: dict[str, str] = {}
        self._group_index = "[j]" if vector > 1 else ""  # of an element among those added together
        self._row_count = 0

    def define_outer(self, begin: str, end: str) -> None:
        """Define the variables of the thread's row, or of its first one; ``begin`` and ``end`` are
        the steps of a row that is cut."""
        self.printer.decode("xindex", self.nest.outer)
        if self.printer.row_start is not None:
            row = self.printer.index(self.printer.row_start)
            self.lines.add(
                f"const auto cut = kiln::cut_row<kVector, index_t>({row}, {begin}, {end});", ()
            )

    # -- accumulators ----------------------------------------------------------------------------

    def declare(self, stage: Stage) -> None:
        """Declare the stage's accumulators, without elements."""
        self._points |= stage.points
        self._exponentials |= stage.exponentials
        self._sum_by_maximum |= {sums.top: name for name, sums in stage.exponentials.items()}
        for statement in stage.reductions:
            name = f"acc{len(self.accumulators)}"
            self.accumulators[statement.name] = name
            operation, cpp = self.combine_op(statement)
            if not self.columns:
                self.lines.add(f"{cpp} {name} = {operation}::zero;", statement.store.nodes)
                continue
            self.lines.add(f"{cpp} {name}[kColumns];", statement.store.nodes)
            self.each_column(f"{name}{self.column} = {operation}::zero;", statement)

    def combine_op(self, statement: Statement) -> tuple[str, str]:
        """Return the operation and the type of the values that it combines."""
        if statement.name in self._exponentials:
            power = self._exponentials[statement.name].power
            cpp = statement.accumulate.compute_dtype.cpp
            cpp += ", true" if self.printer.values.is_fast(power) else ""
            return f"kiln::JoinExponentials<{cpp}>", f"kiln::Exponentials<{cpp}>"
        operation, cpp = combine_operation(statement)
        if statement.name in self._points:
            return f"kiln::JoinMoments<{cpp}>", f"kiln::Moments<{cpp}>"
        return operation, cpp

    def each_column(self, text: str, statement: Statement) -> None:
        """Add ``text`` for each column ``j`` of the thread."""
        if self.columns > 1:
            self.lines.add("#pragma unroll", ())
            text = f"for (int j = 0; j < kColumns; ++j) {text}"
        self.lines.add(text, statement.store.nodes)

    # -- loops -----------------------------------------------------------------------------------

    def loop(self, stage: Stage) -> None:
        """Print the stage's loop over the thread's steps."""
        moments = [
            s
            for s in stage.reductions
            if s.name in self._points and s.name not in stage.exponentials
        ]
        for statement in moments:
            columns = "[kColumns]" if self.columns else ""
            name, cpp = self.accumulators[statement.name], statement.accumulate.compute_dtype.cpp
            text = f"kiln::Shifted<{cpp}> {name}_elements{columns} = {{}};"
            self.lines.add(text, statement.store.nodes)
        is_grouped = bool(stage.exponentials) and self.vector == 1
        first = self._grouped_steps(stage) if is_grouped else self.first
        step_lines = self.lines.new_block()
        outer_lines, self.lines = self.lines, step_lines
        self.printer.lines = self.printer.values.lines = step_lines
        self.step(stage)
        self.lines = self.printer.lines = self.printer.values.lines = outer_lines
        has_stores = any(statement.kind is None for statement in stage.loop)
        if not is_grouped and not has_stores and len(step_lines) <= _MAX_UNROLLED_LINES:
            in_flight = _STREAMED_IN_FLIGHT if self.printer.streamed_pointers else _IN_FLIGHT
            has_packs = self.vector > 1 or self.columns > 1
            self.lines.add(f"#pragma unroll {in_flight if has_packs else _SINGLE_IN_FLIGHT}", ())
        head = f"for (index_t rindex = {first}; rindex < {self.end}; rindex += {self.stride})"
        with self.lines.block(head):
            self.lines.extend(step_lines)
        self.init_indices(stage, self.end)
        if self.is_cut:
            head = "for (index_t edge = lane; edge < cut.edges; edge += kLanes)"
            with self.lines.block(head), self.at_edge("edge", {}):
                self.printer.run(stage.loop, partial(self._sink, edge=True))
        for statement in moments:
            name = self.accumulators[statement.name]
            result = f"{name}_elements{self.column}.moments()"
            self.each_column(f"{name}{self.column} = {result};", statement)

    def step(self, stage: Stage) -> None:
        """Print the stage's statements at one step, or at the steps of a pack."""
        batch = self._batch(stage, "kVector") if self.vector > 1 else nullcontext()
        with self.printer.values.scope():
            self.printer.decode("rindex", self.nest.inner)
            with batch:
                self.printer.run(stage.loop, self._sink)

    @contextmanager
    def at_edge(self, number: str, arrays: Mapping[Load, str]) -> Iterator[None]:
        """Run the lines inside at the step of that number that is in no pack."""
        with self.printer.scalar_mode(arrays), self.printer.values.scope():
            self.lines.add(f"const index_t rindex = cut.edge({number});", ())
            self.printer.decode("rindex", self.nest.inner)
            yield

    def init_indices(self, stage: Stage, end: str) -> None:
        """Print what completes the stage's searches for an index after the loop up to ``end``."""
        for statement in stage.reductions:
            if finds_index(statement.kind):
                name = f"{self.accumulators[statement.name]}{self.column}"
                self.each_column(print_index_init(statement, name, self.first, end), statement)

    def _grouped_steps(self, stage: Stage) -> str:
        """Print steps whose exponentials are added together, for rows that are read one by one;
        return the first remaining step: those are too few."""
        count = _COLUMN_GROUP_ELEMENTS if self.columns else _GROUP_ELEMENTS
        begin = f"rgroup{len(self.accumulators)}"
        self.lines.add(f"index_t {begin} = {self.first};", ())
        has_group = f"rend - {begin} > {count - 1} * kLanes"
        with (
            self.lines.block(f"for (; {has_group}; {begin} += {count} * kLanes)"),
            self._batch(stage, str(count)),
        ):
            self.lines.add("#pragma unroll", ())
            with self.lines.block(f"for (int k = 0; k < {count}; ++k)"):
                self.lines.add(f"const index_t rindex = {begin} + k * kLanes;", ())
                self._group_index = "[k]"
                self.step(stage)
                self._group_index = ""
        self.lines.add("#pragma unroll 1", ())
        return begin

    @contextmanager
    def _batch(self, stage: Stage, count: str) -> Iterator[None]:
        """Collect ``count`` elements of the stage's sums of exponentials in the lines inside, then
        add them together."""
        sums = [s for s in stage.reductions if s.name in stage.exponentials]
        for statement in sums:
            size = f"[kColumns][{count}]" if self.columns else f"[{count}]"
            name, cpp = self.accumulators[statement.name], statement.accumulate.compute_dtype.cpp
            self.lines.add(f"{cpp} {name}_elements{size};", statement.store.nodes)
        yield
        for statement in sums:
            name = self.accumulators[statement.name]
            text = f"{name}.add({name}_elements);"
            if self.columns:
                self.lines.add("#pragma unroll", ())
                text = f"for (int j = 0; j < kColumns; ++j) {name}[j].add({name}_elements[j]);"
            self.lines.add(text, statement.store.nodes)

    def _sink(self, statement: Statement, *, edge: bool = False) -> None:
        if statement.kind is None:
            self.printer.store(statement)
            return
        values = self.printer.values
        with values.mark_nodes(statement.store.nodes):
            text = values.value(statement.value)
            accumulator = self.accumulators[statement.name]
            name, elements = f"{accumulator}{self.column}", f"{accumulator}_elements{self.column}"
            if statement.name not in self._points:
                is_packed = self.vector > 1
                values.lines.add(
                    print_unordered_accumulate(statement, name, text)
                    if edge
                    else print_accumulate(statement, name, text, packed=is_packed)
                )
                return
            addend = convert_element(statement, text)
            if statement.name not in self._exponentials:
                values.lines.add(f"{elements}.add({addend});")
            elif self._group_index and not edge:
                values.lines.add(f"{elements}{self._group_index} = {addend};")
            else:
                values.lines.add(f"{name}.add({addend});")

    # -- rows ------------------------------------------------------------------------------------

    def bind_result(self, statement: Statement, *, anonymous: bool = False) -> None:
        """Use the accumulator for a reduction's result from now on; with ``anonymous``, also in
        the reduction's own store."""
        name, dtype = statement.name, statement.accumulate
        result = f"{self.accumulators[self._sum_by_maximum.get(name, name)]}{self.column}"
        if name in self._sum_by_maximum:
            result += ".top()"
        elif name in self._points:
            result += f".about({self.printer.values.value(self._points[name])})"
        elif finds_index(statement.kind):
            dtype, result = DType.I64, f"static_cast<int64_t>({result}.index)"
        for read_as in (dtype.compute_dtype, dtype):
            self.printer.values.bind(Accumulator(read_as, name), result)
            if anonymous:
                self.printer.values.bind(Accumulator(read_as), result)

    def new_row(self) -> str:
        """Return the name for a value of a row."""
        self._row_count += 1
        return f"row{self._row_count - 1}"

    def print_row(self, statement: Statement, name: str, store_condition: str) -> None:
        """Compute a statement's value of a row, as ``name``. All threads know it; the one for which
        the condition ``store_condition`` holds writes it, unless that is ""."""
        values, store = self.printer.values, statement.store
        dtype = self.row_dtype(statement)
        is_scoped = statement.kind is not None or not self.shares_row_values
        with values.scope() if is_scoped else nullcontext(), values.mark_nodes(store.nodes):
            if statement.kind is not None:
                self.bind_result(statement, anonymous=True)
            text = values.element(store.value, dtype)
            declaration = "" if self.columns else f"const {dtype.cpp} "
            values.lines.add(f"{declaration}{name}{self.column} = {text};")
            if store_condition and store.buffer in self.nest.outputs:
                pointer, offset = values.pointer(store.buffer), values.store_offset(store)
                write = values.write(pointer, offset, f"{name}{self.column}")
                values.lines.add(f"if ({store_condition}) {write}")
        self.bind_row(statement, name)

    def bind_row(self, statement: Statement, name: str) -> None:
        """Use ``name`` for the row's value from now on."""
        if statement.kind is not None:
            self.bind_result(statement)
        store, dtype = statement.store, self.row_dtype(statement)
        load = Load(store.buffer, store.index, dtype)
        self.printer.values.bind(load, upcast(f"{name}{self.column}", dtype))

    def row_dtype(self, statement: Statement) -> DType:
        """Return the type of a row's value in memory."""
        return self.nest.buffer(statement.store.buffer).dtype
