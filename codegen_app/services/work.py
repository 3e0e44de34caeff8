"""Who works on which row: claim, heartbeat, finish, and giving on what a dead worker held.

A row is taken by one conditional UPDATE, so that two workers never hold the same one, whatever
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
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from codegen_app.models import Build, Graph, State, TuningTask, Work

WORK_MODELS: tuple[type[Work], ...] = (Graph, Build, TuningTask)
_HEARTBEATS_A_LEASE = 4
_LONGEST_INTERVAL_S = 2.0  # a heartbeat also sees that the row was cancelled

W = TypeVar("W", bound=Work)
log = logging.getLogger(__name__)


class LeaseLostError(Exception):
    """The row was given to another worker meanwhile, or closed: this worker's outcome is void."""


def lease() -> timedelta:
    """How long a claim holds without a sign of life."""
    return timedelta(seconds=settings.WORK_LEASE_S)


def worker_name() -> str:
    """How this process signs what it claims."""
    return f"{socket.gethostname()}:{os.getpid()}"


def claim_next(queue: QuerySet[W], worker: str) -> W | None:
    """Take the first queued row of ``queue`` (highest priority, then oldest); None if none is.

    The returned row is read after the claim: its ``claim`` is the token that ``finish`` asks for.
    """
    waiting = queue.filter(state=State.QUEUED).order_by("-priority", "pk")
    while (pk := waiting.values_list("pk", flat=True).first()) is not None:
        token = f"{worker} {uuid.uuid4().hex}"
        claimed = queue.model._default_manager.filter(pk=pk, state=State.QUEUED).update(
            state=State.RUNNING,
            claim=token,
            worker=worker,
            attempts=F("attempts") + 1,
            started_at=Now(),
            finished_at=None,
            heartbeat_at=Now(),
            lease_until=Now() + lease(),
        )
        if claimed:
            row: W | None = queue.model._default_manager.filter(pk=pk, claim=token).first()
            return row
    return None


def extend(row: Work) -> bool:
    """Renew the lease; False when the claim does not hold any more."""
    return bool(_held(row).update(heartbeat_at=Now(), lease_until=Now() + lease()))


def finish(row: Work, state: State, **fields: Any) -> None:
    """Close a claimed row. Call it in the transaction that records the outcome.

    Raises ``LeaseLostError`` when the claim does not hold any more, so that the transaction is
    rolled back: what another worker does now is what counts.
    """
    closed = _held(row).update(
        state=state, claim="", lease_until=None, finished_at=Now(), **_fitted(row, fields)
    )
    if not closed:
        raise LeaseLostError(f"{row._meta.verbose_name} {row.pk} is held by another worker")


def put_back(row: Work) -> None:
    """Queue a claimed row again, unharmed: its worker was stopped."""
    _held(row).update(state=State.QUEUED, claim="", lease_until=None, attempts=F("attempts") - 1)


def quarantine(row: Work, error: Exception) -> None:
    """Put a row aside over which the application itself failed: the error is a bug to be seen."""
    detail = "".join(traceback.format_exception(error))
    reason = f"internal error: {type(error).__name__}: {error}"
    try:
        finish(row, State.QUARANTINED, stage="crash", reason=reason, detail=detail)
    except LeaseLostError:
        log.warning("%s %s failed after its lease was lost", row._meta.label, row.pk)


def attempt(row: W, service: Callable[[W], None]) -> None:
    """Do a claimed row's work.

    A failure of the application's own puts the row aside, so that nobody tries it for ever, and
    is raised to be seen. A database that is away leaves the row to its lease.
    """
    try:
        service(row)
    except LeaseLostError as lease_lost:
        log.warning("%s", lease_lost)
    except (InterfaceError, OperationalError):
        raise
    except Exception as error:
        quarantine(row, error)
        raise


@contextmanager
def heartbeat(
    row: Work, on_lease_lost: Callable[[], None] = lambda: None
) -> Iterator[threading.Event]:
    """Keep the lease alive from a thread while the body works.

    The event is set, and ``on_lease_lost`` called from that thread, once the claim is lost, so
    that a long body can stop early.
    """
    over, lease_lost = threading.Event(), threading.Event()
    interval = min(settings.WORK_LEASE_S / _HEARTBEATS_A_LEASE, _LONGEST_INTERVAL_S)

    def beat() -> None:
        try:
            while not over.wait(interval):
                try:
                    held = extend(row)
                except OperationalError as error:  # the database restarts: try at the next beat
                    log.warning("heartbeat of %s %s failed: %s", row._meta.label, row.pk, error)
                    connection.close()
                    continue
                if not held:
                    lease_lost.set()
                    on_lease_lost()
                    return
        finally:
            connection.close()

    thread = threading.Thread(target=beat, name=f"heartbeat-{row._meta.model_name}-{row.pk}")
    thread.start()
    try:
        yield lease_lost
    finally:
        over.set()
        thread.join()


@transaction.atomic
def give_on_expired() -> int:
    """Queue the rows whose lease ran out; quarantine those that too many workers died over.

    Returns how many rows were queued again.
    """
    return _give_on({"lease_until__lt": Now()})


@transaction.atomic
def give_on_orphans() -> int:
    """As ``give_on_expired`` for every running row: the caller knows that no worker is alive."""
    return _give_on({})


@transaction.atomic
def release_all() -> int:
    """Queue every running row again, unharmed: the caller stopped all workers himself."""
    return sum(
        model._default_manager.filter(state=State.RUNNING).update(
            state=State.QUEUED, claim="", lease_until=None, attempts=F("attempts") - 1
        )
        for model in WORK_MODELS
    )


def _give_on(condition: dict[str, Any]) -> int:
    queued = 0
    for model in WORK_MODELS:
        dead = model._default_manager.filter(state=State.RUNNING, **condition)
        dead.filter(deaths__gte=settings.WORK_DEATHS_ALLOWED - 1).update(
            state=State.QUARANTINED,
            deaths=F("deaths") + 1,
            claim="",
            lease_until=None,
            finished_at=Now(),
            stage="crash",
            reason=f"{settings.WORK_DEATHS_ALLOWED} workers died while they worked on it",
        )
        queued += dead.update(
            state=State.QUEUED, deaths=F("deaths") + 1, claim="", lease_until=None
        )
    return queued


def _held(row: W) -> QuerySet[W]:
    return type(row)._default_manager.filter(pk=row.pk, state=State.RUNNING, claim=row.claim)


def _fitted(row: Work, fields: dict[str, Any]) -> dict[str, Any]:
    """A reason is one line for a table: the first line, as long as the column is."""
    if "reason" in fields:
        length = row._meta.get_field("reason").max_length
        first = next(iter(str(fields["reason"]).strip().splitlines()), "")
        fields = {**fields, "reason": first[:length]}
    return fields
