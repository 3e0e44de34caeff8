"""Columns by which the environments can be sorted and filtered."""

from __future__ import annotations

from codegen_app.web.tables import Column, Kind
from codegen_app.workers.pages.devices.query import EnvironmentRow

_GIB = 2**30

COLUMNS: tuple[Column[EnvironmentRow], ...] = (
    Column("device", "Device", lambda row: f"{row.device_name} {row.device}"),
    Column("target", "Target", lambda row: row.target),
    Column("emulated", "Emulated", lambda row: "emulated" if row.emulated else None, sparse=True),
    Column("compiler", "Compiler", lambda row: row.compiler),
    Column("driver", "Driver", lambda row: row.driver or None, sparse=True),
    Column("runtime", "Runtime", lambda row: row.runtime or None, sparse=True),
    Column("units", "Compute units", lambda row: row.compute_units, Kind.WHOLE),
    Column("memory", "Memory", lambda row: row.memory_bytes / _GIB, Kind.RATIO, "GiB"),
    Column("results", "Results", lambda row: row.results, Kind.WHOLE),
    Column("first", "First seen", lambda row: row.first_seen_at, Kind.MOMENT),
    Column("digest", "Hash", lambda row: row.digest, Kind.CODE, shown=False),
    Column("notes", "Notes", lambda row: "; ".join((*row.origins, *row.notes)) or None),
)
