"""What a task may spend: its share of its run's budget."""

from __future__ import annotations

from django.utils import timezone

from codegen_app.models import OPEN_STATES, Candidate, State, TuningTask
from scheduler.tuning.budget import Budget

_MIN_S = 0.01


def share_of_budget(task: TuningTask) -> Budget:
    """An equal part of what is left to those open; without limits where the run has none."""
    run = task.run
    run.refresh_from_db(fields=["started_at"])
    tasks = run.tasks.filter(state__in=OPEN_STATES).count() or 1
    others = Candidate.objects.filter(task__run=run, kernel__isnull=False).exclude(task=task)
    seconds = run.budget_s
    if seconds is not None and run.started_at is not None:
        left = seconds - (timezone.now() - run.started_at).total_seconds()
        seconds = max(left / tasks, _MIN_S)
    tried = others.exclude(state__in=[*OPEN_STATES, State.CANCELLED])
    compiled = others.filter(build__cached=False, build__created_at__gte=run.created_at)
    return Budget(
        seconds=seconds,
        compiles=_share(run.max_compiles, compiled.values("build").distinct().count(), tasks),
        measurements=_share(run.max_measurements, tried.count(), tasks),
    )


def _share(limit: int | None, spent: int, tasks: int) -> int | None:
    return None if limit is None else -(-max(limit - spent, 0) // tasks)
