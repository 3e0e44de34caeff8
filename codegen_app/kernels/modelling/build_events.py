"""Updates of modellings when a build is over."""

from __future__ import annotations

from django.db.models import QuerySet

from codegen_app.kernels.models import Build, Modelling
from codegen_app.workers import queue, work
from codegen_app.workers.models import OPEN_STATES, State
from scheduler.errors import Stage

_FAILED_STATES = tuple(set(State) - {*OPEN_STATES, State.DONE})


def on_build_finished(build: Build) -> None:
    """Update what waits for a build; part of the transaction that closes it."""
    waiting = Modelling.objects.filter(build=build, state=State.QUEUED)
    if waiting.exists():
        _reject(waiting.filter(build__state__in=_FAILED_STATES))
        queue.notify(queue.Kind.COMPILE)  # its workers model kernels


def on_build_replaced(build: Build, new: Build) -> None:
    """Make what waits for a build wait for its replacement."""
    for row in Modelling.objects.filter(build=build, state=State.QUEUED):
        same = {"board": row.board, "sizes": row.sizes, "version": row.version}
        if not Modelling.objects.filter(build=new, **same).exists():
            Modelling.objects.filter(pk=row.pk).update(build=new)
    on_build_finished(new)


def reconcile() -> None:
    """Close modellings whose build ended without code, for whatever reason."""
    _reject(Modelling.objects.filter(state=State.QUEUED, build__state__in=_FAILED_STATES))


def _reject(waiting: QuerySet[Modelling]) -> None:
    for row in waiting.select_related("build"):
        rows = Modelling.objects.filter(pk=row.pk, state=State.QUEUED)
        rows.update(stage=Stage.COMPILE)
        why = row.build.reason or "the build was cancelled"
        work.close(rows, State.REJECTED, f"the kernel was not built: {why}")
