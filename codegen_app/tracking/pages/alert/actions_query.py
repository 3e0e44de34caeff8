"""Retunes and remeasurements of an alert: what is possible, what was requested, and the results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from django.db.models import Max, Min

from codegen_app.tracking.models import (
    Alert,
    AlertRun,
    Change,
    MeasurementRequest,
    RemeasuredPoint,
    Remeasurement,
)
from codegen_app.tracking.queries.remeasurable import (
    MAX_SERIES,
    blocked_reason,
    changes_of,
    device_models,
    own_series,
    points_with_builds,
)
from codegen_app.workers.models import OPEN_STATES
from scheduler.stats.intervals import Bounds, bounds_of
from scheduler.track.ratios import MIN_RATIO_SAMPLES, medians, ratios

MAX_SHOWN = 50


@dataclass(frozen=True)
class Offer:
    """The number of series for which an action is possible, and each distinct reason why it is not
    possible for the others."""

    series: int
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class RunRow:
    """A tuning run that was started from the alert."""

    id: int
    url: str
    series: str
    state: str


@dataclass(frozen=True)
class PointRow:
    """A remeasured build: its revision and its side of the change. ``value`` is None if there is
    none, for the ``reason``; ``original`` is the previous value, None for a build between the
    sides, for which the series has no point."""

    revision: str
    side: str
    kernel: str
    original: float | None
    value: float | None
    low: float | None
    high: float | None
    n: int
    reason: str

    @property
    def bounds(self) -> Bounds:
        """The meaning of ``low`` and ``high``."""
        return bounds_of(self.n)


@dataclass(frozen=True)
class RemeasurementRow:
    """Both sides of a change, measured in turns. ``ratio`` is after / before in that one
    environment with its 95% interval; None if there are too few samples."""

    id: int
    series: str
    series_id: int
    unit: str
    device: str
    state: str
    reason: str
    is_open: bool
    samples: int
    samples_due: int
    finished_at: datetime | None
    ratio: float | None
    low: float | None
    high: float | None
    n_before: int
    n_after: int
    points: tuple[PointRow, ...]


@dataclass(frozen=True)
class RequestRow:
    """A revision requested from the senders of a series."""

    series: str
    revision: str
    state: str
    asked_at: datetime
    answered_at: datetime | None


@dataclass(frozen=True)
class AlertActions:
    """The actions of one alert. ``is_open``: something is still pending."""

    alert_id: int
    title: str
    retune: Offer
    again: Offer
    senders: Offer
    runs: tuple[RunRow, ...]
    measured: tuple[RemeasurementRow, ...]
    requests: tuple[RequestRow, ...]
    open_requests: int
    is_open: bool


def alert_actions(pk: int) -> AlertActions:
    """Return an alert's actions by its number (8 queries). Raises ``Alert.DoesNotExist``."""
    alert = Alert.objects.select_related("revision", "series").get(pk=pk)
    changes = changes_of(alert)
    own = own_series(alert, changes)
    runs = _runs(alert)
    measured = _remeasurement_rows(alert)
    requests = _requests(alert)
    return AlertActions(
        alert_id=pk,
        title=str(alert),
        retune=Offer(len(own), () if own else ("no series of this alert is measured here",)),
        again=_remeasurement_offer(changes),
        senders=_senders_offer(alert, changes),
        runs=runs,
        measured=measured,
        requests=requests,
        open_requests=sum(one.state == "open" for one in requests),
        is_open=any(one.state in OPEN_STATES for one in runs)
        or any(one.is_open for one in measured),
    )


def _remeasurement_offer(changes: Sequence[Change]) -> Offer:
    """Count our own series that can be remeasured here (2 queries)."""
    own = [one for one in changes[:MAX_SERIES] if one.series.own_problem_id is not None]
    spans = points_with_builds([one.series_id for one in own]).order_by().values("series")
    ends = {
        row["series"]: (row["first"], row["last"])
        for row in spans.annotate(first=Min("at"), last=Max("at"))
    }
    models = device_models()
    obstacles = []
    for one in own:
        first, last = ends.get(one.series_id, (None, None))
        before, after = first is not None and first < one.at, last is not None and last >= one.at
        obstacles.append(blocked_reason(one.series, before, after, models))
    return Offer(obstacles.count(""), tuple(dict.fromkeys(filter(None, obstacles))))


