"""Scans along an outer axis of memory: neighbouring threads take neighbouring columns, in packs.

Parts of a column go to different blocks: one launch leaves each part's total, another one scans the
totals of each column, and the last one continues from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from scheduler.codegen.cpp.nest import NestPrinter
from scheduler.codegen.cpp.values import convert
from scheduler.codegen.kernel import Launch
from scheduler.codegen.loops.printer import Pack
from scheduler.codegen.loops.statements import Statement
from scheduler.codegen.printing.lines import Lines
from scheduler.codegen.rocm.jinja_templates import kernel_template
from scheduler.codegen.rocm.reduction.split_body import (
    STRIDED_COLUMN,
    Partials,
    Split,
    SplitBody,
    plan_partials,
)
from scheduler.codegen.rocm.reduction.stages import Stage, combine
from scheduler.codegen.single_launch import ceil_div
from scheduler.codegen.template import RenderedTemplate
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Accumulator

if TYPE_CHECKING:
    from scheduler.codegen.rocm.scan.template import ScanTemplate

THREADS = 64  # of a block: each has columns of its own, and nothing is shared
_AT_ONCE = 16  # parts that a thread reads at once
_Context = dict[str, object]


def render_columns(template: ScanTemplate, columns: int, split: int) -> RenderedTemplate:
    """Return the kernel in which a thread has ``columns`` columns and ``split`` blocks share
    each."""
    nest, shares = template.nest, Split(1, 1, columns, split)
    rows = nest.outer_numel
    kept = plan_partials((Stage(nest.statements, ()),))
    workspace = rows * (shares.slots * kept.row_bytes)
    functions = list(_functions(template, shares, kept))
    index = template.index
    text = kernel_template("reduction_shared").render(
        header=template.header(),
        index_type=template.index_type,
        threads=THREADS,
        split=split,
        functions=functions,
        parameters=template.parameters,
        workspace=template.host(workspace).grid,
        xnumel=index(rows),
        rnumel=index(nest.inner_numel),
        moments=False,
        cuts=False,
        powers=any(s.kind is ReductionKind.LOGSUMEXP for s in nest.statements),
        host=template.host(rows),
    )
    return template.finish_render(text, [_launch(template, one) for one in functions], workspace)


def _launch(template: ScanTemplate, function: _Context) -> Launch:
    shares, parts = function["shares"], function["parts"]
    assert isinstance(shares, Split)
    assert isinstance(parts, int)
    blocks = ceil_div(template.nest.outer_numel, THREADS * shares.columns)
    return template.make_launch(str(function["name"]), blocks, THREADS, 0, ("workspace",), parts)


def _functions(template: ScanTemplate, shares: Split, kept: Partials) -> Iterator[_Context]:
    """Yield three launches for each scan."""
    for number, statement in enumerate(template.nest.statements):

        def part(body: SplitBody, statement: Statement = statement) -> None:
            stage = Stage((statement,), ())
            body.outer()
            body.reduce(stage)
            body.save(stage)

        def total(body: SplitBody, statement: Statement = statement) -> None:
            _scan_parts(body.lines, body, statement, shares.split)

        def scan(body: SplitBody, statement: Statement = statement) -> None:
            _continue_scan(body.printer, body, statement)

        about = "Each part, combined."
        yield _function_context(template, f"part{number}", part, shares, kept, about)
        about = "What is before each part, in its place."
        single = replace(shares, columns=1)
        yield _function_context(template, f"total{number}", total, single, kept, about, loops=False)
        about = "Each part goes on from those before it."
        yield _function_context(template, f"scan{number}", scan, shares, kept, about)


def _function_context(
    template: ScanTemplate,
    name: str,
    statements: Callable[[SplitBody], None],
    shares: Split,
    kept: Partials,
    about: str,
    loops: bool = True,
) -> _Context:
    def body(shares: Split, indent: int) -> str:
        printer = _printer(template, template.lines(indent), shares)
        body = SplitBody(printer, template.memory, shares, kept)
        statements(body)
        return str(body.lines)

    conditions = template.conditions(shares.columns, template.nest.outer[-1], "kColumns")
    blocks = ceil_div(template.nest.outer_numel, THREADS * shares.columns)
    return {
        "name": f"KERNEL_NAME_{name}",
        "about": about,
        "shares": shares,
        "scratch": 0,
        "loops": loops,
        "unit": 1,
        "body": body(shares, 2 if conditions else 1),
        "aligned": " && ".join(conditions),
        "strided": body(replace(shares, strided=True), 2) if conditions else "",
        "blocks": template.host(blocks).grid,
        "parts": shares.split if loops else 1,
    }


def _printer(template: ScanTemplate, lines: Lines, shares: Split) -> NestPrinter:
    axis = template.nest.outer[-1]
    checked = bool(template.conditions(shares.columns, axis))
    pack = Pack(axis, shares.columns, checked, strided=STRIDED_COLUMN if shares.strided else "")
    return NestPrinter(template.nest, lines, template.memory, pack, template.symbol_renames)


def _scan_parts(lines: Lines, body: SplitBody, statement: Statement, split: int) -> None:
    operation, held = combine(statement)
    nodes = statement.store.nodes
    some = min(_AT_ONCE, split)
    lines.add(f"{held} carry = {operation}::zero;", nodes)
    with (
        lines.block("if (active)"),
        lines.block(f"for (int first = 0; first < kSplit; first += {some})"),
    ):
        place = body.partial(statement, "(first + i)")
        lines.add(f"{held} parts[{some}];", nodes)
        lines.add("#pragma unroll", ())
        lines.add(f"for (int i = 0; i < {some}; ++i) parts[i] = {place};", nodes)
        lines.add("#pragma unroll", ())
        with lines.block(f"for (int i = 0; i < {some}; ++i)"):
            lines.add(f"{place} = carry;", nodes)
            lines.add(f"carry = {operation}()(carry, parts[i]);", nodes)


def _continue_scan(printer: NestPrinter, body: SplitBody, statement: Statement) -> None:
    operation, held = combine(statement)
    lines, values, nodes = printer.lines, printer.values, statement.store.nodes
    columns = body.shares.columns
    at = "[j]" if columns > 1 else "[0]"
    body.outer()
    lines.add(f"{held} carry[kColumns];", nodes)
    each = "for (int j = 0; j < kColumns; ++j) " if columns > 1 else ""
    if each:
        lines.add("#pragma unroll", ())
    lines.add(f"{each}carry{at} = {body.partial(statement, 'part')};", nodes)

    def sink(one: Statement) -> None:
        text = printer.values.value(one.value)
        element = convert(text, one.value.dtype, one.accumulate.compute_dtype)
        printer.values.lines.add(f"carry{at} = {operation}()(carry{at}, {element});", nodes)

    lines.add("#pragma unroll 4", ())
    with (
        lines.block("for (index_t rindex = rbegin; rindex < rend; ++rindex)"),
        values.scope(),
        values.mark_nodes(nodes),
    ):
        printer.decode("rindex", printer.nest.inner)
        with values.scope():
            printer.run([statement], sink)
        for name in ("acc", statement.name):
            for dtype in {statement.accumulate, statement.accumulate.compute_dtype}:
                values.bind(Accumulator(dtype, name), f"carry{at}")
        printer.run([replace(statement, kind=None, value=statement.store.value)], printer.store)
