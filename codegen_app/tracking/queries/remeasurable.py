"""Which parts of an alert can be retuned or remeasured, and the reason if one cannot."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from codegen_app.tracking.models import Alert, Change, Datum, Series, Source
from codegen_app.workers.models import State, Worker
from scheduler import targets

MAX_BETWEEN = 20  # revisions between the sides: each is a build to measure
REVISIONS_PER_SIDE = 3  # revisions of each side, nearest to the change
MAX_SERIES = 20  # series of an alert, largest change first


def changes_of(alert: Alert) -> list[Change]:
    """Return the alert's changes that were not withdrawn, largest first (1 query)."""
    rows = alert.changes.filter(withdrawn_at=None)
    related = ("series", "datum", "revision", "previous", "good_revision", "bad_revision")
    found = rows.select_related(*related)
    return sorted(found, key=lambda row: (-max(row.ratio, 1 / row.ratio), row.pk))


def own_series(alert: Alert, changes: Iterable[Change]) -> list[Series]:
    """Return the series of our own problems, in the order of the changes."""
    found = {change.series_id: change.series for change in changes}
    if alert.series is not None:
        found.setdefault(alert.series.pk, alert.series)
    return [series for series in found.values() if series.own_problem_id is not None]


def points_with_builds(series: Iterable[int] | QuerySet[Any]) -> QuerySet[Datum]:
    """Return points of these series whose builds are kept and that are not repetitions of
    others."""
    return (
        Datum.objects.trunk()
        .filter(
            series__in=series,
            build__state=State.DONE,
            build__library__isnull=False,
            kernel__isnull=False,
        )
        .exclude(source__in=(Source.AGAIN, Source.IMPORT))
    )


def side_points(series: Series, at: datetime) -> list[Datum]:
    """Return the points whose builds are kept, one build per revision, of the nearest revisions
    before and since a place in the history (2 queries)."""
    rows = points_with_builds([series.pk])
    before = rows.filter(at__lt=at).order_by("-at", "-id")
    after = rows.filter(at__gte=at).order_by("at", "id")
    return [*reversed(_nearest(before[:_MAX_POINTS])), *_nearest(after[:_MAX_POINTS])]


def points_between(change: Change) -> list[Datum]:
    """Return points that can fill in between both sides: points of other series of the problem
    (another device model, other sizes) for the same target and compiler whose builds are kept, one
    for each revision that lies between the points next to the change and has no point in this
    series. If there are more than ``MAX_BETWEEN``, they are spaced evenly (2 queries)."""
    series = change.series
    points = Datum.objects.trunk().filter(series=series, at__lt=change.at)
    last = points.order_by("-at", "-id").first()
    if last is None:
        return []
    alike = Series.objects.filter(
        own_problem=series.own_problem_id, target=series.target, toolchain=series.toolchain
    )
    rows = points_with_builds(alike.exclude(pk=series.pk).values("pk")).filter(
        at__gt=last.at, at__lt=change.at
    )
    ends = (last.revision_id, change.revision_id)
    found: dict[int, Datum] = {}
    for row in rows.exclude(revision__in=ends).order_by("at", "id")[:_MAX_POINTS]:
        found.setdefault(row.revision_id, row)
    candidates = list(found.values())
    step = max(1, len(candidates) / MAX_BETWEEN)
    return [candidates[int(n * step)] for n in range(min(len(candidates), MAX_BETWEEN))]


_MAX_POINTS = 200  # points: runs repeat a revision


def _nearest(rows: Iterable[Datum]) -> list[Datum]:
    found: dict[tuple[int, int | None], Datum] = {}
    revisions: set[int] = set()
    for row in rows:
        if row.revision_id not in revisions and len(revisions) == REVISIONS_PER_SIDE:
            break
        revisions.add(row.revision_id)
        if len(found) < 2 * REVISIONS_PER_SIDE:
            found.setdefault((row.revision_id, row.build_id), row)
    return list(found.values())


def device_models() -> set[tuple[str, str]]:
    """Return target and model of the devices of live workers; of remote workers only devices whose
    queue they serve (1 query)."""
    return {
        (device.get("target"), device.get("name"))
        for worker in Worker.objects.all()
        if worker.is_alive
        for device in worker.devices
        if not worker.remote or f"measure.{device.get('target')}" in worker.queues
    }


def retune_outlook(series: Series, models: set[tuple[str, str]]) -> str:
    """Return what a run for a series of ours can measure now: its selections are valid only for the
    device model that measures."""
    target, name = series.target, series.device_name
    if targets.find(target).emulates:
        return f"{name}: emulated times select nothing for a GPU"
    if (target, name) in models:
        return f"{name} ({target}): a worker measures on it now"
    others = sorted(model for other, model in models if other == target)
    if others:
        return (
            f"{name} ({target}): no worker with this device is online; the run measures on"
            f" {others[0]}, and selects kernels for that device only"
        )
    return f"{name} ({target}): no worker with this target is online; the run will be queued"


def blocked_reason(
    series: Series, has_before: bool, has_after: bool, models: set[tuple[str, str]]
) -> str:
    """Return why a series of ours cannot be remeasured; "" if it can."""
    if not has_before or not has_after:
        side = "before" if not has_before else "after"
        return f"no build of the points {side} the change is stored: retune instead"
    if (series.target, series.device_name) not in models:
        return f"no worker with a {series.device_name} ({series.target}) is online: start one"
    return ""
