"""Scans along an outer axis of memory: neighbouring threads take neighbouring columns, in packs.

Parts of a column go to different blocks: one launch leaves each part's total, another one scans the
totals of each column, and the last one continues from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.rocm.loop import LoopTemplate
from scheduler.codegen.rocm.reduction.accumulators import combine_operation, convert_element
from scheduler.codegen.rocm.reduction.configs import Split
from scheduler.codegen.rocm.reduction.functions import DeviceFunction
from scheduler.codegen.rocm.reduction.split_body import (
    STRIDED_COLUMN,
    Partials,
    SplitBody,
    reduce_part,
)
from scheduler.codegen.rocm.reduction.stages import Stage
from scheduler.codegen.rocm.scan.body import store_running
from scheduler.codegen.rocm.scan.configs import COLUMN_THREADS
from scheduler.codegen.rocm.scan.problem import ScanProblem
from scheduler.codegen.single_launch import ceil_div

_MAX_PARTS_AT_ONCE = 16  # that a thread reads


def column_functions(
    template: LoopTemplate, problem: ScanProblem, split: Split, partials: Partials
) -> Iterator[DeviceFunction]:
    """Yield three launches for each scan, in which a thread has ``columns`` columns and blocks
    share each."""

    def function(
        name: str, print_body: Callable[[SplitBody], None], split: Split, about: str, parts: int
    ) -> DeviceFunction:
        packs = problem.column_packs[split.columns]
        conditions = packs.conditions(template.index, "kColumns")

        def body(version: Split) -> str:
            pack = packs.pack(strided=STRIDED_COLUMN if version.strided else "")
            printer = template.printer(pack, 2 if conditions else 1, fast=False)
            print_body(SplitBody(printer, version, partials))
            return str(printer.lines)

        return DeviceFunction(
            f"KERNEL_NAME_{name}",
            about,
            body(split),
            split,
            ceil_div(problem.nest.outer_numel, COLUMN_THREADS * split.columns),
            parts,
            loops=parts > 1,
            aligned=" && ".join(conditions),
            strided=body(replace(split, strided=True)) if conditions else "",
        )

    single = replace(split, columns=1)
    for number, statement in enumerate(problem.nest.statements):
        print_parts = partial(reduce_part, Stage((statement,), ()))
        yield function(f"part{number}", print_parts, split, "Each part, combined.", split.split)
        about = "What is before each part, in its place."
        yield function(f"total{number}", partial(_scan_parts, statement), single, about, 1)
        about = "Each part goes on from those before it."
        scan = partial(_continue_scan, statement)
        yield function(f"scan{number}", scan, split, about, split.split)


def _scan_parts(statement: Statement, body: SplitBody) -> None:
    operation, cpp = combine_operation(statement)
    lines, nodes = body.lines, statement.store.nodes
    count = min(_MAX_PARTS_AT_ONCE, body.split.split)
    lines.add(f"{cpp} carry = {operation}::zero;", nodes)
    with (
        lines.block("if (active)"),
        lines.block(f"for (int first = 0; first < kSplit; first += {count})"),
    ):
        total = body.partial(statement, "(first + i)")
        lines.add(f"{cpp} parts[{count}];", nodes)
        lines.add("#pragma unroll", ())
        lines.add(f"for (int i = 0; i < {count}; ++i) parts[i] = {total};", nodes)
        lines.add("#pragma unroll", ())
        with lines.block(f"for (int i = 0; i < {count}; ++i)"):
            lines.add(f"{total} = carry;", nodes)
            lines.add(f"carry = {operation}()(carry, parts[i]);", nodes)


def _continue_scan(statement: Statement, body: SplitBody) -> None:
    operation, cpp = combine_operation(statement)
    printer, lines, nodes = body.printer, body.lines, statement.store.nodes
    values, carry = printer.values, f"carry{body.column}"
    body.outer()
    lines.add(f"{cpp} carry[kColumns];", nodes)
    body.each_column(f"{carry} = {body.partial(statement, 'part')};", statement)

    def print_sum(statement: Statement) -> None:
        text = convert_element(statement, values.value(statement.value))
        values.lines.add(f"{carry} = {operation}()({carry}, {text});", nodes)

    lines.add("#pragma unroll 4", ())
    with (
        lines.block("for (index_t rindex = rbegin; rindex < rend; ++rindex)"),
        values.scope(),
        values.mark_nodes(nodes),
    ):
        printer.decode("rindex", printer.nest.inner)
        with values.scope():
            printer.run([statement], print_sum)
        store_running(printer, statement, carry)
