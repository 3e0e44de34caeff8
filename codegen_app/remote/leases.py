"""Tasks of remote workers: claimed as by any worker, held by the key of a lease."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from codegen_app.remote.models import LeaseEnd, RemoteLease
from codegen_app.tracking.models import Remeasurement
from codegen_app.tracking.remeasuring import jobs as remeasuring
from codegen_app.tuning.models import TuningRun, TuningTask
from codegen_app.tuning.services import ledger
from codegen_app.workers import queue, work
from codegen_app.workers.faults import Fault
from codegen_app.workers.models import OPEN_STATES, Control, State, Worker
from codegen_app.workers.queue import Kind, queue_name
from scheduler.agent.protocol import Directive

_CONTROL_SAY = {
    Control.GO: Directive.GO,
    Control.PAUSE: Directive.PAUSE,
    Control.DRAIN: Directive.DRAIN,
}
_RELATED = (
    *("worker", "task__run__graph__file", "task__template_node", "task__problem"),
    "remeasurement__series__own_problem",
)


class LeaseOverError(Exception):
    """The lease no longer holds, and why."""


class UnknownFileError(Exception):
    """The lease's task names no such file."""


def current_control(worker: Worker) -> tuple[Directive, str]:
    """Return what was requested of the worker on the page of devices, and why."""
    return _CONTROL_SAY[Control(worker.control)], worker.control_why


def acquire(worker: Worker) -> RemoteLease | None:
    """Return the worker's lease, else one on the next task for its devices; None if none waits, or
    the worker is to take nothing.

    A repeated request gets the same lease: the response may not have arrived.
    """
    lease = _open_leases(worker).first()
    if lease is not None:
        if lease.work.claim == lease.claim and work.extend(lease.work):
            return _with_related(lease)
        end(lease, LeaseEnd.EXPIRED)
    for name in filter(worker.accepts, worker.queues):
        try:
            lease = _acquire_next(worker, name)
        except IntegrityError:  # two requests at once: the other has a task
            return None
        if lease is None:
            continue
        if (task := lease.task) is not None:
            # Outside the claim's transaction: runs are written before their tasks, everywhere.
            TuningRun.objects.filter(pk=task.run_id, state=State.QUEUED).update(
                state=State.RUNNING, started_at=Now()
            )
            built = task.candidates.filter(state__in=OPEN_STATES, build__state=State.DONE)
            built.update(state=State.RUNNING)
        return _with_related(lease)
    return None


@transaction.atomic
def _acquire_next(worker: Worker, served: str) -> RemoteLease | None:
    """Acquire the next work; remeasurements come before tuning, as for local workers."""
    row = work.claim_next(queued_remeasurements(worker, served), worker.name)
    if row is not None:
        return RemoteLease.objects.create(
            key=uuid.uuid4().hex, worker=worker, remeasurement=row, claim=row.claim
        )
    task = work.claim_next(queued_tasks(worker, served), worker.name)
    if task is None:
        return None
    searches = task.run.has_budget
    if searches:
        queue.notify(Kind.COMPILE)  # its workers prepare the task's requests
    return RemoteLease.objects.create(
        key=uuid.uuid4().hex,
        worker=worker,
        task=task,
        claim=task.claim,
        offered=None if searches else {},
    )


def queued_tasks(worker: Worker, served: str) -> QuerySet[TuningTask]:
    """Return a queue's tasks on a device that the worker has: planned candidates with all builds
    done, or searches, which request builds on the way."""
    target = served.removeprefix(queue_name(Kind.MEASURE, ""))
    devices = [device["id"] for device in worker.devices if device["target"] == target]
    return ledger.ready_tasks(target).filter(run__device__in=devices)


def queued_remeasurements(worker: Worker, served: str) -> QuerySet[Remeasurement]:
    """Return remeasurements for a queue's target, on a device model that the worker has."""
    target = served.removeprefix(queue_name(Kind.MEASURE, ""))
    names = [device["name"] for device in worker.devices if device["target"] == target]
    return remeasuring.queued_for_models(target, names)


def _open_leases(worker: Worker) -> QuerySet[RemoteLease]:
    return worker.leases.filter(ended_at=None).select_related("task", "remeasurement")


def _with_related(lease: RemoteLease) -> RemoteLease:
    return RemoteLease.objects.select_related(*_RELATED).get(pk=lease.pk)


def find(worker: Worker, key: str) -> RemoteLease:
    """Return the worker's lease of that key, active or not. Raises ``LeaseOverError`` if it never
    had one."""
    row = worker.leases.filter(key=key).first()
    if row is None:
        raise LeaseOverError("this worker has no such lease")
    return _with_related(row)


def get_active(worker: Worker, key: str) -> RemoteLease:
    """Return the worker's active lease of that key. Raises ``LeaseOverError``."""
    lease = find(worker, key)
    if lease.ended_at is not None or lease.work.claim != lease.claim:
        raise LeaseOverError(expire(lease))
    return lease


def expire(lease: RemoteLease) -> str:
    """End a lease whose task another worker has claimed; return why, in one line."""
    end(lease, LeaseEnd.EXPIRED)
    row = lease.work
    if lease.task is not None and lease.task.run.state == State.CANCELLED:
        return f"run {lease.task.run_id} was cancelled"
    if lease.task is None and row.state == State.CANCELLED:
        return "the remeasurement was cancelled"
    if lease.end not in ("", LeaseEnd.EXPIRED):
        return "this lease has ended"
    if not row.is_open and row.reason:
        return f"the task is {row.state}: {row.reason}"
    return "the lease expired and the task was reassigned"


def end(lease: RemoteLease, outcome: LeaseEnd) -> None:
    """Close a lease's row, once."""
    RemoteLease.objects.filter(pk=lease.pk, ended_at=None).update(
        ended_at=Now(), end=outcome, offered={}, asked=[]
    )


def release_others(worker: Worker, holds: str) -> None:
    """Release what an earlier process held, except the lease that this one ``holds``."""
    for lease in _open_leases(worker).exclude(key=holds):
        if lease.work.claim == lease.claim:
            fault = Fault(f"the worker {worker} ended while it worked on this", of_row=True)
            work.postpone(lease.work, fault)
        end(lease, LeaseEnd.FAILED)


def spent_fields(lease: RemoteLease, seconds: float | None) -> dict[str, Any]:
    """Return the task's spent time for its row: the seconds that its worker reports, at most the
    time since the lease began. Part of the transaction that writes it."""
    row = RemoteLease.objects.select_for_update().annotate(now=Now()).get(pk=lease.pk)
    most = max(0.0, (row.now - row.begun_at).total_seconds())
    total = most if seconds is None else min(seconds, most)
    if total <= row.spent_s:
        return {}
    RemoteLease.objects.filter(pk=lease.pk).update(spent_s=total)
    return {"spent_s": F("spent_s") + (total - row.spent_s)}


def search_leases() -> QuerySet[RemoteLease]:
    """Return leases whose worker may not send requests yet, or whose requests were not answered."""
    rows = RemoteLease.objects.filter(Q(offered__isnull=True) | ~Q(asked=[]), ended_at=None)
    rows = rows.annotate(created_at=F("begun_at"))  # like all waiting work
    related = ("task__run__graph__file", "task__template_node", "task__problem")
    return rows.filter(task__state=State.RUNNING, task__claim=F("claim")).select_related(*related)
