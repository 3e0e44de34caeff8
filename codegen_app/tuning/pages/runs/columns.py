"""Columns by which the list of tuning runs can be sorted and filtered."""

from __future__ import annotations

from codegen_app.tuning.pages.runs.query import RunRow
from codegen_app.tuning.queries.measured_columns import format_pairs
from codegen_app.web.tables import Column, Kind

COLUMNS: tuple[Column[RunRow], ...] = (
    Column("run", "Run", lambda row: row.id, Kind.WHOLE),
    Column("graph", "Graph", lambda row: f"{row.graph} {row.node}".rstrip()),
    Column("state", "State", lambda row: row.state),
    Column("progress", "Progress", lambda row: 100 * row.share, Kind.SHARE, "%"),
    Column("measured", "Measured", lambda row: row.progress.done, Kind.WHOLE),
    Column("failed", "Failed", lambda row: row.progress.failed, Kind.WHOLE),
    Column("left", "Remaining", lambda row: row.progress.left, Kind.WHOLE),
    Column("device", "Device", lambda row: row.imported or row.device),
    Column("target", "Target", lambda row: row.target),
    Column("sizes", "Sizes", lambda row: format_pairs(row.bindings), Kind.CODE),
    Column("started", "Started", lambda row: row.started_at, Kind.MOMENT),
)
