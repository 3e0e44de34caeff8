"""The admin's pages: everything is visible; what must not be edited by hand is read-only."""

from __future__ import annotations

from codegen_app.admin import (
    measurements,
    records,
    repositories,
    retention,
    runs,
    schedules,
    series,
    system,
)

__all__ = [
    "measurements",
    "records",
    "repositories",
    "retention",
    "runs",
    "schedules",
    "series",
    "system",
]
