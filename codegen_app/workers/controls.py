"""Requests to a worker: to pause, to drain, to resume, to serve only one of its queues.

The request is stored in the worker's row and applies to any process of that name. A worker checks
it before it takes a row; a remote worker gets it with each response.
"""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.utils import timezone

from codegen_app.accounts import audit
from codegen_app.workers import queue
from codegen_app.workers.models import Control, Worker
from scheduler.errors import UserError

_AUDIT_ACTIONS = {
    Control.GO: "resume worker",
    Control.PAUSE: "pause worker",
    Control.DRAIN: "drain worker",
}
_worker_name: list[str] = []  # the name of the worker that this process is, once it is one


def set_worker_name(name: str) -> None:
    """Declare that this process is the worker of that name, so that requests to it apply here."""
    _worker_name[:] = [name]


def may_take(queue_name: str) -> bool:
    """Return whether this process may take work of a queue now; a process that is no worker may."""
    if not _worker_name:
        return True
    row = Worker.objects.filter(name=_worker_name[0]).only("control", "pinned_to").first()
    return row is None or row.accepts(queue_name)


@transaction.atomic
def set_control(worker: Worker, control: Control, actor: AbstractBaseUser | None, why: str) -> bool:
    """Ask a worker to pause, drain or resume; return False if that was requested already."""
    changed = Worker.objects.filter(pk=worker.pk).exclude(control=control)
    if not changed.update(control=control, **_control_fields(actor, why)):
        return False
    audit.record(actor, _AUDIT_ACTIONS[control], worker, why)
    _wake(worker)
    return True


@transaction.atomic
def pin(worker: Worker, to: str, actor: AbstractBaseUser | None, why: str) -> bool:
    """Restrict a worker to one of its queues ("": to none); return False if nothing changes.

    Raises ``UserError`` for a queue that it does not serve.
    """
    if to and to not in worker.queues:
        raise UserError(f"{worker} does not serve the queue {to}: {', '.join(worker.queues)}")
    changed = Worker.objects.filter(pk=worker.pk).exclude(pinned_to=to)
    if not changed.update(pinned_to=to, **_control_fields(actor, why)):
        return False
    audit.record(actor, "pin worker" if to else "unpin worker", worker, f"{to} {why}".strip())
    _wake(worker)
    return True


def _control_fields(actor: AbstractBaseUser | None, why: str) -> dict[str, object]:
    return {
        "control_by_id": audit.actor_id(actor),
        "control_at": timezone.now(),
        "control_why": why[:500],
    }


def _wake(worker: Worker) -> None:
    """Notify the worker's queues: others may take what it leaves, and it what waited."""
    prefix = queue.queue_name(queue.Kind.MEASURE, "")
    for name in worker.queues:
        if name.startswith(prefix):
            queue.notify(queue.Kind.MEASURE, target=name.removeprefix(prefix))
        elif name in (queue.Kind.PREPARE, queue.Kind.COMPILE, queue.Kind.BISECT):
            queue.notify(queue.Kind(name))
