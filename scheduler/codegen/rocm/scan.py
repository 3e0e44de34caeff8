"""Scan kernels (cumsum, cumprod, cummax …): a row in steps of as many packs as threads share it.

Each step combines across the threads and goes on from the last step's total. With ``split`` several
blocks share a row: one launch leaves each block's total in a workspace, the next one begins each
block with those before it (docs/adr/0029).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from scheduler.codegen.cpp.nest import NestPrinter
from scheduler.codegen.cpp.values import convert
from scheduler.codegen.launch import ceil_div
from scheduler.codegen.legality import illegal
from scheduler.codegen.loops.printer import Pack
from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.printing.lines import Lines
from scheduler.codegen.rocm.launch import KERNEL
from scheduler.codegen.rocm.loop import LoopTemplate
from scheduler.codegen.rocm.reduction_body import Partials, SharedBody, Shares, partials
from scheduler.codegen.rocm.reduction_default import compute_units
from scheduler.codegen.rocm.scan_columns import THREADS, render
from scheduler.codegen.rocm.stages import Stage, combination
from scheduler.codegen.rocm.text import kernel_text
from scheduler.codegen.template import Config, RenderedTemplate
from scheduler.ir.index.functions import as_expr
from scheduler.ir.operations import Axis, ReductionKind
from scheduler.ir.values import Accumulator
from scheduler.outcome import Rejected

_LANES = (1, 8, 32, 64, 128, 256, 512, 1024)
_BLOCK = 256
_ITEMS = (1, 2, 4, 8)
_SPLITS = (1, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_COLUMN_SPLITS = (4, 16, 64, 128)
_WIDEST_BYTES = 16
_AHEAD = (4, 2, 1)
_STEPS = 4  # of a block that shares a row, at least
_MOST_BLOCKS = 4096
_BLOCKS_A_UNIT = 8
_LONG_ROW, _LONG_COLUMN = 16, 64  # steps of a block, a thread: longer than another launch takes


class ScanTemplate(LoopTemplate):
    """Running results along one axis, stored at every step."""

    name = "scan"

    def configs(self) -> Sequence[Config]:
        return [
            _config(lanes, items, split)
            for split in _SPLITS
            for items in _ITEMS
            for lanes in _LANES
            if split == 1 or lanes == _BLOCK
        ] + [
            {"lanes": 1, "columns": columns, "split": split}
            for columns in _ITEMS
            for split in _COLUMN_SPLITS
        ]

    def reject(self, config: Config) -> Rejected | None:
        if "columns" in config:
            return self._reject_columns(int(config["columns"]), int(config["split"]))
        lanes, items, split = _values(config)
        steps = self.nest.inner_numel
        if steps.is_Integer and lanes > 1 and lanes // 2 * items >= int(steps):
            return illegal(f"{lanes} lanes of {items} for {steps} elements: half would be idle")
        if items > 1:
            rejected = self._reject_items(items)
            if rejected:
                return rejected
        if split > 1:
            return self._reject_split(lanes * items, split)
        return None

    def _reject_columns(self, columns: int, split: int) -> Rejected | None:
        axis = self.nest.outer[-1] if self.nest.outer else None
        if axis is None or any(a.offset.step(axis.var) != 1 for a in self.nest.accesses):
            return illegal("no rows lie side by side")
        steps = self.hint(self.nest.inner_numel)
        if steps < split * _STEPS:
            return illegal(f"{split} parts of {steps} elements: less than {_STEPS} steps for each")
        return self._reject_items(columns, axis) if columns > 1 else None

    def _reject_items(self, items: int, along: Axis | None = None) -> Rejected | None:
        axis = along or (self.nest.inner[-1] if self.nest.inner else None)
        packs = [a for a in self.nest.accesses if axis and self.nest.is_vector(a, axis, items)]
        if not packs or len(packs) < len(self.nest.accesses):
            return illegal(f"not every access is a run of {items} aligned elements")
        widest = max(self.lowered.buffers[a.buffer].dtype.itemsize for a in packs)
        if items * widest > _WIDEST_BYTES:
            return illegal(f"{items} elements of {widest} bytes are more than 16")
        return None

    def _reject_split(self, unit: int, split: int) -> Rejected | None:
        steps = self.hint(self.nest.inner_numel)
        if steps < split * unit * _STEPS:
            return illegal(f"{split} parts of {steps} elements: less than {_STEPS} steps for each")
        blocks = self.hint(self.nest.outer_numel) * split
        if blocks > _MOST_BLOCKS:
            return illegal(f"{blocks} blocks are more than keep a device busy")
        return None

    def default_config(self) -> Config:
        rows = self.hint(self.nest.outer_numel)
        steps = self.hint(self.nest.inner_numel)
        columns = self._default_columns()
        if columns is not None:
            return columns
        items = next(n for n in reversed(_ITEMS) if n == 1 or self._reject_items(n) is None)
        units = compute_units(self.targets)
        if rows < units and steps >= _LONG_ROW * _BLOCK * items:
            for split in reversed(_SPLITS[1:]):
                config = _config(_BLOCK, items, split)
                if split * rows <= _BLOCKS_A_UNIT * units and self.reject(config) is None:
                    return config
        # With enough rows to fill the device, a thread a row needs no combining at all.
        if items == 1 and rows >= 1 << 16:
            return _config(1, 1, 1)
        useful = 1 if steps <= 4 else min(steps // (4 * items), _BLOCK if items > 1 else steps)
        fitting = [_config(n, items, 1) for n in _LANES if n <= max(useful, 1)]
        return [config for config in fitting if self.reject(config) is None][-1]

    def _default_columns(self) -> Config | None:
        """Packs of columns, with about as many blocks as keep the device busy; None for short ones,
        which one launch goes through sooner."""
        if self.hint(self.nest.inner_numel) < _LONG_COLUMN:
            return None
        for columns in reversed(_ITEMS):
            for split in reversed(_COLUMN_SPLITS):
                config: Config = {"lanes": 1, "columns": columns, "split": split}
                blocks = -(-self.hint(self.nest.outer_numel) // (columns * THREADS)) * split
                few = blocks <= _BLOCKS_A_UNIT * compute_units(self.targets)
                if (few or split == _COLUMN_SPLITS[0]) and self.reject(config) is None:
                    return config
        return None

    # -- text ------------------------------------------------------------------------------------

    def render(self, config: Config) -> RenderedTemplate:
        if "columns" in config:
            return render(self, int(config["columns"]), int(config["split"]))
        lanes, items, split = _values(config)
        threads = max(lanes, _BLOCK)
        ahead = self._ahead(lanes * items * split) if lanes > 1 else 1
        widest = max(s.accumulate.compute.itemsize for s in self.nest.statements)
        scratch = threads // 32 * widest * ahead if lanes > 32 else 0
        kept = partials((Stage(self.nest.statements, ()),))
        rows = self.nest.outer_numel
        blocks = ceil_div(rows, threads // lanes)
        workspace = rows * (split * kept.row_bytes) if split > 1 else as_expr(0)
        host = self.host(blocks)
        functions = [
            {**texts, "blocks": host.grid, "parts": split}
            for texts in self._functions(Shares(lanes, items, 0, split), kept)
        ]
        index = self._printer(self.lines(), 1).index
        text = kernel_text(self.name).render(
            header=self.header(),
            index_type=self.index_type,
            threads=threads,
            lanes=lanes,
            items=items,
            split=split,
            ahead=ahead,
            functions=functions,
            parameters=self.parameters,
            workspace=self.host(workspace).grid if split > 1 else "",
            scratch=scratch,
            xnumel=index(rows),
            rnumel=index(self.nest.inner_numel),
            powers=any(s.kind is ReductionKind.LOGSUMEXP for s in self.nest.statements),
            host=host,
        )
        more = ("workspace",) if split > 1 else ()
        launches = (
            self.launch(str(function["name"]), blocks, threads, scratch, more, split)
            for function in functions
        )
        return self.rendered(text, launches, workspace)

    def _ahead(self, unit: int) -> int:
        """Runs of a row that are read before the first is combined; ``unit``: steps of a run, of
        all blocks of the row."""
        runs = -(-self.hint(self.nest.inner_numel) // unit)
        return next((n for n in _AHEAD if n <= runs), 1)

    def _functions(self, shares: Shares, kept: Partials) -> list[dict[str, str]]:
        """All scans in one launch where a row has a block; otherwise two for each."""
        if shares.split == 1:
            lines = self.lines()
            printer = self._printer(lines, shares.vector)
            printer.decode("xindex", self.nest.outer)
            for number, statement in enumerate(self.nest.statements):
                _Scan(self, printer, statement, shares, f"carry{number}").print()
            return [{"name": KERNEL, "about": "", "body": str(lines)}]
        found = []
        for number, statement in enumerate(self.nest.statements):
            lines = self.lines()
            body = SharedBody(self._printer(lines, shares.vector), self.memory, shares, kept)
            stage = Stage((statement,), ())
            body.outer()
            body.reduce(stage)
            body.save(stage)
            about = "Each block's part, combined, to the workspace."
            found.append({"name": f"KERNEL_NAME_part{number}", "about": about, "body": str(lines)})
            lines = self.lines()
            printer = self._printer(lines, shares.vector)
            printer.decode("xindex", self.nest.outer)
            _Scan(self, printer, statement, shares, f"carry{number}").print(body)
            about = "Each block goes on from the parts before its own."
            found.append({"name": f"KERNEL_NAME_scan{number}", "about": about, "body": str(lines)})
        return found

    def _printer(self, lines: Lines, items: int) -> NestPrinter:
        pack = Pack(self.nest.inner[-1], items) if self.nest.inner else None
        return NestPrinter(self.nest, lines, self.memory, pack, self.renamed)


class _Scan:
    """Prints one scan over the block's part of a row."""

    def __init__(
        self,
        template: ScanTemplate,
        printer: NestPrinter,
        statement: Statement,
        shares: Shares,
        carry: str,
    ) -> None:
        self.printer = printer
        self.lines = printer.lines
        self._statement = statement
        self._shares = shares
        self._carry = carry
        self._inner = template.nest.inner

    def print(self, parts: SharedBody | None = None) -> None:
        """``parts`` knows where those of the blocks before are, if there are any."""
        operation, held = combination(self._statement)
        nodes = self._statement.store.nodes
        self.lines.add(f"{held} {self._carry} = {operation}::zero;", nodes)
        if parts is not None:
            partial = parts.partial(self._statement, "i")
            with self.lines.block("for (int i = lane; i < part; i += kLanes)"):
                self.lines.add(f"{self._carry} = {operation}()({self._carry}, {partial});", nodes)
            reduced = f"kiln::lanes_reduce<kLanes, kThreads>({self._carry}, {operation}(), scratch)"
            self.lines.add(f"{self._carry} = {reduced};", nodes)
        values = self.printer.values
        head = f"for (index_t base = rbegin; base < rstop; base += kAhead * {self._run})"
        with self.lines.block(head), values.scope(), values.computing(nodes):
            self._read(operation, held)
            self._combine(operation, held)
            self._write()

    @property
    def _packed(self) -> bool:
        return self._shares.vector > 1

    @property
    def _run(self) -> str:
        """Steps that the lanes of a row have beside one another."""
        return "kLanes * kVector" if self._packed else "kLanes"

    @property
    def _running(self) -> str:
        return "running[k][j]" if self._packed else "running[k]"

    @contextmanager
    def _each_run(self, *, inside: bool) -> Iterator[None]:
        """Lines for each run ``k``; ``inside``: where the thread has steps of it, at ``rindex``."""
        self.lines.add("#pragma unroll", ())
        with self.lines.block("for (int k = 0; k < kAhead; ++k)"):
            if not inside:
                yield
                return
            lane = "lane * kVector" if self._packed else "lane"
            self.lines.add(f"const index_t rindex = base + k * ({self._run}) + {lane};", ())
            with self.lines.block("if (rindex < rend)"):
                self.printer.decode("rindex", self._inner)
                yield

    def _each(self, text: str, first: int = 0) -> None:
        """``text`` for each element of the thread in a run."""
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
            element = convert(text, each.value.dtype, each.accumulate.compute)
            values.lines.add(f"{self._running} = {element};")

        with self._each_run(inside=False):
            self._each(f"{self._running} = {operation}::zero;")
        with self._each_run(inside=True), self.printer.values.scope():
            self.printer.run([statement], sink)

    def _combine(self, operation: str, held: str) -> None:
        self.lines.add(f"{held} before[kAhead];")
        last = "running[k]"
        with self._each_run(inside=False):
            if self._packed:
                self._each(
                    f"running[k][j] = {operation}()(running[k][j - 1], running[k][j]);", first=1
                )
                last = "running[k][kVector - 1]"
            self.lines.add(f"before[k] = {last};")
        operands = f"before, {self._carry}, {operation}(), scratch"
        self.lines.add(f"kiln::lanes_scan<kLanes, kThreads>({operands});")
        with self._each_run(inside=False):
            self._each(f"{self._running} = {operation}()(before[k], {self._running});")

    def _write(self) -> None:
        statement, values = self._statement, self.printer.values
        stored = replace(statement, kind=None, value=statement.store.value)
        with self._each_run(inside=True), values.scope():
            for name in ("acc", statement.name):
                for dtype in {statement.accumulate, statement.accumulate.compute}:
                    values.bind(Accumulator(dtype, name), self._running)
            self.printer.run([stored], self.printer.store)


def _config(lanes: int, items: int, split: int) -> Config:
    config = {"lanes": lanes}
    if items > 1:
        config["items"] = items
    if split > 1:
        config["split"] = split
    return config


def _values(config: Config) -> tuple[int, int, int]:
    return int(config["lanes"]), int(config.get("items", 1)), int(config.get("split", 1))
