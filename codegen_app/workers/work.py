"""Who works on which row: claiming, heartbeats, finishing, and requeueing after a worker dies.

A row is claimed by one conditional UPDATE, so that two workers never hold the same row, whatever
the queue's messages say. The times are the database's, so that hosts need not agree on the clock.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import traceback
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from datetime import timedelta
from typing import Any, TypeVar

from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from codegen_app.accounts import audit
from codegen_app.platform.config.context import row_context
from codegen_app.platform.config.tracing import tracing
from codegen_app.workers.faults import Fault, fault_of
from codegen_app.workers.models import OPEN_STATES, State, Work, Worker

_HEARTBEATS_PER_LEASE = 4
_MAX_INTERVAL_S = 2.0  # a heartbeat also sees that the row was cancelled
_MAX_PAUSE_S = 300
_CLAIM_FIELDS = ("claim", "worker", "state", "started_at", "attempts", "deaths", "faults")

#: The fields of a closed or dropped row that is requested again.
REQUEUED_FIELDS: dict[str, Any] = {
    "state": State.QUEUED,
    "stage": "",
    "reason": "",
    "detail": "",
    "deaths": 0,
    "faults": 0,
    "again_at": None,
    "finished_at": None,
}

W = TypeVar("W", bound=Work)
log = logging.getLogger(__name__)


class LeaseLostError(Exception):
    """The row was given to another worker meanwhile, or closed: this worker's outcome is void."""


def work_models() -> tuple[type[Work], ...]:
    """Return the models whose rows are worked on."""
    return tuple(model for model in apps.get_models() if issubclass(model, Work))


def lease_duration() -> timedelta:
    """Return how long a claim holds without a heartbeat."""
    return timedelta(seconds=settings.WORK_LEASE_S)


def worker_name() -> str:
    """Return the name that this process claims rows with."""
    return f"{socket.gethostname()}:{os.getpid()}"


def claim_next(queue: QuerySet[W], worker: str) -> W | None:
    """Claim the first queued row of ``queue`` (highest priority, then oldest), or None.

    The row is read after the claim: ``finish`` checks its ``claim`` token.
    """
    waiting = due_rows(queue).order_by("-priority", "pk")
    while (pk := waiting.values_list("pk", flat=True).first()) is not None:
        token = f"{worker} {uuid.uuid4().hex}"
        is_claimed = queue.model._default_manager.filter(pk=pk, state=State.QUEUED).update(
            state=State.RUNNING,
            claim=token,
            worker=worker,
            attempts=F("attempts") + 1,
            reason="",
            again_at=None,
            started_at=Now(),
            finished_at=None,
            heartbeat_at=Now(),
            lease_until=Now() + lease_duration(),
        )
        if is_claimed:
            row: W | None = queue.model._default_manager.filter(pk=pk, claim=token).first()
            return row
    return None


def due_rows(queue: QuerySet[W]) -> QuerySet[W]:
    """Return the queued rows that are due.

    A pause longer than the maximum comes from a clock that was set back, and is over.
    """
    longest = timedelta(seconds=_MAX_PAUSE_S)
    is_over = Q(again_at__lte=Now()) | Q(again_at__gt=Now() + longest)
    return queue.filter(Q(again_at=None) | is_over, state=State.QUEUED)


def extend(row: Work, **fields: Any) -> bool:
    """Renew the lease, and write ``fields``; return False if the claim no longer holds."""
    return bool(
        _claimed(row).update(heartbeat_at=Now(), lease_until=Now() + lease_duration(), **fields)
    )


def finish(row: Work, state: State, **fields: Any) -> None:
    """Close a claimed row. Call it in the transaction that records the outcome.

    Raises ``LeaseLostError`` if the claim no longer holds, so that the transaction is rolled back:
    the current worker's outcome counts.
    """
    closed = _claimed(row).update(
        state=state,
        claim="",
        lease_until=None,
        finished_at=Now(),
        **_fit_reason(row, {"stage": "", "reason": "", "faults": 0, **fields}),
    )
    if not closed:
        raise LeaseLostError(f"{row._meta.verbose_name} {row.pk} is held by another worker")


