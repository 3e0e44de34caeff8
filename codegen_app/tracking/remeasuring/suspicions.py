"""Suspected steps are measured again: each once, and at most so many an hour.

A worker repeats the builds around the step if the series is ours and a device is online; the
senders of other series are asked for the revision at which it begins. The new point confirms the
step or shows that it was a spike.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from codegen_app.platform.advisory_lock import LockClass, lock_transaction
from codegen_app.tracking.models import Datum, MeasurementRequest, Remeasurement, Series
from codegen_app.tracking.queries.remeasurable import side_points
from codegen_app.tracking.remeasuring.requests import queue_work, side_reason
from codegen_app.tracking.rules.settings import RULES_OF_SERIES, series_settings
from codegen_app.workers.models import OPEN_STATES

MAX_SERIES = 100
"""Limit of one run."""


def unhandled_suspicions() -> QuerySet[Series]:
    """Return series with a suspected step of which it is not decided whether to measure it
    again."""
    return Series.objects.filter(suspected_from__isnull=False, suspicion_handled=False)


@transaction.atomic
def request_remeasurements() -> int:
    """Decide for some suspected steps, the latest first, whether to measure them again; return how
    many were decided.

    Those beyond ``KILN_SUSPICIONS_AN_HOUR`` are not measured: many steps at once have one cause,
    and the next runs of CI show it. Generated and muted series are not either.
    """
    if not unhandled_suspicions().exists():
        return 0
    lock_transaction(LockClass.SUSPICIONS)
    rows = list(
        unhandled_suspicions()
        .select_related(*RULES_OF_SERIES)
        # Others lock series by their number: waiting for them here could be a deadlock.
        .select_for_update(skip_locked=True, of=("self",))
        .order_by("-suspected_from", "-pk")[:MAX_SERIES]
    )
    remaining = settings.SUSPICIONS_AN_HOUR - _requested_since(timedelta(hours=1))
    for series in rows:
        if remaining > 0 and not series.is_generated and not series_settings(series).muted:
            remaining -= _request(series)
    Series.objects.filter(pk__in=[series.pk for series in rows]).update(suspicion_handled=True)
    return len(rows)


def _requested_since(age: timedelta) -> int:
    """Return how many suspected steps were requested to be measured again (2 queries)."""
    since = timezone.now() - age
    return sum(
        model.objects.filter(alert=None, created_at__gte=since).count()
        for model in (Remeasurement, MeasurementRequest)
    )


def _request(series: Series) -> int:
    """Request measurements of a suspected step; return how many requests were made: 1, or 0 if it
    cannot be measured or is requested already."""
    at = series.suspected_from
    assert at is not None
    if series.own_problem_id is not None:
        if Remeasurement.objects.filter(series=series, state__in=OPEN_STATES).exists():
            return 0
        points = side_points(series, at)
        if side_reason(series, points, at):
            return 0
        queue_work(series, at, points, None, None)
        return 1
    first = Datum.objects.trunk().filter(series=series, at__gte=at).order_by("at", "id").first()
    if first is None:
        return 0
    _, is_new = MeasurementRequest.objects.get_or_create(
        series=series,
        revision_id=first.revision_id,
        answered_at=None,
        withdrawn_at=None,
    )
    return int(is_new)
