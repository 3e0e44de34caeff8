"""The statements of one scan over a block's part of a row.

In rows that are cut, packs are aligned in memory: the first and the last pack may have steps
outside the row, which are neither read nor stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from scheduler.codegen.cpp.nest import NestPrinter
from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.rocm.reduction.accumulators import combine_operation, convert_element
from scheduler.codegen.rocm.reduction.split_body import SplitBody
from scheduler.ir.values import Accumulator


def print_scans(body: SplitBody, scans: Sequence[tuple[int, Statement]]) -> None:
    """Print the numbered scans of one launch; ``body`` has the printer, and locates the totals of
    the blocks before, if there are any."""
    printer = body.printer
    printer.decode("xindex", printer.nest.outer)
    if printer.row_start is not None:
        # How far after an aligned address the block's part of a row begins, and where its runs
        # end; several rows in a block all have the same number of runs.
        row_start = printer.index(printer.row_start)
        printer.lines.add(f"const index_t shift = ({row_start} + rbegin) & (kVector - 1);", ())
        printer.lines.add("const index_t rlast = rstop + (kRows == 1 ? shift : kVector - 1);", ())
    for number, statement in scans:
        _ScanBody(body, statement, f"carry{number}").print()


def store_running(printer: NestPrinter, statement: Statement, running: str) -> None:
    """Store the scan's results, which are the text ``running`` at each step."""
    for name in ("acc", statement.name):
        for dtype in {statement.accumulate, statement.accumulate.compute_dtype}:
            printer.values.bind(Accumulator(dtype, name), running)
    printer.run([replace(statement, kind=None, value=statement.store.value)], printer.store)


class _ScanBody:
    """Prints one scan over the block's part of a row."""

    def __init__(self, body: SplitBody, statement: Statement, carry: str) -> None:
        self._body = body
        self._printer = body.printer
        self._lines = body.printer.lines
        self._values = body.printer.values
        self._statement = statement
        self._operation, self._cpp = combine_operation(statement)
        self._carry = carry
        self._has_packs = body.vector > 1
        # The steps that the lanes of a row take side by side.
        self._run_steps = "kLanes * kVector" if self._has_packs else "kLanes"
        self._running_total = "running[k][j]" if self._has_packs else "running[k]"

    def print(self) -> None:
        """Print the scan."""
        operation, cpp, carry, lines = self._operation, self._cpp, self._carry, self._lines
        nodes = self._statement.store.nodes
        lines.add(f"{cpp} {carry} = {operation}::zero;", nodes)
        if self._body.split.split > 1:
            partial = self._body.partial(self._statement, "i")
            with lines.block("for (int i = lane; i < part; i += kLanes)"):
                lines.add(f"{carry} = {operation}()({carry}, {partial});", nodes)
            reduced = f"kiln::lanes_reduce<kLanes, kThreads>({carry}, {operation}(), scratch)"
            lines.add(f"{carry} = {reduced};", nodes)
        end = "rlast" if self._body.is_cut else "rstop"
        head = f"for (index_t base = rbegin; base < {end}; base += kAhead * {self._run_steps})"
        with lines.block(head), self._values.scope(), self._values.mark_nodes(nodes):
            lines.add(f"{cpp} running[kAhead]{'[kVector]' if self._has_packs else ''};")
            with self._each_run():
                self._for_elements(f"{self._running_total} = {operation}::zero;")
            with self._values.scope():
                for _ in self._row_steps():
                    self._printer.run([self._statement], self._read)
            self._combine()
            with self._values.scope():
                for _ in self._row_steps():
                    store_running(self._printer, self._statement, self._running_total)

    @contextmanager
    def _each_run(self) -> Iterator[None]:
        """Run the lines inside for each run ``k``."""
        self._lines.add("#pragma unroll", ())
        with self._lines.block("for (int k = 0; k < kAhead; ++k)"):
            yield

    def _row_steps(self) -> Iterator[None]:
        """Yield in the block of the thread's steps of each run ``k`` that are in the row; if rows
        are cut, once for whole packs and once for the single steps of the others."""
        lines, inner = self._lines, self._printer.nest.inner
        lane = "lane * kVector" if self._has_packs else "lane"
        with self._each_run():
            base = "base - shift" if self._body.is_cut else "base"
            lines.add(f"const index_t rindex = {base} + k * ({self._run_steps}) + {lane};", ())
            condition = "rindex < rend"
            if self._body.is_cut:
                condition = "rindex >= rbegin && rindex + kVector <= rend"
            with lines.block(f"if ({condition})"):
                self._printer.decode("rindex", inner)
                with self._values.scope():
                    yield
            if not self._body.is_cut:
                return
            with lines.block("else"):
                lines.add("#pragma unroll", ())
                with lines.block("for (int j = 0; j < kVector; ++j)"):
                    lines.add("const index_t step = rindex + j;", ())
                    condition = "if (step >= rbegin && step < rend)"
                    with lines.block(condition), self._printer.scalar_mode({}):
                        self._printer.decode("step", inner)
                        with self._values.scope():
                            yield

    def _for_elements(self, text: str, first: int = 0) -> None:
        """Add ``text`` for each element of the thread in a run."""
        if self._has_packs:
            self._lines.add("#pragma unroll", ())
            text = f"for (int j = {first}; j < kVector; ++j) {text}"
        self._lines.add(text)

    def _read(self, statement: Statement) -> None:
        text = convert_element(statement, self._values.value(statement.value))
        self._values.lines.add(f"{self._running_total} = {text};")

    def _combine(self) -> None:
        """Combine the elements of the runs across the threads, from the carry on."""
        operation, lines = self._operation, self._lines
        lines.add(f"{self._cpp} before[kAhead];")
        last = "running[k]"
        with self._each_run():
            if self._has_packs:
                previous = "running[k][j - 1]"
                self._for_elements(f"running[k][j] = {operation}()({previous}, running[k][j]);", 1)
                last = "running[k][kVector - 1]"
            lines.add(f"before[k] = {last};")
        operands = f"before, {self._carry}, {operation}(), scratch"
        lines.add(f"kiln::lanes_scan<kLanes, kThreads>({operands});")
        with self._each_run():
            total = self._running_total
            self._for_elements(f"{total} = {operation}()(before[k], {total});")