def close(rows: QuerySet[W], state: State, reason: str) -> int:
    """Close rows whoever holds them: the claim ends, and so does the worker's work. Return how many
    were closed."""
    return rows.update(
        state=state,
        reason=reason[:500],
        claim="",
        lease_until=None,
        again_at=None,
        finished_at=Now(),
    )


@transaction.atomic
def cancel(row: Work, actor: AbstractBaseUser) -> bool:
    """Cancel a row for a person; return False if it was over already."""
    open_rows = type(row)._default_manager.filter(pk=row.pk, state__in=OPEN_STATES)
    if not close(open_rows, State.CANCELLED, "cancelled"):
        return False
    audit.record(actor, "cancel", row)
    return True


def requeue(row: Work) -> None:
    """Queue a claimed row again without a fault: its worker was stopped."""
    _claimed(row).update(state=State.QUEUED, claim="", lease_until=None, attempts=F("attempts") - 1)


def quarantine(row: Work, error: Exception) -> bool:
    """Quarantine a row on which the application itself failed: the error is a bug to be seen.

    Returns False if the claim no longer held.
    """
    detail = "".join(traceback.format_exception(error))
    reason = f"internal error: {type(error).__name__}: {error}"
    try:
        finish(row, State.QUARANTINED, stage="crash", reason=reason, detail=detail)
    except LeaseLostError:
        log.warning("%s %s failed after its lease was lost: %s", row._meta.label, row.pk, reason)
        return False
    return True


def attempt(row: W, service: Callable[[W], None]) -> None:
    """Run a claimed row's work; log lines name the row meanwhile.

    After a machine failure the row is queued again, with a pause. After the application's own
    failure it is quarantined, so that it is not retried for ever, and the error is raised to be
    seen.
    """
    related = {name: getattr(row, name, None) for name in ("run_id", "build_id", "graph_id")}
    ids = {name: pk for name, pk in related.items() if pk is not None}
    ids[f"{row._meta.verbose_name}_id".replace(" ", "_")] = row.pk
    attributes = {f"kiln.{name}": pk for name, pk in ids.items()}
    with row_context(**ids), tracing.span(str(row._meta.verbose_name), attributes, "CONSUMER"):
        _attempt(row, service)


def _attempt(row: W, service: Callable[[W], None]) -> None:
    try:
        service(row)
    except LeaseLostError as lease_lost:
        log.warning("%s", lease_lost)
    except Exception as error:
        fault = fault_of(error)
        if fault is None:
            if quarantine(row, error):
                raise
            return  # what the row needs may have been deleted with it
        log.warning("%s %s: %s", row._meta.label, row.pk, fault.reason)
        tracing.failed(fault.reason)
        with suppress(InterfaceError, OperationalError):  # then its lease expires
            if isinstance(error, InterfaceError | OperationalError) and not connection.is_usable():
                connection.close()  # reconnects at the next use
            postpone(row, fault)


def postpone(row: Work, fault: Fault) -> None:
    """Queue a claimed row again after a machine failure; the pause grows with each.

    A row over which processes ended too often is quarantined: many times while other rows were
    done, or three times as many.
    """
    deaths = row.deaths + 1
    if fault.of_row and deaths >= settings.WORK_DEATHS_ALLOWED:
        hour_ago = Now() - timedelta(hours=1)
        finished = type(row)._default_manager.filter(state=State.DONE, finished_at__gt=hour_ago)
        is_cause = deaths >= 3 * settings.WORK_DEATHS_ALLOWED or finished.exists()
    else:
        is_cause = False
    if is_cause:
        reason = f"{deaths} times: {fault.reason}"
        with suppress(LeaseLostError):
            finish(row, State.QUARANTINED, stage="crash", reason=reason, deaths=F("deaths") + 1)
        return
    pause = min(settings.WORK_RETRY_S * 2 ** min(row.faults, 16), _MAX_PAUSE_S)
    _requeue_failed(row, fault, timedelta(seconds=pause))


