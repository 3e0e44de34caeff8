"""Columns by which tables of graphs, and of one graph's nodes, can be sorted and filtered."""

from __future__ import annotations

from dataclasses import replace

from codegen_app.graphs.pages.graph.query import GraphPage, ScheduledRow, ViewNode
from codegen_app.graphs.pages.graphs.query import GraphRow
from codegen_app.tuning.queries.measured_columns import time_columns
from codegen_app.web.tables import Column, Kind


def build_counts(row: GraphRow) -> str | None:
    """Return the builds per target: done, rejected and open."""
    counts = (
        f"{builds.target} {builds.done}/{builds.rejected}/{builds.open}"
        for builds in row.builds
        if builds.total
    )
    return " ".join(counts) or None


GRAPHS: tuple[Column[GraphRow], ...] = (
    Column("graph", "Graph", lambda row: row.name),
    Column("state", "Prepared", lambda row: row.state),
    Column("nodes", "Graph nodes", lambda row: row.node_count, Kind.WHOLE),
    Column("scheduled", "Scheduled", lambda row: row.template_nodes, Kind.WHOLE),
    Column("externs", "Externs", lambda row: row.externs or None, Kind.WHOLE, sparse=True),
    Column("kernels", "Kernels", lambda row: row.kernels, Kind.WHOLE),
    Column("builds", "Builds", build_counts, note="done / rejected / open, per target"),
    Column(
        "measured",
        "Measured nodes",
        lambda row: row.measured.measured if row.measured.with_kernel else None,
        Kind.WHOLE,
        note="nodes whose selected kernel is measured, of the nodes with a kernel",
    ),
    Column("imported", "Imported", lambda row: row.created_at, Kind.MOMENT),
    Column("digest", "Hash", lambda row: row.digest, Kind.CODE),
)


def scheduled_columns(page: GraphPage) -> tuple[Column[ScheduledRow], ...]:
    """Return the columns of the scheduled nodes; times are those of the page's bucket."""
    times: tuple[Column[ScheduledRow], ...] = time_columns(lambda row: row.serving)
    median, *others = times
    is_part = page.measured.measured and not page.measured.is_whole
    of = f" of {page.measured.measured}" if is_part else ""
    return (
        Column(
            "position",
            "#",
            lambda row: row.position,
            Kind.WHOLE,
            note="execution order",
            shown=False,
        ),
        Column("node", "Node", lambda row: row.name, Kind.CODE),
        Column("kind", "Kind", lambda row: row.kind, shown=False),
        Column("op", "Op and problem", lambda row: f"{row.op} {row.problem}".strip() or None),
        median,
        Column(
            "share",
            "Share",
            lambda row: None if row.share is None else 100 * row.share,
            Kind.SHARE,
            f"%{of}",
            f"of the sum of medians; {page.measured} nodes",
        ),
        Column(
            "roofline",
            "Roofline",
            lambda row: None if row.roofline is None else 100 * row.roofline,
            Kind.SHARE,
            "%",
            "lower bound of the time by the board's memory bandwidth and matrix rate / median",
            sparse=True,
        ),
        Column(
            "bound",
            "Roof",
            lambda row: row.bound or None,
            note="what sets the lower bound",
            sparse=True,
        ),
        *(replace(column, shown=False) for column in others),
        Column(
            "calls",
            "Calls",
            lambda row: row.calls or None,
            Kind.WHOLE,
            note="nodes that use its kernel",
            shown=False,
        ),
        Column("kernel", "Kernel", kernel_text, Kind.CODE),
        Column("candidates", "Candidates", lambda row: row.candidates, Kind.WHOLE, shown=False),
        Column(
            "illegal",
            "Illegal",
            lambda row: row.not_legal,
            Kind.WHOLE,
            note=f"configurations rejected by the rules of {page.target}",
            shown=False,
        ),
        Column("module", "Module", lambda row: row.module or None, Kind.CODE, shown=False),
    )


def kernel_text(row: ScheduledRow) -> str | None:
    """Return the kernel that serves a node, or why it has none."""
    return row.serving.kernel if row.serving else row.extern_reason or None


def kernel_names(row: ViewNode) -> str | None:
    """Return the kernels that compute a node."""
    return " ".join(dict.fromkeys(lines.kernel for lines in row.computed)) or None


NODES: tuple[Column[ViewNode], ...] = (
    Column("node", "Node", lambda row: row.name, Kind.CODE),
    Column("op", "Op", lambda row: row.op, Kind.CODE),
    Column("kind", "Kind", lambda row: row.kind),
    Column("lines", "Kernel lines", kernel_names, Kind.CODE, note="by kernel name"),
    Column("module", "Module", lambda row: row.module or None, Kind.CODE),
    Column("line", "Model line", lambda row: row.source or None, Kind.CODE),
)
