"""Requesting measurements from an alert: a worker repeats the stored builds of our own series;
senders of other series are asked for revisions, and answer by the points that arrive."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from codegen_app.accounts import audit
from codegen_app.tracking.models import (
    Alert,
    Batch,
    Change,
    Datum,
    MeasurementRequest,
    RemeasuredPoint,
    Remeasurement,
    Revision,
    Series,
)
from codegen_app.tracking.queries.remeasurable import (
    MAX_SERIES,
    blocked_reason,
    changes_of,
    device_models,
    points_between,
    side_points,
)
from codegen_app.workers import queue
from codegen_app.workers.models import OPEN_STATES
from scheduler.errors import UserError

MAX_REVISIONS = 50
_PRIORITY = 50


@dataclass(frozen=True)
class SeriesAnswer:
    """The result for one series: work here, revisions requested from its senders, or the ``reason``
    why neither is possible."""

    series: Series
    remeasurement: Remeasurement | None = None
    requests: int = 0
    reason: str = ""


@transaction.atomic
def request_remeasurement(alert: Alert, actor: AbstractBaseUser | None) -> list[SeriesAnswer]:
    """Request measurements of every series of the alert; open requests are not repeated.

    Raises ``UserError`` with the reasons if nothing can be measured.
    """
    alert = Alert.objects.select_for_update().get(pk=alert.pk)
    answers = [_request_change(alert, change, actor) for change in changes_of(alert)[:MAX_SERIES]]
    if alert.series is not None:
        answers.append(_request_missing(alert, alert.series, actor))
    if all(answer.reason for answer in answers):
        reasons = dict.fromkeys(answer.reason for answer in answers)
        raise UserError("; ".join(reasons) or "this alert no longer has changes")
    audit.record(actor, "measure again", alert)
    return answers


def _request_change(alert: Alert, change: Change, actor: AbstractBaseUser | None) -> SeriesAnswer:
    series = change.series
    if series.is_generated:
        return SeriesAnswer(series, reason="generated series cannot be measured")
    if series.own_problem_id is None:
        # The revisions of both sides, and those of the same source between them.
        first, last = change.previous, change.revision
        revisions = [last, *([first] if first else [])]
        if first is not None and first.at is not None and last.at is not None:
            between = Revision.objects.filter(
                repository=last.repository, branch=last.branch, at__gt=first.at, at__lt=last.at
            )
            revisions += between.order_by("at")[:MAX_REVISIONS]
        revisions.sort(key=lambda row: row.pk)
        return SeriesAnswer(series, requests=_request_revisions(alert, series, revisions, actor))
    known = Remeasurement.objects.filter(alert=alert, series=series, state__in=OPEN_STATES).first()
    if known is not None:
        return SeriesAnswer(series, known)
    points = side_points(series, change.at)
    reason = side_reason(series, points, change.at)
    if reason:
        return SeriesAnswer(series, reason=reason)
    points += points_between(change)
    return SeriesAnswer(series, queue_work(series, change.at, points, alert, actor))


def side_reason(series: Series, points: Sequence[Datum], at: datetime) -> str:
    """Return why the points before and since a place cannot be measured again (1 query); "" if they
    can."""
    later = [point.at >= at for point in points]
    return blocked_reason(series, not all(later), any(later), device_models())


def queue_work(
    series: Series,
    at: datetime,
    points: Iterable[Datum],
    alert: Alert | None,
    actor: AbstractBaseUser | None,
) -> Remeasurement:
    """Queue the builds of these points; those since ``at`` are of the later level."""
    row = Remeasurement.objects.create(
        alert=alert,
        series=series,
        boundary=at,
        priority=_PRIORITY,
        requested_by_id=audit.actor_id(actor),
    )
    RemeasuredPoint.objects.bulk_create(
        RemeasuredPoint(remeasurement=row, original=point) for point in points
    )
    queue.notify(queue.Kind.MEASURE, target=series.target)
    return row


def _request_missing(alert: Alert, series: Series, actor: AbstractBaseUser | None) -> SeriesAnswer:
    """Request the revisions since the last point of a series whose points stopped coming."""
    if series.is_generated or series.own_problem_id is not None:
        origin = "generated" if series.is_generated else "measured by tuning runs: retune instead"
        return SeriesAnswer(series, reason=f"the series is {origin}")
    last = Datum.objects.filter(series=series, is_trunk=True).order_by("-at", "-id").first()
    if last is None:
        return SeriesAnswer(series, reason="the series has no points")
    later = Revision.objects.filter(
        repository=last.revision.repository, branch=last.revision.branch, at__gt=last.at
    )
    revisions = list(later.order_by("-at")[:MAX_REVISIONS]) or [last.revision]
    return SeriesAnswer(series, requests=_request_revisions(alert, series, revisions, actor))


def _request_revisions(
    alert: Alert, series: Series, revisions: Iterable[Revision], actor: AbstractBaseUser | None
) -> int:
    """Request these revisions from the senders; return how many."""
    rows = [
        MeasurementRequest(
            alert=alert, series=series, revision=revision, requested_by_id=audit.actor_id(actor)
        )
        for revision in revisions
    ]
    MeasurementRequest.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


@transaction.atomic
def withdraw(alert: Alert, actor: AbstractBaseUser) -> int:
    """Withdraw the alert's requests to senders; return how many were open. Those of bisections end
    with these."""
    still_open = MeasurementRequest.objects.filter(
        alert=alert, bisection=None, answered_at__isnull=True, withdrawn_at__isnull=True
    )
    count = still_open.update(withdrawn_at=Now())
    if count:
        audit.record(actor, "withdraw requests", alert)
    return count


def close_answered(batch: Batch) -> int:
    """Close the requests that a batch answers, by a point of the series at the revision that was
    measured after the request; return how many. Part of the transaction that stores the batch."""
    waiting = MeasurementRequest.objects.filter(answered_at__isnull=True, withdrawn_at__isnull=True)
    if not waiting.exists():
        return 0
    sent = Datum.objects.filter(
        batch=batch,
        series=OuterRef("series"),
        revision=OuterRef("revision"),
        measured_at__gte=OuterRef("created_at"),
    )
    return waiting.filter(Exists(sent)).update(answered_at=Now())