def _requeue_failed(row: Work, fault: Fault, pause: timedelta) -> bool:
    at = timezone.now() + pause
    when = f"; tried again at {at:%H:%M:%S} UTC" if pause else "; tried again"
    # The reason is shortened so that the time still fits into the column.
    reason = fault.reason if len(fault.reason) <= 400 else f"{fault.reason[:399]}…"
    return bool(
        _claimed(row).update(
            state=State.QUEUED,
            claim="",
            lease_until=None,
            faults=F("faults") + 1,
            deaths=F("deaths") + int(fault.of_row),
            again_at=Now() + pause if pause else None,
            **_fit_reason(row, {"reason": reason + when}),
        )
    )


@contextmanager
def heartbeat(
    row: Work,
    on_lease_lost: Callable[[], None] = lambda: None,
    fields: Callable[[], dict[str, Any]] = dict,
) -> Iterator[threading.Event]:
    """Keep the lease alive from a thread while the body runs; each heartbeat writes ``fields()``.

    Once the claim is lost, the event is set and ``on_lease_lost`` is called from that thread, so
    that a long body can stop early.
    """
    over, lease_lost = threading.Event(), threading.Event()
    interval = min(settings.WORK_LEASE_S / _HEARTBEATS_PER_LEASE, _MAX_INTERVAL_S)

    def beat() -> None:
        try:
            while not over.wait(interval):
                try:
                    extended = extend(row, **fields())
                except OperationalError as error:  # the database restarts: try again later
                    log.warning("heartbeat of %s %s failed: %s", row._meta.label, row.pk, error)
                    connection.close()
                    continue
                if not extended:
                    lease_lost.set()
                    on_lease_lost()
                    return
        finally:
            connection.close()

    thread = threading.Thread(
        target=copy_context().run, args=(beat,), name=f"heartbeat-{row._meta.model_name}-{row.pk}"
    )
    thread.start()
    try:
        yield lease_lost
    finally:
        over.set()
        thread.join()


def requeue_expired() -> int:
    """Queue the rows whose lease expired, or quarantine those that are the cause.

    A lease longer than the maximum comes from a clock that was set back: a living worker has
    written another by now. Returns how many rows were queued again.
    """
    of_the_future = {"lease_until__gt": Now() + 2 * lease_duration()}
    return _requeue_running({"lease_until__lt": Now()}, machine=False) + _requeue_running(
        of_the_future, machine=True
    )


def requeue_orphans() -> int:
    """Do as ``requeue_expired`` for every running row: the caller knows that no worker is alive, so
    no row is the cause."""
    return _requeue_running({}, machine=True)


@transaction.atomic
def release_all() -> int:
    """Queue every running row again without a fault: the caller stopped all workers."""
    return sum(
        model._default_manager.filter(state=State.RUNNING).update(
            state=State.QUEUED, claim="", lease_until=None, attempts=F("attempts") - 1
        )
        for model in work_models()
    )


def _requeue_running(condition: dict[str, Any], *, machine: bool) -> int:
    queued = 0
    for model in work_models():
        for row in model._default_manager.filter(state=State.RUNNING, **condition).only(
            *_CLAIM_FIELDS
        ):
            reason = f"the worker {row.worker} is offline"
            if machine or not _died_alone(row):
                queued += _requeue_failed(row, Fault(reason), timedelta(0))
            else:
                reason = f"the process {row.worker} ended while it worked on this"
                postpone(row, Fault(reason, of_row=True))
                queued += 1
    return queued


def _died_alone(row: Work) -> bool:
    """Return whether the row's process ended while another worker of its host lived on. A failure
    that ended all of them, or the host, was not the row's."""
    host, _, pid = row.claim.partition(" ")[0].rpartition(":")
    if not pid.isdigit():
        return False
    others = Worker.objects.filter(host=host, started_at__lte=row.started_at).exclude(pid=int(pid))
    return any(worker.is_alive for worker in others)


def _claimed(row: W) -> QuerySet[W]:
    return type(row)._default_manager.filter(pk=row.pk, state=State.RUNNING, claim=row.claim)


def _fit_reason(row: Work, fields: dict[str, Any]) -> dict[str, Any]:
    """Shorten the reason to one line for a table: its first line, as long as the column is."""
    if "reason" in fields:
        length = row._meta.get_field("reason").max_length
        first = next(iter(str(fields["reason"]).strip().splitlines()), "")
        fields = {**fields, "reason": first[:length]}
    return fields
