"""Deletion of the points of branches that get no more points, whether merged, gone or forgotten."""

from __future__ import annotations

from datetime import datetime

from django.db import connection
from django.db.models import Exists, F, OuterRef, QuerySet

from codegen_app.tracking.models import Datum, Revision, Series
from codegen_app.tracking.services.point_deletion import deletable, delete
from codegen_app.tracking.services.recount import recount

STEP_REVISIONS = 50
_SUBTRACT = """
UPDATE codegen_app_series AS series SET
    points = series.points - deleted.points, branch_points = series.branch_points - deleted.points
FROM (
    SELECT id, count(*) AS points FROM unnest(%s::bigint[]) AS deleted(id) GROUP BY id
) AS deleted
WHERE series.id = deleted.id
"""


def expired_points(before: datetime) -> QuerySet[Datum]:
    """Return the points of branches for which no point was stored since a time."""
    return deletable(is_trunk=False).filter(revision__in=_expired_revisions(before))


def delete_points(before: datetime, most: int) -> int:
    """Delete at most this many points of such branches, in the caller's transaction; return how
    many: fewer if no others are left.

    A point that a change began with, before its branch ceased to be the trunk, or that was measured
    again, stays with them.

    It locks revisions, then series, each in order of their keys, as those do who store points.
    """
    points: list[tuple[int, int]] = []
    while len(points) < most:
        expired = _expired_revisions(before).order_by("pk").select_for_update(no_key=True)
        revisions = list(expired.values_list("pk", flat=True)[:STEP_REVISIONS])
        if not revisions:
            break
        # Read once more: a point that was stored meanwhile stays.
        rows = deletable(is_trunk=False).filter(
            revision__in=revisions, revision__last_stored_at__lt=before
        )
        points += rows.values_list("pk", "series_id")[: most - len(points)]
        if len(points) < most:  # none is left of these; unless a point was stored meanwhile
            done = Revision.objects.filter(pk__in=revisions, last_stored_at__lt=before)
            done.update(last_stored_at=None)
    _delete([pk for pk, _ in points], [series for _, series in points])
    return len(points)


def _expired_revisions(before: datetime) -> QuerySet[Revision]:
    """Return the revisions with points of branches that got none since."""
    rows = Revision.objects.filter(is_trunk=False)
    alive = rows.filter(
        repository=OuterRef("repository"), branch=OuterRef("branch"), last_stored_at__gte=before
    )
    return rows.filter(~Exists(alive), last_stored_at__lt=before)


def _delete(points: list[int], series: list[int]) -> None:
    """Delete points with what belongs to them (withdrawals, notes), and count their series. The
    points themselves are not loaded."""
    if not points:
        return
    locked = Series.objects.filter(pk__in=set(series)).order_by("pk").select_for_update()
    keys = list(locked.values_list("pk", flat=True))
    delete(points)
    with connection.cursor() as cursor:
        cursor.execute(_SUBTRACT, [series])
    # Without points of the trunk, the times of a series are those of its branches.
    recount(
        Series.objects.filter(pk__in=keys, points=F("branch_points")).values_list("pk", flat=True)
    )
