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
from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.rocm.reduction.accumulators import accumulator_bytes
from scheduler.codegen.rocm.reduction.body import ReductionBody
from scheduler.codegen.rocm.reduction.configs import Split
from scheduler.codegen.rocm.reduction.stages import Stage

# The index of a strided column of a thread; the last column again if there are no more.
STRIDED_COLUMN = "kiln::index_min(row + j * kAcross, xnumel - 1)"


@dataclass(frozen=True)
class Partials:
    """Workspace offsets of the blocks' results of each reduction, by name: bytes per row and slot;
    ``row_bytes`` is their sum."""

    offsets: Mapping[str, int]
    row_bytes: int


def plan_partials(stages: tuple[Stage, ...]) -> Partials:
    """Return the offsets, widest first, so that each is aligned."""
    sizes = {s.name: accumulator_bytes(s, stage) for stage in stages for s in stage.reductions}
    offsets, row_bytes = {}, 0
    for name in sorted(sizes, key=lambda name: sizes[name], reverse=True):
        offsets[name] = row_bytes
        row_bytes += sizes[name]
    return Partials(offsets, row_bytes)


class SplitBody(ReductionBody):
    """Prints one device function: the stages in execution order."""

    def __init__(self, printer: NestPrinter, split: Split, partials: Partials) -> None:
        super().__init__(printer, split.vector, split.columns, "rbegin")
        self.split = split
        self._partials = partials

    def outer(self) -> None:
        """Define the variables of the thread's row, or of its first one."""
        self.define_outer("rbegin", "rend")

    def reduce(self, stage: Stage) -> None:
        """Print the stage's loop over the block's part of the row, combined over the block."""
        self.declare(stage)
        if stage.loop:
            self.loop(stage)
        self._combine(stage)

    def save(self, stage: Stage, slot: str = "part") -> None:
        """Save the block's results to the workspace."""
        with self.lines.block("if (active && lane == 0)"):
            for statement in stage.reductions:
                name = f"{self.accumulators[statement.name]}{self.column}"
                self.each_column(f"{self.partial(statement, slot)} = {name};", statement)

    def gather(self, stage: Stage) -> None:
        """Combine the results of all parts of the row, which the blocks of the previous launch
        saved."""
        self.declare(stage)
        self.lines.add("#pragma unroll", ())
        with self.lines.block("for (int i = lane; i < kSplit; i += kLanes)"):
            for statement in stage.reductions:
                operation, _ = self.combine_op(statement)
                name = f"{self.accumulators[statement.name]}{self.column}"
                partial = self.partial(statement, "i")
                self.each_column(f"{name} = {operation}()({name}, {partial});", statement)
        self._combine(stage)

    def recall(self, stage: Stage) -> None:
        """Load the results that ``gather`` saved."""
        self.declare(stage)
        for statement in stage.reductions:
            name = f"{self.accumulators[statement.name]}{self.column}"
            self.each_column(f"{name} = {self.partial(statement, 'kSplit')};", statement)
        self._bind_results(stage)

    def finish(self, stage: Stage, *, stores: bool) -> None:
        """Print the computations done once per row; without ``stores`` they were stored before."""
        direct_reductions = (s for s in stage.reductions if s.name not in stage.points)
        statements = (*direct_reductions, *stage.after)
        names = {statement.name: self.new_row() for statement in statements}
        store_condition = "active && lane == 0" + (" && part == 0" if self.split.split > 1 else "")

        def sink(statement: Statement) -> None:
            self.print_row(statement, names[statement.name], store_condition if stores else "")

        if not self.columns:
            for statement in statements:
                sink(statement)
        elif statements:
            for statement in statements:
                cpp = self.row_dtype(statement).cpp
                self.lines.add(f"{cpp} {names[statement.name]}[kColumns];", statement.store.nodes)
            self.printer.run_at_points(statements, sink)
            for statement in statements:
                self.bind_row(statement, names[statement.name])

    def _combine(self, stage: Stage) -> None:
        reduce_function = "columns_reduce" if self.columns else "lanes_reduce"
        for statement in stage.reductions:
            name, (operation, _) = self.accumulators[statement.name], self.combine_op(statement)
            text = f"kiln::{reduce_function}<kLanes, kThreads>({name}, {operation}(), scratch);"
            assignment = "" if self.columns else f"{name} = "
            self.lines.add(f"{assignment}{text}", statement.store.nodes)
        self._bind_results(stage)

    def _bind_results(self, stage: Stage) -> None:
        for statement in stage.reductions:
            if statement.name not in self._points:  # otherwise when its point is known
                self.bind_result(statement)

    def partial(self, statement: Statement, slot: str) -> str:
        """Return the workspace element of a reduction's result in a slot of the thread's row. Slots
        of a row are contiguous; with columns, the columns are."""
        _, cpp = self.combine_op(statement)
        row_offset = self._partials.offsets[statement.name]
        first = row_offset * self.split.slots  # bytes per row
        begin = f" + {first} * static_cast<size_t>(xnumel)" if row_offset else ""
        slot_offset = f"static_cast<size_t>(xindex) * kSplit + {slot}"
        if self.columns:
            column = STRIDED_COLUMN if self.split.strided else "xindex"
            column += " + j" if self.columns > 1 and not self.split.strided else ""
            slot_offset = f"static_cast<size_t>({slot}) * xnumel + {column}"
        return f"reinterpret_cast<{cpp}*>(workspace{begin})[{slot_offset}]"


def reduce_part(stage: Stage, body: SplitBody) -> None:
    """Print the reduction of the block's part of a row, to the workspace."""
    body.outer()
    body.reduce(stage)
    body.save(stage)
