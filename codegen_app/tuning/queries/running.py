"""The number of running tuning runs."""

from __future__ import annotations

from codegen_app.tuning.models import TuningTask
from codegen_app.workers.models import State

_MAX_COUNTED = 99


def running_label() -> str:
    """Return how many runs workers measure for now, for the bar of every page: "" for none (1
    query, of running tasks)."""
    rows = TuningTask.objects.filter(state=State.RUNNING).order_by().values("run").distinct()
    count = rows[: _MAX_COUNTED + 1].count()
    return "" if not count else str(count) if count <= _MAX_COUNTED else f"{_MAX_COUNTED}+"