def _senders_offer(alert: Alert, changes: Iterable[Change]) -> Offer:
    """Count the series sent by others, who can be asked to remeasure."""
    found = {one.series_id: one.series for one in changes}
    if alert.series is not None:
        found[alert.series.pk] = alert.series
    others = [one for one in found.values() if one.own_problem_id is None]
    generated = [one for one in others if one.is_generated]
    reasons = ("generated series cannot be measured",) if generated else ()
    return Offer(len(others) - len(generated), reasons)


def _runs(alert: Alert) -> tuple[RunRow, ...]:
    rows = AlertRun.objects.filter(alert=alert).select_related("run", "series").order_by("-pk")
    return tuple(
        RunRow(one.run_id, one.run.get_absolute_url(), one.series.problem, one.run.state)
        for one in rows[:MAX_SHOWN]
    )


def _remeasurement_rows(alert: Alert) -> tuple[RemeasurementRow, ...]:
    rows = Remeasurement.objects.filter(alert=alert).select_related("series")[:MAX_SHOWN]
    related = ("original__revision", "original__kernel", "datum")
    points: dict[int, list[RemeasuredPoint]] = {row.pk: [] for row in rows}
    for one in RemeasuredPoint.objects.filter(remeasurement__in=points).select_related(*related):
        points[one.remeasurement_id].append(one)
    return tuple(_remeasurement_row(row, points[row.pk]) for row in rows)


def _remeasurement_row(row: Remeasurement, points: Sequence[RemeasuredPoint]) -> RemeasurementRow:
    before, after = (
        [
            sample
            for one in points
            if one.datum is not None and one.side(row) == side
            for sample in one.datum.samples or ()
            if sample > 0
        ]
        for side in ("before", "after")
    )
    ratio, low, high = _ratio(before, after)
    return RemeasurementRow(
        id=row.pk,
        series=row.series.problem,
        series_id=row.series_id,
        unit=row.series.unit,
        device=row.series.device_name,
        state=row.state,
        reason=row.reason,
        is_open=row.is_open,
        samples=row.samples,
        samples_due=row.samples_due,
        finished_at=row.finished_at,
        ratio=ratio,
        low=low,
        high=high,
        n_before=len(before),
        n_after=len(after),
        points=tuple(_point_row(one, row) for one in points),
    )


def _ratio(
    before: Sequence[float], after: Sequence[float]
) -> tuple[float | None, float | None, float | None]:
    """Return after / before with its 95% interval; None if there are too few samples."""
    if min(len(before), len(after)) < MIN_RATIO_SAMPLES:
        return None, None, None
    one, other = (medians([np.array(side, dtype=np.float64)]) for side in (before, after))
    if one.errors[0] == 0 or other.errors[0] == 0:  # all alike: a clock's tick is the error
        return float(np.exp(other.logs[0] - one.logs[0])), None, None
    found = ratios(one, other, floor=0.0)
    low, high = found.interval()
    return float(np.exp(found.logs[0])), float(low[0]), float(high[0])


def _point_row(one: RemeasuredPoint, row: Remeasurement) -> PointRow:
    new, original = one.datum, one.original
    return PointRow(
        revision=str(original.revision),
        side=one.side(row),
        kernel=original.kernel.name if original.kernel else "",
        original=original.value if original.series_id == row.series_id else None,
        value=new.value if new else None,
        low=new.low if new else None,
        high=new.high if new else None,
        n=new.n if new else 0,
        reason=one.reason,
    )


def _requests(alert: Alert) -> tuple[RequestRow, ...]:
    rows = MeasurementRequest.objects.filter(alert=alert).select_related("series", "revision")
    return tuple(
        RequestRow(
            series=one.series.problem,
            revision=str(one.revision),
            state="open" if one.is_open else "answered" if one.answered_at else "withdrawn",
            asked_at=one.created_at,
            answered_at=one.answered_at,
        )
        for one in rows.order_by("-pk")[:MAX_SHOWN]
    )
