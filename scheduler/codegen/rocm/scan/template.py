"""Scan kernels (cumsum, cumprod, cummax …): a row in steps of one pack for each thread that shares
it.

Each step combines across the threads and continues from the last step's total. With ``split``
several blocks share a row: one launch leaves each block's total in a workspace, the next one starts
each block with the totals before it (docs/adr/0029). Rows that may not begin at whole packs are cut
at aligned addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

from scheduler.codegen.cpp.nest import NestPrinter
from scheduler.codegen.legality import illegal
from scheduler.codegen.loops import alignment
from scheduler.codegen.loops.printer import Pack
from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.printing.index import IndexPrinter
from scheduler.codegen.printing.lines import Lines
from scheduler.codegen.rocm.jinja_templates import kernel_template
from scheduler.codegen.rocm.launch import KERNEL_FUNCTION
from scheduler.codegen.rocm.loop import LoopTemplate
from scheduler.codegen.rocm.loop_versions import Guarded, print_versions
from scheduler.codegen.rocm.reduction.default import compute_units
from scheduler.codegen.rocm.reduction.split_body import Partials, Split, SplitBody, plan_partials
from scheduler.codegen.rocm.reduction.stages import Stage
from scheduler.codegen.rocm.scan.body import ScanBody, define_shift
from scheduler.codegen.rocm.scan.columns import THREADS, render_columns
from scheduler.codegen.single_launch import ceil_div
from scheduler.codegen.template import Config, RenderedTemplate
from scheduler.errors import Rejected
from scheduler.ir.index.affine import Affine
from scheduler.ir.index.functions import as_expr
from scheduler.ir.operations import Axis, ReductionKind

Numbered: TypeAlias = tuple[int, Statement]

_LANES = (1, 8, 32, 64, 128, 256, 512, 1024)
_BLOCK = 256
_ITEMS = (1, 2, 4, 8)
_SPLITS = (1, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_COLUMN_SPLITS = (4, 16, 64, 128)
_WIDEST_BYTES = 16
_AHEAD = (4, 2, 1)
_STEPS = 4  # minimum for a block that shares a row
_MOST_BLOCKS = 4096
_BLOCKS_A_UNIT = 8
_LONG_ROW, _LONG_COLUMN = 16, 64  # steps of a block, a thread: longer than another launch takes


class ScanTemplate(LoopTemplate):
    """Running results along one axis, stored at every step."""

    name = "scan"

    def configs(self) -> Sequence[Config]:
        return [
            _scan_config(lanes, items, split)
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
        lanes, items, split = _parse_config(config)
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
            return illegal("rows are not adjacent in memory")
        steps = self.hint(self.nest.inner_numel)
        if steps < split * _STEPS:
            return illegal(f"{split} parts of {steps} elements have fewer than {_STEPS} steps each")
        return self._reject_items(columns, axis) if columns > 1 else None

    def _reject_items(self, items: int, along: Axis | None = None) -> Rejected | None:
        axis = along or (self.nest.inner[-1] if self.nest.inner else None)
        if axis is None or not (
            self._can_align(axis, items) or (along is None and self._cuts_always(items))
        ):
            return illegal(f"not every access has {items} aligned, consecutive elements")
        accesses = self.nest.accesses
        widest = max(self.lowered.buffers[a.buffer].dtype.itemsize for a in accesses)
        if items * widest > _WIDEST_BYTES:
            return illegal(f"{items} elements of {widest} bytes exceed the limit of 16 bytes")
        return None

    def _can_align(self, axis: Axis, items: int) -> bool:
        """Whether some sizes align packs along an axis for every access."""
        needs = self.nest.alignment_requirements
        return all(needs(access, axis, items) is not None for access in self.nest.accesses)

    def _cuts_always(self, items: int) -> bool:
        """Whether rows are cut whatever their sizes: if no sizes align packs, and rows are long."""
        if items == 1 or self._lead(items) is None:
            return False
        long = self.hint(self.nest.inner_numel) >= _LONG_ROW * items
        return long and not self._can_align(self.nest.inner[-1], items)

    def _reject_split(self, unit: int, split: int) -> Rejected | None:
        steps = self.hint(self.nest.inner_numel)
        if steps < split * unit * _STEPS:
            return illegal(f"{split} parts of {steps} elements have fewer than {_STEPS} steps each")
        blocks = self.hint(self.nest.outer_numel) * split
        if blocks > _MOST_BLOCKS:
            return illegal(f"{blocks} blocks are more than the device needs")
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
                config = _scan_config(_BLOCK, items, split)
                if split * rows <= _BLOCKS_A_UNIT * units and self.reject(config) is None:
                    return config
        # With enough rows to fill the device, one thread per row needs no combining at all.
        if items == 1 and rows >= 1 << 16:
            return _scan_config(1, 1, 1)
        useful = 1 if steps <= 4 else min(steps // (4 * items), _BLOCK if items > 1 else steps)
        fitting = [_scan_config(n, items, 1) for n in _LANES if n <= max(useful, 1)]
        return [config for config in fitting if self.reject(config) is None][-1]

    def _default_columns(self) -> Config | None:
        """Return packs of columns, with about as many blocks as keep the device busy; None for
        short columns, which one launch processes sooner."""
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

    # -- source ----------------------------------------------------------------------------------

    def render(self, config: Config) -> RenderedTemplate:
        if "columns" in config:
            return render_columns(self, int(config["columns"]), int(config["split"]))
        lanes, items, split = _parse_config(config)
        threads = max(lanes, _BLOCK)
        ahead = self._prefetch_depth(lanes * items * split) if lanes > 1 else 1
        widest = max(s.accumulate.compute_dtype.itemsize for s in self.nest.statements)
        scratch = threads // 32 * widest * ahead if lanes > 32 else 0
        kept = plan_partials((Stage(self.nest.statements, ()),))
        rows = self.nest.outer_numel
        blocks = ceil_div(rows, threads // lanes)
        workspace = rows * (split * kept.row_bytes) if split > 1 else as_expr(0)
        host, shares = self.host(blocks), Split(lanes, items, 0, split)
        functions = [
            {**texts, "blocks": host.grid, "parts": split}
            for texts in self._functions(shares, kept)
        ]
        index = self.index
        text = kernel_template(self.name).render(
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
            cuts=any(shares.cut for _, shares in self._choices(shares)),
            powers=any(s.kind is ReductionKind.LOGSUMEXP for s in self.nest.statements),
            host=host,
        )
        more = ("workspace",) if split > 1 else ()
        launches = (
            self.make_launch(str(function["name"]), blocks, threads, scratch, more, split)
            for function in functions
        )
        return self.finish_render(text, launches, workspace)

    def _prefetch_depth(self, unit: int) -> int:
        """Return the runs of a row that are read before the first is combined; ``unit``: steps of a
        run, over all blocks of the row."""
        runs = -(-self.hint(self.nest.inner_numel) // unit)
        return next((n for n in _AHEAD if n <= runs), 1)

    def _functions(self, shares: Split, kept: Partials) -> list[dict[str, str]]:
        """Return the functions: all scans in one launch if a row has one block; otherwise two for
        each."""
        choices = self._choices(shares)
        scans = [*enumerate(self.nest.statements)]

        def all_scans(shares: Split, indent: int) -> str:
            return self._print_scans(self._printer(self.lines(indent), shares), shares, scans, None)

        if shares.split == 1:
            return [
                {"name": KERNEL_FUNCTION, "about": "", "body": print_versions(choices, all_scans)}
            ]
        found = []
        for number, statement in scans:

            def part(shares: Split, indent: int, statement: Statement = statement) -> str:
                body = self._split_body(shares, kept, indent)
                stage = Stage((statement,), ())
                body.outer()
                body.reduce(stage)
                body.save(stage)
                return str(body.lines)

            def scan(shares: Split, indent: int, one: Numbered = (number, statement)) -> str:
                body = self._split_body(shares, kept, indent)
                return self._print_scans(body.printer, shares, [one], body)

            about = "Each block's part, combined, to the workspace."
            text = print_versions(choices, part)
            found.append({"name": f"KERNEL_NAME_part{number}", "about": about, "body": text})
            about = "Each block goes on from the parts before its own."
            text = print_versions(choices, scan)
            found.append({"name": f"KERNEL_NAME_scan{number}", "about": about, "body": text})
        return found

    def _split_body(self, shares: Split, kept: Partials, indent: int) -> SplitBody:
        printer = self._printer(self.lines(indent), shares)
        return SplitBody(printer, self.memory, shares, kept)

    def _print_scans(
        self,
        printer: NestPrinter,
        shares: Split,
        scans: Sequence[Numbered],
        parts: SplitBody | None,
    ) -> str:
        """Print some scans of one launch; ``parts`` locates the totals of the blocks before."""
        printer.decode("xindex", self.nest.outer)
        if shares.cut:
            define_shift(printer)
        for number, statement in scans:
            ScanBody(printer, statement, shares, f"carry{number}").print(parts)
        return str(printer.lines)

    def _choices(self, shares: Split) -> Sequence[Guarded[Split]]:
        """Return the versions of the loop over a row; several if sizes select one."""
        conditions = self.conditions(shares.vector)
        if not conditions and not self._cuts_always(shares.vector):
            return [([], shares)]
        if self._lead(shares.vector) is not None:
            return [([], replace(shares, cut=True))]
        return [(conditions, shares), ([], replace(shares, vector=1))]

    def conditions(self, items: int, along: Axis | None = None, name: str = "kVector") -> list[str]:
        """Return the conditions under which packs along an axis (a row, without one) are aligned,
        as far as they depend on unknown sizes."""
        axis = along or (self.nest.inner[-1] if self.nest.inner else None)
        if axis is None or items == 1:
            return []
        needs = dict.fromkeys(
            need
            for access in self.nest.accesses
            for need in self.nest.alignment_requirements(access, axis, items) or ()
        )
        return [f"{self.index.atom(need)} % {name} == 0" for need in needs]

    def _lead(self, items: int) -> Affine | None:
        """Return the offset that decides where rows are cut into packs, if everything can be cut
        there."""
        if not self.nest.inner:
            return None
        axis = self.nest.inner[-1]
        lead = alignment.find_lead(self.nest, axis, items)
        moves = (
            lead is not None and alignment.is_aligned_with(self.nest, access, lead, axis, items)
            for access in self.nest.accesses
        )
        return lead if all(moves) else None

    @cached_property
    def index(self) -> IndexPrinter:
        """Return a printer of sizes in the device functions."""
        return self._printer(self.lines(), Split(1)).index

    def _printer(self, lines: Lines, shares: Split) -> NestPrinter:
        pack = None
        if self.nest.inner:
            checked = bool(self.conditions(shares.vector))
            lead = self._lead(shares.vector) if shares.cut else None
            pack = Pack(self.nest.inner[-1], shares.vector, checked, lead)
        return NestPrinter(self.nest, lines, self.memory, pack, self.symbol_renames)


def _scan_config(lanes: int, items: int, split: int) -> Config:
    config = {"lanes": lanes}
    if items > 1:
        config["items"] = items
    if split > 1:
        config["split"] = split
    return config


def _parse_config(config: Config) -> tuple[int, int, int]:
    return int(config["lanes"]), int(config.get("items", 1)), int(config.get("split", 1))
