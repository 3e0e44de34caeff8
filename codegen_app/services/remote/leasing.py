"""Tasks in the hands of remote workers: claimed as by any worker, held by the key of a lease."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from codegen_app.models import (
    OPEN_STATES,
    Control,
    LeaseEnd,
    RemoteLease,
    State,
    TuningRun,
    TuningTask,
    Worker,
)
from codegen_app.services import controls, ledger, work
from codegen_app.services.faults import Fault
from codegen_app.services.queue import Kind, queue_name
from scheduler.joining.protocol import Say

_SAYS = {Control.GO: Say.GO, Control.PAUSE: Say.PAUSE, Control.DRAIN: Say.DRAIN}
_TASK = ("run__graph__file", "template_node", "problem")


class OverError(Exception):
    """The lease does not hold any more, and why."""


class NoFileError(Exception):
    """The lease's task names no such file."""


def say(worker: Worker) -> tuple[Say, str]:
    """What was asked of it on the page of devices, and why."""
    return _SAYS[Control(worker.control)], worker.control_why


def take(worker: Worker) -> RemoteLease | None:
    """The lease that it holds, else one on the next task for its devices; None where none waits, or
    the worker is to take nothing.

    The same again for a worker that asks again: the answer may not have arrived.
    """
    held = worker.leases.filter(ended_at=None).select_related("task").first()
    if held is not None:
        if held.task.claim == held.claim and work.extend(held.task):
            return _whole(held)
        end(held, LeaseEnd.EXPIRED)
    for queue in worker.queues:
        if controls.is_open(queue, worker.control, worker.pinned_to):
            try:
                lease = _next(worker, queue)
            except IntegrityError:  # it asked twice at once: the other has a task
                return None
            if lease is not None:
                _begin(lease.task)
                return _whole(lease)
    return None


@transaction.atomic
def _next(worker: Worker, queue: str) -> RemoteLease | None:
    task = work.claim_next(waiting(worker, queue), worker.name)
    if task is None:
        return None
    return RemoteLease.objects.create(
        key=uuid.uuid4().hex, worker=worker, task=task, claim=task.claim
    )


def waiting(worker: Worker, queue: str) -> QuerySet[TuningTask]:
    """Tasks of a queue that a worker elsewhere can do: planned candidates, all of them built, on a
    device that it has. Those that ask for builds as they search need the database."""
    target = queue.removeprefix(queue_name(Kind.MEASURE, ""))
    devices = [one["id"] for one in worker.devices if one["target"] == target]
    return ledger.ready_tasks(target).filter(
        run__device__in=devices,
        run__budget_s=None,
        run__max_compiles=None,
        run__max_measurements=None,
    )


def _begin(task: TuningTask) -> None:
    """Outside of the claim's transaction: runs are written before their tasks, everywhere."""
    TuningRun.objects.filter(pk=task.run_id, state=State.QUEUED).update(
        state=State.RUNNING, started_at=Now()
    )
    built = task.candidates.filter(state__in=OPEN_STATES, build__state=State.DONE)
    built.update(state=State.RUNNING)


def _whole(lease: RemoteLease) -> RemoteLease:
    related = [f"task__{name}" for name in _TASK]
    return RemoteLease.objects.select_related("worker", "task", *related).get(pk=lease.pk)


def find(worker: Worker, key: str) -> RemoteLease:
    """The worker's lease of that key, whether it holds or not. Raises ``OverError`` where it
    never had one."""
    row = worker.leases.filter(key=key).first()
    if row is None:
        raise OverError("this worker has no such lease")
    return _whole(row)


def held(worker: Worker, key: str) -> RemoteLease:
    """The same of one that holds. Raises ``OverError``."""
    lease = find(worker, key)
    if lease.ended_at is not None or lease.task.claim != lease.claim:
        raise OverError(over(lease))
    return lease


def over(lease: RemoteLease) -> str:
    """End a lease whose task is another's by now; why, in one line."""
    end(lease, LeaseEnd.EXPIRED)
    run = lease.task.run
    if run.state == State.CANCELLED:
        return f"run {run.pk} was cancelled"
    if lease.end not in ("", LeaseEnd.EXPIRED):
        return "this lease has ended"
    return "the lease ran out, and the task was given on"


def end(lease: RemoteLease, how: LeaseEnd) -> None:
    """Close a lease's row, once."""
    RemoteLease.objects.filter(pk=lease.pk, ended_at=None).update(ended_at=Now(), end=how)


def settle(worker: Worker, holds: str) -> None:
    """What a process of before held goes back, except the lease that this one ``holds``."""
    for lease in worker.leases.filter(ended_at=None).exclude(key=holds).select_related("task"):
        if lease.task.claim == lease.claim:
            fault = Fault(f"the worker {worker} ended while it worked on this", of_row=True)
            work.put_off(lease.task, fault)
        end(lease, LeaseEnd.FAILED)


def spent(lease: RemoteLease) -> dict[str, Any]:
    """How long the task was worked on, by this database's clock."""
    row = RemoteLease.objects.filter(pk=lease.pk).annotate(now=Now()).get()
    seconds = max(0.0, (row.now - row.begun_at).total_seconds())
    return {"spent_s": lease.task.spent_s + seconds}
