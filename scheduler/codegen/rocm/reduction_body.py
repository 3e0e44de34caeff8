"""The device functions of reductions whose rows are shared by blocks, or lie side by side.

A stage's reductions are made in two steps: each block reduces its part of a row and writes what it
has to the workspace (``save``); every block of the next launch combines all parts of its row, in
one order, and goes on from there. So each launch begins with the results of all stages before it,
and the last one is left with what has no sums: stores of rows, or of elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.codegen.cpp.nest import NestPrinter
from scheduler.codegen.cpp.values import convert, hold
from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.printing.lines import Lines
from scheduler.codegen.printing.values import Memory
from scheduler.codegen.rocm.stages import Stage, advanced, begun, combination, finds_index
from scheduler.ir.dtypes import DType
from scheduler.ir.values import Accumulator, Load

_IN_FLIGHT, _SINGLE_IN_FLIGHT = 4, 8  # steps of a thread whose reads are under way at once
_STREAMED = 8  # the same of packs that are read once, and driven out of caches first
_LONG_STEP = 24  # lines of a step that is not repeated


@dataclass(frozen=True)
class Shares:
    """How a row's steps are shared out.

    ``lanes`` threads of a block and ``split`` blocks share a row; a thread takes ``vector``
    neighbouring steps at a time. With ``columns`` the threads of a block that stand side by side
    take that many neighbouring rows each instead, and ``lanes`` of them, one behind the other,
    share those; 0 without.
    """

    lanes: int
    vector: int = 1
    columns: int = 0
    split: int = 1

    @property
    def slots(self) -> int:
        """Places in the workspace for each row's result: one a part, and of columns the total's."""
        return self.split + 1 if self.columns else self.split


@dataclass(frozen=True)
class Partials:
    """Where in the workspace the blocks' results of each reduction begin, by its name: bytes a
    row and slot; ``row_bytes`` of all of them together."""

    offsets: Mapping[str, int]
    row_bytes: int


def accumulator_bytes(statement: Statement, stage: Stage) -> int:
    """Of what a reduction combines, at most; a power of two."""
    if finds_index(statement.kind):
        return 16  # kiln::Found: a value and an index of 8 bytes
    each = statement.accumulate.compute.itemsize
    return 4 * each if statement.name in stage.points else each


def partials(stages: tuple[Stage, ...]) -> Partials:
    """The widest first, so that each is aligned."""
    sizes = {s.name: accumulator_bytes(s, stage) for stage in stages for s in stage.reductions}
    offsets, end = {}, 0
    for name in sorted(sizes, key=lambda name: sizes[name], reverse=True):
        offsets[name] = end
        end += sizes[name]
    return Partials(offsets, end)


def unroll(lines: Lines, stage: Stage, step: Lines, *, packed: bool, streamed: bool) -> None:
    """Has the stage's loop, whose steps are ``step``, take several at once if that is worth it.
    ``streamed``: their packs are read once."""
    if len(step) <= _LONG_STEP and not any(s.kind is None for s in stage.loop):
        packs = _STREAMED if streamed else _IN_FLIGHT
        lines.add(f"#pragma unroll {packs if packed else _SINGLE_IN_FLIGHT}", ())


class SharedBody:
    """Prints one device function: the stages in the order in which it does them."""

    def __init__(
        self,
        printer: NestPrinter,
        memory: Mapping[str, Memory],
        shares: Shares,
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
        self._rows = 0
        self._at = "" if not shares.columns else "[j]" if shares.columns > 1 else "[0]"

    # -- stages ----------------------------------------------------------------------------------

    def outer(self) -> None:
        """The variables of the thread's row, or of its first one."""
        self.printer.decode("xindex", self.nest.outer)

    def reduce(self, stage: Stage) -> None:
        """The stage's loop over the block's part of the row, combined over the block."""
        self._declare(stage)
        if stage.loop:
            self._loop(stage)
        self._combine(stage)

    def save(self, stage: Stage, slot: str = "part") -> None:
        """The block's results to the workspace."""
        with self.lines.block("if (active && lane == 0)"):
            for statement in stage.reductions:
                name = f"{self._accumulators[statement.name]}{self._at}"
                self._each_column(f"{self.partial(statement, slot)} = {name};", statement)

    def gather(self, stage: Stage) -> None:
        """The results of all parts of the row, as every block of the launch before left them."""
        self._declare(stage)
        self.lines.add("#pragma unroll", ())
        with self.lines.block("for (int i = lane; i < kSplit; i += kLanes)"):
            for statement in stage.reductions:
                operation, _ = self._combination(statement)
                name = f"{self._accumulators[statement.name]}{self._at}"
                partial = self.partial(statement, "i")
                self._each_column(f"{name} = {operation}()({name}, {partial});", statement)
        self._combine(stage)

    def recall(self, stage: Stage) -> None:
        """The results that ``gather`` saved."""
        self._declare(stage)
        for statement in stage.reductions:
            name = f"{self._accumulators[statement.name]}{self._at}"
            total = self.partial(statement, "kSplit")
            self._each_column(f"{name} = {total};", statement)
        self._know_results(stage)

    def finish(self, stage: Stage, *, stores: bool) -> None:
        """What is computed once a row; where it is not stored here, it was stored before."""
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
            self._row(statement, names[statement.name], stores=stores)

        if self.shares.columns:
            self.printer.each_point(statements, sink)
            for statement in statements:
                self._know(statement, names[statement.name])
        else:
            for statement in statements:
                sink(statement)

    # -- parts of them ---------------------------------------------------------------------------

    def _combination(self, statement: Statement) -> tuple[str, str]:
        """The operation and the type of what it combines."""
        operation, cpp = combination(statement)
        if statement.name in self._points:
            return f"kiln::JoinMoments<{cpp}>", f"kiln::Moments<{cpp}>"
        return operation, cpp

    def _declare(self, stage: Stage) -> None:
        self._points |= stage.points
        for statement in stage.reductions:
            name = f"acc{len(self._accumulators)}"
            self._accumulators[statement.name] = name
            operation, cpp = self._combination(statement)
            if not self.shares.columns:
                self.lines.add(f"{cpp} {name} = {operation}::zero;", statement.store.nodes)
                continue
            self.lines.add(f"{cpp} {name}[kColumns];", statement.store.nodes)
            self._each_column(f"{name}{self._at} = {operation}::zero;", statement)

    def _loop(self, stage: Stage) -> None:
        step = self.lines.nested()
        outside, self.lines = self.lines, step
        self.printer.lines = self.printer.values.lines = step
        with self.printer.values.scope():
            self.printer.decode("rindex", self.nest.inner)
            self.printer.run(stage.loop, self._sink)
        self.lines = self.printer.lines = self.printer.values.lines = outside
        for statement in stage.reductions:
            if statement.name in self._points:
                columns = "[kColumns]" if self.shares.columns else ""
                cpp = statement.accumulate.compute.cpp
                name = self._accumulators[statement.name]
                text = f"kiln::Shifted<{cpp}> {name}_elements{columns} = {{}};"
                self.lines.add(text, statement.store.nodes)
        packed = max(self.shares.vector, self.shares.columns) > 1
        streamed = bool(self.printer.read_once)
        unroll(self.lines, stage, step, packed=packed, streamed=streamed)
        each = " * kVector" if self.shares.vector > 1 else ""
        first = f"rbegin + lane{each}"
        head = f"for (index_t rindex = {first}; rindex < rend; rindex += kLanes{each})"
        with self.lines.block(head):
            self.lines.extend(step)
        for statement in stage.reductions:
            accumulator = self._accumulators[statement.name]
            name = f"{accumulator}{self._at}"
            if statement.name in self._points:
                moments = f"{accumulator}_elements{self._at}.moments()"
                self._each_column(f"{name} = {moments};", statement)
            if finds_index(statement.kind):
                self._each_column(begun(statement, name, first, "rend"), statement)

    def _sink(self, statement: Statement) -> None:
        if statement.kind is None:
            self.printer.store(statement)
            return
        values = self.printer.values
        with values.computing(statement.store.nodes):
            text, name = values.value(statement.value), self._accumulators[statement.name]
            if statement.name in self._points:
                element = convert(text, statement.value.dtype, statement.accumulate.compute)
                values.lines.add(f"{name}_elements{self._at}.add({element});")
                return
            packed = self.shares.vector > 1
            values.lines.add(advanced(statement, f"{name}{self._at}", text, packed=packed))

    def _combine(self, stage: Stage) -> None:
        for statement in stage.reductions:
            name = self._accumulators[statement.name]
            operation, _ = self._combination(statement)
            if self.shares.columns:
                text = f"kiln::columns_reduce<kLanes, kThreads>({name}, {operation}(), scratch);"
            else:
                text = (
                    f"{name} = kiln::lanes_reduce<kLanes, kThreads>({name}, {operation}(), "
                    "scratch);"
                )
            self.lines.add(text, statement.store.nodes)
        self._know_results(stage)

    def _know_results(self, stage: Stage) -> None:
        for statement in stage.reductions:
            if statement.name in self._points:
                continue  # until its point is known
            for dtype in self._result_types(statement):
                result = self._result(statement)
                self.printer.values.bind(Accumulator(dtype, statement.name), result)

    def _result(self, statement: Statement) -> str:
        name = f"{self._accumulators[statement.name]}{self._at}"
        if statement.name in self._points:
            return f"{name}.about({self.printer.values.value(self._points[statement.name])})"
        return f"static_cast<int64_t>({name}.index)" if finds_index(statement.kind) else name

    def _result_types(self, statement: Statement) -> tuple[DType, DType]:
        dtype = DType.I64 if finds_index(statement.kind) else statement.accumulate
        return dtype.compute, dtype

    def _row(self, statement: Statement, name: str, *, stores: bool) -> None:
        """One thread of one block writes; all of them know the value."""
        values, store = self.printer.values, statement.store
        dtype = self._dtype(statement)
        with values.scope(), values.computing(store.nodes):
            if statement.kind is not None:
                result = self._result(statement)
                for held in self._result_types(statement):
                    values.bind(Accumulator(held), result)
                    values.bind(Accumulator(held, statement.name), result)
            element = values.element(store.value, dtype)
            declared = "" if self.shares.columns else f"const {dtype.cpp} "
            values.lines.add(f"{declared}{name}{self._at} = {element};")
            if stores and store.buffer in self.nest.outputs:
                place = f"{self._memory[store.buffer].pointer}[{values.place(store)}]"
                first = "active && lane == 0" + (" && part == 0" if self.shares.split > 1 else "")
                values.lines.add(f"if ({first}) {place} = {name}{self._at};")
        self._know(statement, name)

    def _know(self, statement: Statement, name: str) -> None:
        if statement.name in self._points:
            for held in self._result_types(statement):
                self.printer.values.bind(Accumulator(held, statement.name), self._result(statement))
        store, dtype = statement.store, self._dtype(statement)
        load = Load(store.buffer, store.index, dtype)
        self.printer.values.bind(load, hold(f"{name}{self._at}", dtype))

    def _each_column(self, text: str, statement: Statement) -> None:
        if self.shares.columns > 1:
            self.lines.add("#pragma unroll", ())
            text = f"for (int j = 0; j < kColumns; ++j) {text}"
        self.lines.add(text, statement.store.nodes)

    def _dtype(self, statement: Statement) -> DType:
        return self.nest.buffer(statement.store.buffer).dtype

    def partial(self, statement: Statement, slot: str) -> str:
        """The place in the workspace of a reduction's result in a slot of the thread's row. Slots
        of a row lie side by side; of columns, the columns do."""
        _, cpp = self._combination(statement)
        offset = self._partials.offsets[statement.name]
        begin = f" + {offset * self.shares.slots} * static_cast<size_t>(xnumel)" if offset else ""
        place = f"static_cast<size_t>(xindex) * kSplit + {slot}"
        if self.shares.columns:
            column = " + j" if self.shares.columns > 1 else ""
            place = f"static_cast<size_t>({slot}) * xnumel + xindex{column}"
        return f"reinterpret_cast<{cpp}*>(workspace{begin})[{place}]"
