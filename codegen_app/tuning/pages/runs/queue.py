"""The runs whose work a worker takes before that of another run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import OuterRef, Subquery, Sum

from codegen_app.tuning.models import TuningRun, TuningTask
from codegen_app.tuning.services.ledger import queue_target
from codegen_app.workers.models import OPEN_STATES


@dataclass(frozen=True)
class OpenRun:
    """A run that is not over. ``queue`` is the target whose workers do it; ``left_s`` is the rest
    of its time, None if it has no limit."""

    id: int
    queue: str
    priority: int
    left_s: float | None


@dataclass(frozen=True)
class RunsAhead:
    """The open runs ahead in a queue: ``left_s`` is the rest of their times together, but for the
    ``unlimited`` ones."""

    runs: int
    left_s: float
    unlimited: int

    @property
    def text(self) -> str:
        """The runs and their time in a few words."""
        if not self.runs:
            return "no run ahead"
        text = f"{self.runs} run{'s' * (self.runs > 1)} ahead"
        if self.unlimited == self.runs:
            return f"{text}, without a time limit"
        rest = f", and {self.unlimited} without a time limit" if self.unlimited else ""
        return f"{text}, at most {self.left_s:.0f} s{rest}"


def open_runs() -> tuple[OpenRun, ...]:
    """Return the runs that are not over, in the order of their work (1 query)."""
    spent = TuningTask.objects.filter(run=OuterRef("pk")).order_by().values("run")
    rows = TuningRun.objects.filter(state__in=OPEN_STATES).order_by("-priority", "pk")
    return tuple(
        OpenRun(
            id=row.pk,
            queue=queue_target(row),
            priority=row.priority,
            left_s=None if row.budget_s is None else max(0.0, row.budget_s - (spent_s or 0.0)),
        )
        for row in rows.annotate(spent_s=Subquery(spent.values(seconds=Sum("spent_s"))))
        for spent_s in [row.spent_s]
    )


def runs_ahead(runs: Iterable[OpenRun], queue: str, run: OpenRun | None = None) -> RunsAhead:
    """Return the runs of a queue ahead of a run; of a new one of the usual priority without it."""
    place = (-run.priority, run.id) if run else (0, float("inf"))
    ahead = [row for row in runs if row.queue == queue and (-row.priority, row.id) < place]
    limited = [row.left_s for row in ahead if row.left_s is not None]
    return RunsAhead(len(ahead), sum(limited), len(ahead) - len(limited))
