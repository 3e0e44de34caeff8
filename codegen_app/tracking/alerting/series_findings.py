"""Drifts, changes of spread and second modes: a quiet alert for each, closed when it is over.

Series are examined in a periodic pass, each after ``EVERY_POINTS`` more points: nothing waits for
it, and points are stored as fast as without it. The pass is bounded, and each batch is one
transaction, so that a killed worker leaves nothing half done.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from codegen_app.tracking.alerting.events import change_alert, record_event, set_columns
from codegen_app.tracking.alerting.grouping import was_old
from codegen_app.tracking.alerting.owners import assign_owners
from codegen_app.tracking.detector.courses import (
    MIN_POINTS,
    CourseFinding,
    course_findings,
    latest_points,
)
from codegen_app.tracking.detector.points import PointColumns
from codegen_app.tracking.models import (
    OPEN_ALERT_STATES,
    Alert,
    AlertKind,
    AlertState,
    EventKind,
    Series,
    SeriesExamination,
    SeriesFinding,
)
from codegen_app.tracking.rules.settings import RULES_OF_SERIES, series_settings

EVERY_POINTS = 20
BATCH_SIZE = 100
MAX_BATCHES = 5
MAX_MISSES = 2
"""A finding has ended if so many examinations in a row do not show it: one near the limit would
come and go."""

log = logging.getLogger(__name__)

_FIGURES = ("before", "after", "ratio", "low", "high", "n_before", "n_after", "share")


def examine_due() -> int:
    """Examine series with enough new points, the ones that waited longest first; return how
    many."""
    total = 0
    for _ in range(MAX_BATCHES):
        count = _examine_batch()
        total += count
        if count < BATCH_SIZE:
            break
    return total


def due_series() -> QuerySet[Series]:
    """Return series with ``EVERY_POINTS`` more points than at their last examination, or fewer
    points, or other withdrawn ones."""
    changed = Q(points__gte=F("examination__points") + EVERY_POINTS)
    changed |= Q(points__lt=F("examination__points"))
    changed |= ~Q(withdrawn=F("examination__withdrawn"))
    never = Q(examination__isnull=True, points__gte=MIN_POINTS)
    return Series.objects.filter(never | Q(changed, examination__isnull=False))


@transaction.atomic
def _examine_batch() -> int:
    """Examine one batch (6 queries, and those of each finding that begins or ends)."""
    rows = list(
        due_series()
        .select_related(*RULES_OF_SERIES)
        .order_by(F("examination__examined_at").asc(nulls_first=True), "pk")
        .select_for_update(skip_locked=True, of=("self",))[:BATCH_SIZE]
    )
    if not rows:
        return 0
    now, keys = timezone.now(), [row.pk for row in rows]
    points = latest_points(keys)
    current: dict[int, dict[str, SeriesFinding]] = {key: {} for key in keys}
    standing = SeriesFinding.objects.filter(series__in=keys, ended_at=None)
    standing = standing.select_related("alert").order_by("alert")
    for finding in standing.select_for_update(of=("alert",)):  # people triage them meanwhile
        current[finding.series_id][finding.kind] = finding
    raised: list[Alert] = []
    for row in rows:
        shown = _shown(row, points[row.pk])
        _end_findings(current[row.pk], shown, points[row.pk], now)
        raised += _store_findings(row, current[row.pk], shown, points[row.pk], now)
    assign_owners([(alert, alert.series_id) for alert in raised if alert.series_id is not None])
    examinations = [
        SeriesExamination(series=row, points=row.points, withdrawn=row.withdrawn, examined_at=now)
        for row in rows
    ]
    SeriesExamination.objects.bulk_create(
        examinations,
        update_conflicts=True,
        unique_fields=["series"],
        update_fields=["points", "withdrawn", "examined_at"],
    )
    return len(rows)


def _shown(series: Series, points: PointColumns) -> Mapping[AlertKind, CourseFinding]:
    """Return what the latest points of a series show; nothing if they cannot be examined, so that
    one series does not keep all others waiting."""
    try:
        return course_findings(points.values)
    except Exception:
        log.exception("series %d could not be examined", series.pk)
        return {}


def _end_findings(
    current: Mapping[str, SeriesFinding],
    shown: Mapping[AlertKind, CourseFinding],
    points: PointColumns,
    now: datetime,
) -> None:
    """End findings that are no longer shown, and close their alerts if these are open."""
    for kind, finding in current.items():
        if kind in shown:
            continue
        finding.misses, finding.examined_at = finding.misses + 1, now
        if finding.misses >= MAX_MISSES:
            finding.ended_at = now
            alert = finding.alert
            if alert.state in OPEN_ALERT_STATES:
                alert.recovered_at = points[-1].at if len(points) else now
                alert.save(update_fields=["recovered_at"])
                note = f"the latest {len(points)} points no longer show it"
                state = {"state": AlertState.FIXED.value}
                change_alert(alert, EventKind.RECOVERED, state, note=note)
        finding.save(update_fields=["misses", "examined_at", "ended_at"])


def _store_findings(
    series: Series,
    current: Mapping[str, SeriesFinding],
    shown: Mapping[AlertKind, CourseFinding],
    points: PointColumns,
    now: datetime,
) -> list[Alert]:
    """Update the figures of findings that are shown again, and raise alerts of new ones; return
    these alerts, but not those of series that ended long ago. A closed alert stays
    closed as long as the finding lasts."""
    raised = []
    for kind, course in shown.items():
        figures = {name: getattr(course, name) for name in _FIGURES}
        finding = current.get(kind) or _reopened(series, kind)
        if finding is not None:
            for name, value in figures.items():
                setattr(finding, name, value)
            finding.misses, finding.examined_at, finding.ended_at = 0, now, None
            finding.save()
            set_columns(finding.alert, {"worst_ratio": course.ratio})
        elif course.is_new and not series_settings(series).muted:
            first, is_old = points[course.start], was_old(series, points[-1].at, now)
            alert = Alert.objects.create(
                kind=kind,
                series=series,
                n_series=1,
                worst_ratio=course.ratio,
                at=first.at,
                state=AlertState.HISTORY.value if is_old else AlertState.NEW.value,
            )
            SeriesFinding.objects.create(
                alert=alert,
                series=series,
                kind=kind,
                revision_id=first.revision,
                examined_at=now,
                **figures,
            )
            record_event(alert, EventKind.RAISED, note=f"shown by {course.n_after} points")
            if not is_old:
                raised.append(alert)
    return raised


def _reopened(series: Series, kind: AlertKind) -> SeriesFinding | None:
    """Return an ended finding whose alert was reopened: a series has one open alert of a
    kind (1 query)."""
    is_open = Q(series=series, kind=kind, alert__state__in=OPEN_ALERT_STATES)
    return SeriesFinding.objects.filter(is_open).select_related("alert").first()
