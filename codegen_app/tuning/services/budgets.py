"""A task's budget: its share of its run's budget. Only work on a device counts."""

from __future__ import annotations

import time

from django.db.models import Sum

from codegen_app.tuning.models import Candidate, TuningTask
from codegen_app.workers.models import OPEN_STATES, State
from scheduler.tuning.budget import Budget

_MIN_S = 0.01


class WorkTimer:
    """Seconds of work on a task: those of earlier attempts, and those since ``begin``."""

    def __init__(self, task: TuningTask) -> None:
        self._before = task.spent_s
        self._since: float | None = None

    def begin(self) -> None:
        """Start counting: the task has its device now."""
        self._since = time.monotonic()

    @property
    def seconds(self) -> float:
        """Return all seconds so far."""
        since = self._since
        return self._before + (0.0 if since is None else time.monotonic() - since)

    def fields(self) -> dict[str, float]:
        """Return the fields of each heartbeat: a worker that dies leaves its spent time."""
        return {"spent_s": self.seconds}


def share_of_budget(task: TuningTask) -> Budget:
    """Return an equal part of the run's remaining budget per open task; no limits if the run has
    none."""
    run = task.run
    tasks = run.tasks.filter(state__in=OPEN_STATES).count() or 1
    others = Candidate.objects.filter(task__run=run, kernel__isnull=False).exclude(task=task)
    seconds = run.budget_s
    if seconds is not None:
        spent = run.tasks.aggregate(spent=Sum("spent_s"))["spent"] or 0.0
        seconds = max((seconds - spent) / tasks, _MIN_S)
    tried = others.exclude(state__in=[*OPEN_STATES, State.CANCELLED])
    compiled = others.filter(build__cached=False, build__created_at__gte=run.created_at)
    return Budget(
        seconds=seconds,
        compiles=_share(run.max_compiles, compiled.values("build").distinct().count(), tasks),
        measurements=_share(run.max_measurements, tried.count(), tasks),
    )


def _share(limit: int | None, spent: int, tasks: int) -> int | None:
    return None if limit is None else -(-max(limit - spent, 0) // tasks)
