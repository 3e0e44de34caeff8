"""The branches of a series: their newest points, compared with the trunk."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from codegen_app.tracking.compare_revisions.branches import TrunkComparison, compare_with_trunk
from codegen_app.tracking.models import VALID, Datum, Series
from codegen_app.tracking.queries.revision_links import revision_links
from codegen_app.tracking.queries.series_summary import PointValue, point_value

ALL_BRANCHES = "*"
"""Stands for all branches in an address. Git allows no branch of this name."""

MAX_BRANCHES = 20
_MAX_POINTS = 2_000  # the newest points of branches, which are grouped
_BRANCHES = """
SELECT count(*) AS points, (array_agg(point.id ORDER BY point.at DESC, point.id DESC))[1]
FROM (
    SELECT id, at, revision_id FROM codegen_app_datum AS datum
    WHERE series_id = %s AND NOT is_trunk AND {valid} ORDER BY at DESC, id DESC LIMIT %s
) AS point
JOIN codegen_app_revision AS revision ON revision.id = point.revision_id
GROUP BY revision.repository, revision.branch
ORDER BY max(point.at) DESC, revision.repository, revision.branch LIMIT %s
""".format(valid=VALID.format(datum="datum"))  # noqa: S608 - our own names


@dataclass(frozen=True)
class BranchRow:
    """A branch with points in a series: the newest of its ``points``, which are counted among the
    ``_MAX_POINTS`` newest of all branches, and how its revision compares with the trunk at the
    merge base; None if the trunk has no point before the branch."""

    branch: str
    repository: str
    pull_request: str
    pull_request_url: str
    points: int
    newest: PointValue
    point_url: str
    trunk: TrunkComparison | None


def branch_rows(series: Series) -> tuple[BranchRow, ...]:
    """Return the branches with the newest points of a series (at most 10 queries; none without such
    points)."""
    if not series.branch_points:
        return ()
    with connection.cursor() as cursor:
        cursor.execute(_BRANCHES, [series.pk, _MAX_POINTS, MAX_BRANCHES])
        counts = {pk: count for count, pk in cursor.fetchall()}
    points = Datum.objects.select_related("revision").defer("samples").in_bulk(counts)
    revisions = {point.revision_id: point.revision.name for point in points.values()}
    compared = compare_with_trunk(series, revisions)
    links = revision_links(point.revision for point in points.values())
    return tuple(
        BranchRow(
            branch=points[pk].revision.branch,
            repository=points[pk].revision.repository,
            pull_request=points[pk].revision.pull_request,
            pull_request_url=links.pull_request(points[pk].revision),
            points=count,
            newest=point_value(points[pk], series.unit),
            point_url=points[pk].get_absolute_url(),
            trunk=compared.get(points[pk].revision_id),
        )
        for pk, count in counts.items()
        if pk in points
    )
