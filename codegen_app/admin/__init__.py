"""The admin's pages: everything can be looked at, what must not be edited by hand is read-only."""

from __future__ import annotations

from codegen_app.admin import records, retention, runs, schedules, series, times, upkeep

__all__ = ["records", "retention", "runs", "schedules", "series", "times", "upkeep"]
