"""Series whose points stopped coming: an alert for each, closed when points come again.

``Series.stale_at`` says when (``detector.cadence``). It is cleared with the alert, so that a closed
alert is not raised again before new points set it.
"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import F, Max, Min, Q
from django.utils import timezone

from codegen_app.tracking.alerting.events import record_event
from codegen_app.tracking.alerting.owners import assign_owners
from codegen_app.tracking.alerting.triage import lock_links
from codegen_app.tracking.models import (
    OPEN_ALERT_STATES,
    Alert,
    AlertKind,
    AlertState,
    Datum,
    EventKind,
    Relation,
    Series,
)
from codegen_app.tracking.rules.settings import RULES_OF_SERIES, series_settings

BATCH_SIZE = 200


def update_alerts() -> int:
    """Raise alerts of overdue series, and close those of series that have points again; return how
    many alerts."""
    now, count = timezone.now(), 0
    for step in (_close_alerts, _raise_alerts):
        while done := step(now):
            count += done
    return count


@transaction.atomic
def _raise_alerts(now: datetime) -> int:
    stale = Series.objects.filter(stale_at__lt=now)
    if not stale.exists():
        return 0
    lock_links()
    rows = list(
        stale.select_for_update(skip_locked=True, of=("self",))
        .select_related(*RULES_OF_SERIES)
        .order_by("device_name", "stale_at", "pk")[:BATCH_SIZE]
    )
    Series.objects.filter(pk__in=[row.pk for row in rows]).update(stale_at=None)
    is_open = Q(series__in=rows, kind=AlertKind.MISSING, state__in=OPEN_ALERT_STATES)
    known = set(Alert.objects.filter(is_open).values_list("series_id", flat=True))
    firsts, raised = _device_alerts(rows), []
    for row in rows:
        settings = series_settings(row)
        if row.pk in known or settings.muted:
            continue
        reason = (
            "no new point for more than three times the 90th percentile of the gaps between points,"
            " and at least a day"
        )
        if settings.stale_after is not None:
            reason = f"no new point within the configured time ({settings.stale_after})"
        first = firsts.get(row.device_name)
        alert = Alert.objects.create(
            kind=AlertKind.MISSING,
            series=row,
            n_series=1,
            at=row.stale_at or now,
            duplicate_of=first,
        )
        if first is not None:
            name = Relation.DUPLICATE.value
            note = "same device: other series have no new points either"
            record_event(alert, EventKind.LINK, None, note, {name: None}, {name: first.pk})
        firsts.setdefault(row.device_name, alert)
        record_event(alert, EventKind.RAISED, note=reason)
        raised.append((alert, row.pk))
    assign_owners(raised)
    return len(rows)


def _device_alerts(rows: list[Series]) -> dict[str, Alert]:
    """Return by device the open missing-data alert that the device's others are linked to. A
    machine that is down is one problem."""
    names = {row.device_name for row in rows}
    found = Alert.objects.filter(
        kind=AlertKind.MISSING,
        state__in=OPEN_ALERT_STATES,
        series__device_name__in=names,
        duplicate_of=None,
        downstream_of=None,
    )
    result: dict[str, Alert] = {}
    for alert in found.select_related("series").order_by("pk"):
        assert alert.series is not None
        result.setdefault(alert.series.device_name, alert)
    return result


@transaction.atomic
def _close_alerts(now: datetime) -> int:
    """Close alerts whose series is watched again, or has a later point."""
    again = Q(series__stale_at__gt=now) | Q(series__last_at__gt=F("at"))
    found = Alert.objects.filter(again, kind=AlertKind.MISSING, state__in=OPEN_ALERT_STATES)
    rows = list(found.select_for_update(skip_locked=True, of=("self",)).order_by("pk")[:BATCH_SIZE])
    for alert in rows:
        columns = {"state": alert.state}, {"state": AlertState.FIXED.value}
        alert.state = AlertState.FIXED.value
        # When the first point after the silence was measured; of points that came late, the last.
        measured = Datum.objects.filter(series=alert.series_id, is_trunk=True).aggregate(
            first=Min("measured_at", filter=Q(measured_at__gt=alert.at)), last=Max("measured_at")
        )
        alert.recovered_at = measured["first"] or measured["last"]
        alert.save(update_fields=["state", "recovered_at", "changed_at"])
        record_event(alert, EventKind.RECOVERED, None, "new points arrived", *columns)
    return len(rows)
