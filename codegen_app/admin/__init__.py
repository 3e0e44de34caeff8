"""The admin's pages: everything can be looked at, what must not be edited by hand is read-only."""

from __future__ import annotations

from codegen_app.admin import records, runs, schedules, series

__all__ = ["records", "runs", "schedules", "series"]
