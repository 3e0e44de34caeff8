"""Releasing quarantined rows: a person says that the cause is fixed."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from codegen_app.accounts import audit
from codegen_app.graphs.models import Graph, TorchComparison
from codegen_app.kernels.models import Build, ForeignKernel, Modelling, Packing
from codegen_app.tuning.models import TuningRun, TuningTask
from codegen_app.tuning.services import ledger
from codegen_app.workers import queue, work
from codegen_app.workers.models import State, Work

_PREPARE, _COMPILE = queue.Kind.PREPARE, queue.Kind.COMPILE


@transaction.atomic
def release(row: Work, actor: AbstractBaseUser | None, why: str = "") -> bool:
    """Queue a quarantined row again, as if it had never been tried; return False if it is no longer
    quarantined.

    A task's run is opened again with it, and so are the candidates quarantined with the task. A
    cancelled run stays closed, and so do its tasks.
    """
    if isinstance(row, TuningTask):
        run = TuningRun.objects.select_for_update().get(pk=row.run_id)
        if run.state == State.CANCELLED or run.planned_at is None:
            return False
        if not run.is_open:
            run.state = State.RUNNING if run.started_at else State.QUEUED
            run.reason, run.finished_at = "", None
            run.save(update_fields=["state", "reason", "finished_at"])
    quarantined = type(row)._default_manager.filter(pk=row.pk, state=State.QUARANTINED)
    if not quarantined.update(**work.REQUEUED_FIELDS):
        return False
    audit.record(actor, "release", row, why)
    if isinstance(row, TuningTask):
        candidates = row.candidates.filter(state=State.QUARANTINED, build__isnull=False)
        candidates.update(state=State.QUEUED, stage="", reason="", detail="", finished_at=None)
        queue.notify(queue.Kind.MEASURE, target=ledger.queue_target(row.run))
    else:
        queue.notify(_QUEUES[type(row)])
    return True


_QUEUES: Mapping[type[Work], queue.Kind] = {
    Graph: _PREPARE,
    Packing: _PREPARE,
    TorchComparison: _PREPARE,
    Build: _COMPILE,
    Modelling: _COMPILE,
    ForeignKernel: _COMPILE,
}
