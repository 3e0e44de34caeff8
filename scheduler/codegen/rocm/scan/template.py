"""Scan kernels (cumsum, cumprod, cummax …): a row in steps of one pack for each thread that shares
it.

Each step combines across the threads and continues from the last step's total. With ``split``
several blocks share a row: one launch leaves each block's total in a workspace, the next one starts
each block with the totals before it (docs/adr/0029). Rows that may not begin at whole packs are cut
at aligned addresses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.rocm.launch import KERNEL_FUNCTION
from scheduler.codegen.rocm.loop import Guarded, LoopTemplate, print_versions
from scheduler.codegen.rocm.reduction.configs import Split
from scheduler.codegen.rocm.reduction.functions import DeviceFunction, render_functions
from scheduler.codegen.rocm.reduction.split_body import SplitBody, plan_partials, reduce_part
from scheduler.codegen.rocm.reduction.stages import Stage
from scheduler.codegen.rocm.scan.body import print_scans
from scheduler.codegen.rocm.scan.columns import column_functions
from scheduler.codegen.rocm.scan.configs import (
    COLUMN_THREADS,
    THREADS,
    configs,
    default_config,
    parse_config,
    reject,
)
from scheduler.codegen.rocm.scan.problem import ScanProblem
from scheduler.codegen.single_launch import ceil_div
from scheduler.codegen.template import Config, RenderedTemplate
from scheduler.errors import Rejected
from scheduler.ir.operations import ReductionKind

_RUNS_AHEAD = (4, 2, 1)


class ScanTemplate(LoopTemplate):
    """Running results along one axis, stored at every step."""

    name = "scan"

    @cached_property
    def problem(self) -> ScanProblem:
        """Return what every part of the template reads, computed once."""
        nest = self.nest
        rows, steps = self.hint(nest.outer_numel), self.hint(nest.inner_numel)
        return ScanProblem(nest, self.targets, rows, steps)

    def configs(self) -> Sequence[Config]:
        return configs()

    def reject(self, config: Config) -> Rejected | None:
        return reject(self.problem, config)

    def default_config(self) -> Config:
        return default_config(self.problem)

    def render(self, config: Config) -> RenderedTemplate:
        split, statements = parse_config(config), self.nest.statements
        partials = plan_partials((Stage(statements, ()),))
        row_bytes = split.slots * partials.row_bytes
        powers = any(s.kind is ReductionKind.LOGSUMEXP for s in statements)
        if split.columns:
            return render_functions(
                self,
                "split_reduction",
                list(column_functions(self, self.problem, split, partials)),
                COLUMN_THREADS,
                split.split,
                row_bytes,
                moments=False,
                exponentials=False,
                cuts=False,
                powers=powers,
            )
        lanes, items = split.lanes, split.vector
        threads = max(lanes, THREADS)
        # Runs of a row, over all of its blocks, that are read before the first is combined.
        run_count = -(-self.problem.steps // (lanes * items * split.split))
        runs_ahead = next((n for n in _RUNS_AHEAD if n <= run_count), 1) if lanes > 1 else 1
        widest_bytes = max(s.accumulate.compute_dtype.itemsize for s in statements)
        scratch_size = threads // 32 * widest_bytes * runs_ahead if lanes > 32 else 0
        versions = self._versions(split)
        blocks = ceil_div(self.nest.outer_numel, threads // lanes)

        def function(
            name: str, about: str, scans: Sequence[tuple[int, Statement]], *, saves: bool = False
        ) -> DeviceFunction:
            def body(version: Split, indent: int) -> str:
                packs = self.problem.row_packs[version.vector]
                printer = self.printer(packs.pack(cut=version.cut), indent, fast=False)
                split_body = SplitBody(printer, version, partials)
                if saves:
                    reduce_part(Stage(tuple(statement for _, statement in scans), ()), split_body)
                else:
                    print_scans(split_body, scans)
                return str(printer.lines)

            text = print_versions(versions, body)
            return DeviceFunction(name, about, text, split, blocks, split.split, scratch_size)

        def functions() -> Iterator[DeviceFunction]:
            scans = [*enumerate(statements)]
            if split.split == 1:
                yield function(KERNEL_FUNCTION, "", scans)
                return
            for number, statement in scans:
                scan = [(number, statement)]
                about = "Each block's part, combined, to the workspace."
                yield function(f"KERNEL_NAME_part{number}", about, scan, saves=True)
                about = "Each block goes on from the parts before its own."
                yield function(f"KERNEL_NAME_scan{number}", about, scan)

        return render_functions(
            self,
            self.name,
            list(functions()),
            threads,
            split.split,
            row_bytes,
            lanes=lanes,
            items=items,
            ahead=runs_ahead,
            scratch=scratch_size,
            cuts=any(version.cut for _, version in versions),
            powers=powers,
        )

    def _versions(self, split: Split) -> Sequence[Guarded[Split]]:
        """Return the versions of the loop over a row; several if sizes select one."""
        conditions = self.problem.row_packs[split.vector].conditions(self.index)
        if not conditions and not self.problem.cuts_always(split.vector):
            return [([], split)]
        if self.problem.lead(split.vector) is not None:
            return [([], replace(split, cut=True))]
        return [(conditions, split), ([], replace(split, vector=1))]
