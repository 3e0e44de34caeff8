"""Scan kernels (cumsum, cumprod, cummax …): a row in steps of as many elements as threads share it.

Each step combines across the threads and takes over the last step's total.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.codegen.cpp.nest import NestPrinter
from scheduler.codegen.cpp.values import convert
from scheduler.codegen.launch import ceil_div
from scheduler.codegen.legality import illegal
from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.rocm.loop import LoopTemplate
from scheduler.codegen.rocm.stages import combination
from scheduler.codegen.template import Config, RenderedTemplate
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Accumulator
from scheduler.outcome import Rejected

_LANES = (1, 8, 32, 64, 128, 256, 512, 1024)
_BLOCK = 256


class ScanTemplate(LoopTemplate):
    """Running results along one axis, stored at every step."""

    name = "scan"

    def configs(self) -> Sequence[Config]:
        return [{"lanes": lanes} for lanes in _LANES]

    def reject(self, config: Config) -> Rejected | None:
        lanes = int(config["lanes"])
        steps = self.nest.inner_numel
        if steps.is_Integer and lanes > 1 and lanes // 2 >= int(steps):
            return illegal(f"{lanes} lanes for {steps} elements: half would be idle")
        return None

    def default_config(self) -> Config:
        rows = self.hint(self.nest.outer_numel)
        steps = self.hint(self.nest.inner_numel)
        # With enough rows to fill the device, a thread a row needs no combining at all.
        useful = 1 if rows >= 1 << 16 or steps <= 4 else steps // 4
        fitting = [n for n in _LANES if n <= max(useful, 1) and not self.reject({"lanes": n})]
        return {"lanes": fitting[-1]}

    def render(self, config: Config) -> RenderedTemplate:
        lanes = int(config["lanes"])
        threads = max(lanes, _BLOCK)
        lines = self.lines()
        printer = NestPrinter(self.nest, lines, self.memory, None, self.renamed)
        printer.decode("xindex", self.nest.outer)
        for number, statement in enumerate(self.nest.statements):
            self._scan(printer, statement, f"carry{number}")
        widest = max(s.accumulate.compute.itemsize for s in self.nest.statements)
        scratch = widest if lanes > 32 else 0
        return self.finished(
            ceil_div(self.nest.outer_numel, threads // lanes),
            threads,
            threads // 32 * scratch,
            lanes=lanes,
            xnumel=printer.index(self.nest.outer_numel),
            rnumel=printer.index(self.nest.inner_numel),
            scratch_size=scratch,
            powers=any(s.kind is ReductionKind.LOGSUMEXP for s in self.nest.statements),
            body=lines,
        )

    def _scan(self, printer: NestPrinter, statement: Statement, carry: str) -> None:
        operation, held = combination(statement)
        lines, values, nodes = printer.lines, printer.values, statement.store.nodes
        lines.add(f"{held} {carry} = {operation}::zero;", nodes)
        with (
            lines.block("for (index_t base = 0; base < rnumel; base += kLanes)"),
            values.scope(),
            values.computing(nodes),
        ):
            lines.add("const index_t rindex = base + lane;", ())
            lines.add("const bool inside = active && rindex < rnumel;", ())
            printer.decode("rindex", self.nest.inner)
            lines.add(f"{held} running = {operation}::zero;")
            with lines.block("if (inside)"), values.scope():
                text = values.value(statement.value)
                element = convert(text, statement.value.dtype, statement.accumulate.compute)
                lines.add(f"running = {element};")
            call = f"kiln::lanes_scan<kLanes, kThreads>(running, {operation}(), scratch)"
            lines.add(f"running = {operation}()({carry}, {call});")
            lines.add(f"{carry} = kiln::lanes_last<kLanes, kThreads>(running, scratch);")
            with lines.block("if (inside)"), values.scope():
                for name in ("acc", statement.name):
                    for dtype in {statement.accumulate, statement.accumulate.compute}:
                        values.bind(Accumulator(dtype, name), "running")
                values.store(statement.store)
