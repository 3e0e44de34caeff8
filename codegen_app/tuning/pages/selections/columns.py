"""Columns by which the selections can be sorted and filtered."""

from __future__ import annotations

from codegen_app.tuning.pages.selections.query import SelectionBucket
from codegen_app.tuning.queries.measured_columns import format_pairs, time_columns
from codegen_app.web.tables import Column, Kind

COLUMNS: tuple[Column[SelectionBucket], ...] = (
    Column("problem", "Problem", lambda row: row.problem),
    Column("kernel", "Kernel", lambda row: row.serving.kernel, Kind.CODE),
    *time_columns(lambda row: row.serving),
    Column("device", "Device", lambda row: row.device_name),
    Column("target", "Target", lambda row: row.target, Kind.CODE, shown=False),
    Column("toolchain", "Toolchain", lambda row: row.toolchain, shown=False),
    Column("sizes", "Sizes", lambda row: format_pairs(row.bindings), Kind.CODE),
    Column("before", "Previous", lambda row: len(row.past) or None, Kind.WHOLE, sparse=True),
    Column("since", "Since", lambda row: row.serving.since, Kind.MOMENT),
    Column("why", "Reason", lambda row: f"{row.serving.reason} {row.serving.chosen_by}".strip()),
)
