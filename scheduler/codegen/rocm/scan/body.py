"""The statements of one scan over a block's part of a row.

In rows that are cut, packs are aligned in memory: the first and the last pack may have steps
outside the row, which are neither read nor stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from scheduler.codegen.cpp.nest import NestPrinter
from scheduler.codegen.cpp.values import convert
from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.rocm.reduction.split_body import Split, SplitBody
from scheduler.codegen.rocm.reduction.stages import combine
from scheduler.ir.values import Accumulator


def define_shift(printer: NestPrinter) -> None:
    """Define how far after an aligned address the block's part of a row begins, and where its runs
    end; several rows in a block all have the same number of runs."""
    assert printer.cut is not None
    row = printer.index(printer.cut)
    printer.lines.add(f"const index_t shift = ({row} + rbegin) & (kVector - 1);", ())
    printer.lines.add("const index_t rlast = rstop + (kRows == 1 ? shift : kVector - 1);", ())


class ScanBody:
    """Prints one scan over the block's part of a row."""

    def __init__(
        self,
        printer: NestPrinter,
        statement: Statement,
        shares: Split,
        carry: str,
    ) -> None:
        self.printer = printer
        self.lines = printer.lines
        self._statement = statement
        self._shares = shares
        self._carry = carry
        self._inner = printer.nest.inner

    def print(self, parts: SplitBody | None = None) -> None:
        """Print the scan; ``parts`` locates the totals of the blocks before, if there are any."""
        operation, held = combine(self._statement)
        nodes = self._statement.store.nodes
        self.lines.add(f"{held} {self._carry} = {operation}::zero;", nodes)
        if parts is not None:
            partial = parts.partial(self._statement, "i")
            with self.lines.block("for (int i = lane; i < part; i += kLanes)"):
                self.lines.add(f"{self._carry} = {operation}()({self._carry}, {partial});", nodes)
            reduced = f"kiln::lanes_reduce<kLanes, kThreads>({self._carry}, {operation}(), scratch)"
            self.lines.add(f"{self._carry} = {reduced};", nodes)
        values = self.printer.values
        end = "rlast" if self._shares.cut else "rstop"
        head = f"for (index_t base = rbegin; base < {end}; base += kAhead * {self._run})"
        with self.lines.block(head), values.scope(), values.mark_nodes(nodes):
            self._read(operation, held)
            self._combine(operation, held)
            self._write()

    @property
    def _packed(self) -> bool:
        return self._shares.vector > 1

    @property
    def _run(self) -> str:
        """Return the number of steps that the lanes of a row take side by side."""
        return "kLanes * kVector" if self._packed else "kLanes"

    @property
    def _running(self) -> str:
        return "running[k][j]" if self._packed else "running[k]"

    @contextmanager
    def _each_run(self) -> Iterator[None]:
        """Run the lines inside for each run ``k``."""
        self.lines.add("#pragma unroll", ())
        with self.lines.block("for (int k = 0; k < kAhead; ++k)"):
            yield

    def _for_row_steps(self, printed: Callable[[], None]) -> None:
        """Add the lines of ``printed`` for the thread's steps of each run ``k`` that are in the
        row."""
        lane = "lane * kVector" if self._packed else "lane"
        if not self._shares.cut:
            with self._each_run():
                self.lines.add(f"const index_t rindex = base + k * ({self._run}) + {lane};", ())
                with self.lines.block("if (rindex < rend)"):
                    self.printer.decode("rindex", self._inner)
                    self._in_scope(printed)
            return
        with self._each_run():
            first = f"base - shift + k * ({self._run}) + {lane}"
            self.lines.add(f"const index_t rindex = {first};", ())
            with self.lines.block("if (rindex >= rbegin && rindex + kVector <= rend)"):
                self.printer.decode("rindex", self._inner)
                self._in_scope(printed)
            with self.lines.block("else"):
                self.lines.add("#pragma unroll", ())
                with self.lines.block("for (int j = 0; j < kVector; ++j)"):
                    self.lines.add("const index_t step = rindex + j;", ())
                    inside = "if (step >= rbegin && step < rend)"
                    with self.lines.block(inside), self.printer.scalar_mode({}):
                        self.printer.decode("step", self._inner)
                        self._in_scope(printed)

    def _in_scope(self, printed: Callable[[], None]) -> None:
        """Print in a scope: values computed there are not visible outside."""
        with self.printer.values.scope():
            printed()

    def _for_elements(self, text: str, first: int = 0) -> None:
        """Add ``text`` for each element of the thread in a run."""
        if self._packed:
            self.lines.add("#pragma unroll", ())
            text = f"for (int j = {first}; j < kVector; ++j) {text}"
        self.lines.add(text)

    def _read(self, operation: str, held: str) -> None:
        self.lines.add(f"{held} running[kAhead]{'[kVector]' if self._packed else ''};")
        statement = self._statement

        def sink(each: Statement) -> None:
            values = self.printer.values
            text = values.value(each.value)
            element = convert(text, each.value.dtype, each.accumulate.compute_dtype)
            values.lines.add(f"{self._running} = {element};")

        with self._each_run():
            self._for_elements(f"{self._running} = {operation}::zero;")
        with self.printer.values.scope():
            self._for_row_steps(lambda: self.printer.run([statement], sink))

    def _combine(self, operation: str, held: str) -> None:
        self.lines.add(f"{held} before[kAhead];")
        last = "running[k]"
        with self._each_run():
            if self._packed:
                self._for_elements(
                    f"running[k][j] = {operation}()(running[k][j - 1], running[k][j]);", first=1
                )
                last = "running[k][kVector - 1]"
            self.lines.add(f"before[k] = {last};")
        operands = f"before, {self._carry}, {operation}(), scratch"
        self.lines.add(f"kiln::lanes_scan<kLanes, kThreads>({operands});")
        with self._each_run():
            self._for_elements(f"{self._running} = {operation}()(before[k], {self._running});")

    def _write(self) -> None:
        statement, values = self._statement, self.printer.values
        stored = replace(statement, kind=None, value=statement.store.value)
        with values.scope():
            for name in ("acc", statement.name):
                for dtype in {statement.accumulate, statement.accumulate.compute_dtype}:
                    values.bind(Accumulator(dtype, name), self._running)
            self._for_row_steps(lambda: self.printer.run([stored], self.printer.store))
