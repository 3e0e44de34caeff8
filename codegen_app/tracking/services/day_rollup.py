"""Old points of the trunk, of which each day keeps its median.

In each series, the points of a level on a day (UTC) become one: the one with their median value,
with the number and the range of all (``DaySummary``). These stay as they are:

- the latest ``KEPT_LATEST``, of any age: the detector reads no more of them;
- ``KEPT_AT_BORDER`` on each side of a change or baseline, which the figures of a change are from;
- the first of a series; what something refers to or was withdrawn; values at or below 0;
- points that arrive late, before others that were rolled up.

The detector never looks at what was rolled up, or before it (``Series.rolled_up_to``): medians are
closer together than values, and would make changes of what was none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from math import inf
from operator import itemgetter

from django.db import connection
from django.db.models import F, Q, QuerySet

from codegen_app.tracking.detector.replay import CONTEXT_POINTS
from codegen_app.tracking.models import Datum, DaySummary, Series
from codegen_app.tracking.services.point_deletion import deletable_alone

KEPT_LATEST = 500
KEPT_AT_BORDER = CONTEXT_POINTS
STEP_SERIES = 50
_MAX_READ = 20_000  # points of a series at once; a day is cut in two there
# Where levels begin, with the first and the last of the points that stay at each of them.
_BORDERS = """
SELECT border.at, COALESCE(before.at, border.at), COALESCE(after.at, border.at) FROM (
    SELECT at FROM codegen_app_change WHERE series_id = %(series)s AND withdrawn_at IS NULL
    UNION SELECT at FROM codegen_app_baseline WHERE series_id = %(series)s AND removed_at IS NULL
) AS border
CROSS JOIN LATERAL (SELECT min(at) AS at FROM (
    SELECT at FROM codegen_app_datum WHERE series_id = %(series)s AND is_trunk AND at < border.at
    ORDER BY at DESC LIMIT %(kept)s
) AS earlier) AS before
CROSS JOIN LATERAL (SELECT max(at) AS at FROM (
    SELECT at FROM codegen_app_datum WHERE series_id = %(series)s AND is_trunk AND at >= border.at
    ORDER BY at LIMIT %(kept)s
) AS later) AS after
ORDER BY border.at
"""
# A note that is written meanwhile refers to its point: the transaction fails, and is tried again.
_DELETE = "DELETE FROM codegen_app_datum WHERE id = ANY(%s)"


@dataclass(frozen=True)
class _Point:
    at: datetime
    pk: int
    value: float


@dataclass(frozen=True)
class _Border:
    """The place where a level begins. Points from ``since`` to ``until`` stay."""

    at: datetime
    since: datetime
    until: datetime


def due_points(before: datetime) -> QuerySet[Datum]:
    """Return the points that a pass would look at: those that it deletes are among them."""
    series = _due_series(before).values("pk")
    old = Datum.objects.filter(series__in=series, is_trunk=True, at__lt=_day(before))
    return old.filter(Q(series__rolled_up_to=None) | Q(at__gt=F("series__rolled_up_to")))


def roll_up_days(before: datetime, after_series: int, most: int) -> tuple[int, int]:
    """Roll up the days before a time in the series after this one, in the caller's transaction;
    return how many points were deleted and the last series, 0 once all are done. It ends with the
    series that exceeds ``most``.

    It locks series in the order of their keys, as those do who store points.
    """
    due = _due_series(before).filter(pk__gt=after_series).order_by("pk")
    rows = list(due.select_for_update(of=("self",))[:STEP_SERIES])
    deleted = 0
    for row in rows:
        deleted += _roll_up(row, _day(before))
        if deleted >= most:
            return deleted, row.pk
    return deleted, rows[-1].pk if len(rows) == STEP_SERIES else 0


def _due_series(before: datetime) -> QuerySet[Series]:
    """Return the series with enough points that the detector has checked."""
    return Series.objects.filter(
        Q(unchecked_from=None) | Q(unchecked_from__gte=before),
        points__gt=F("branch_points") + KEPT_LATEST,
        first_at__lt=before,
    )


def _day(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _roll_up(series: Series, before: datetime) -> int:
    """Roll up the days of a locked series; return the number of deleted points. The number of
    queries does not grow with them."""
    latest = Datum.objects.filter(series=series, is_trunk=True).order_by("-at").values_list("at")
    newest = latest[KEPT_LATEST - 1 : KEPT_LATEST].first()
    if newest is None:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(_BORDERS, {"series": series.pk, "kept": KEPT_AT_BORDER})
        borders = [_Border(*row) for row in cursor.fetchall()]
    rows = deletable_alone(is_trunk=True).filter(
        series=series,
        at__gt=series.rolled_up_to or series.first_at,
        at__lt=min(before, _day(newest[0])),
        value__gt=0,
        value__lt=inf,
    )
    in_order = rows.order_by("at", "pk").values_list("at", "pk", "value")[:_MAX_READ]
    days = list(_days([_Point(*row) for row in in_order], borders))
    if not days:
        return 0
    summaries, deleted = [], []
    for points in days:
        median = points[(len(points) - 1) // 2]
        ends = {"low": points[0].value, "high": points[-1].value}
        summaries.append(DaySummary(datum_id=median.pk, points=len(points), **ends))
        deleted += [point for point in points if point is not median]
    DaySummary.objects.bulk_create(summaries)
    with connection.cursor() as cursor:
        cursor.execute(_DELETE, [[point.pk for point in deleted]])
    Series.objects.filter(pk=series.pk).update(
        points=F("points") - len(deleted),
        rolled_up=F("rolled_up") + len(deleted),
        rolled_up_to=max(point.at for point in deleted),
    )
    return len(deleted)


def _days(points: Sequence[_Point], borders: Sequence[_Border]) -> Iterator[list[_Point]]:
    """Yield the points of each level and day by their values, of days with more than one."""
    placed: list[tuple[int, datetime, _Point]] = []
    level = 0
    for point in points:
        while level < len(borders) and borders[level].at <= point.at:
            level += 1
        near = borders[max(level - 1, 0) : level + 1]
        if not any(border.since <= point.at <= border.until for border in near):
            placed.append((level, _day(point.at), point))
    for _, day in groupby(placed, key=itemgetter(0, 1)):
        values = sorted((point for _, _, point in day), key=lambda point: (point.value, point.pk))
        if len(values) > 1:
            yield values
