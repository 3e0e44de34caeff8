"""Compare revisions of branches with the trunk at their merge base, within one series."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.db import connection

from codegen_app.tracking.compare_revisions.queries import (
    StoredPoint,
    StoredSeries,
    load_conditions,
    load_points_of_series,
)
from codegen_app.tracking.compare_revisions.samples import (
    Conditions,
    match_environments,
    side_samples,
)
from codegen_app.tracking.compare_revisions.sides import comparison_url, revision_text
from codegen_app.tracking.models import VALID, Revision, Series
from codegen_app.web.row import build_row
from scheduler.track.compare import compare
from scheduler.track.compared_series import MeasuredSeries

# The revision of the trunk that a revision is compared with: the recorded merge base if it was
# measured in this series, else the trunk's last up to its time, or before the first point of the
# branch if that is unknown.
_BASES = """
SELECT tip.id, COALESCE(recorded.id, earlier.id), COALESCE(recorded.name, earlier.name),
    recorded.id IS NOT NULL
FROM codegen_app_revision AS tip
LEFT JOIN LATERAL (
    SELECT revision.id, revision.name
    FROM codegen_app_revision AS revision
    JOIN codegen_app_datum AS datum ON datum.revision_id = revision.id
    WHERE revision.repository = tip.repository AND revision.name = tip.merge_base
        AND datum.series_id = %(series)s AND datum.is_trunk AND {valid}
    LIMIT 1
) AS recorded ON TRUE
LEFT JOIN LATERAL (
    SELECT min(datum.at) AS at
    FROM codegen_app_datum AS datum
    JOIN codegen_app_revision AS revision ON revision.id = datum.revision_id
    WHERE datum.series_id = %(series)s AND NOT datum.is_trunk
        AND revision.repository = tip.repository AND revision.branch = tip.branch
) AS first ON TRUE
LEFT JOIN LATERAL (
    SELECT revision.id, revision.name
    FROM codegen_app_datum AS datum
    JOIN codegen_app_revision AS revision ON revision.id = datum.revision_id
    WHERE datum.series_id = %(series)s AND datum.is_trunk
        AND datum.at < COALESCE(tip.merge_base_at + interval '1 microsecond', first.at)
        AND revision.repository = tip.repository AND {valid}
    ORDER BY datum.at DESC, datum.id DESC LIMIT 1
) AS earlier ON TRUE
WHERE tip.id = ANY(%(tips)s) AND COALESCE(recorded.id, earlier.id) IS NOT NULL
""".format(valid=VALID.format(datum="datum"))  # noqa: S608 - our own names


@dataclass(frozen=True)
class TrunkComparison:
    """A branch's revision beside the trunk's at its merge base. ``ratio`` is the slowdown with its
    95% interval, None if it cannot be computed (``reason``); above 1 is slower, also for metrics
    where higher is better. ``is_recorded``: the merge base was sent with the results; else it is
    the last revision of the trunk that was measured before the branch."""

    base: str
    is_recorded: bool
    status: str
    ratio: float | None
    low: float | None
    high: float | None
    n_before: int
    n_after: int
    reason: str
    url: str

    @property
    def base_title(self) -> str:
        """The merge base, a commit shortened."""
        return str(Revision(name=self.base))


def compare_with_trunk(series: Series, revisions: Mapping[int, str]) -> dict[int, TrunkComparison]:
    """Return comparisons by revision (given by key, with names), for those that have a merge base
    with points (3 queries)."""
    if not revisions:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_BASES, {"series": series.pk, "tips": list(revisions)})
        bases = {tip: row for tip, *row in cursor.fetchall()}
    points = load_points_of_series(
        series.pk, {*revisions, *(base for base, _, _ in bases.values())}
    )
    conditions = Conditions(
        load_conditions({point.conditions for rows in points.values() for point in rows})
    )
    stored = build_row(
        StoredSeries,
        series,
        id=series.pk,
        own_problem=series.own_problem_id,
        device=series.device_name,
    )
    sides: tuple[list[MeasuredSeries], list[MeasuredSeries]] = [], []
    for tip, (base, _, _) in bases.items():
        both = match_environments(points.get(base, ()), points.get(tip, ()), conditions)
        for side, rows in zip(sides, both, strict=True):
            if rows:
                side.append(_measured(str(tip), stored, rows, conditions))
    rows_by_tip = {int(row.series): row for row in compare(*sides).rows}
    found: dict[int, TrunkComparison] = {}
    for tip, (_, name, is_recorded) in bases.items():
        if tip in rows_by_tip:
            url = comparison_url(revision_text(name), revision_text(revisions[tip]))
            found[tip] = build_row(
                TrunkComparison,
                rows_by_tip[tip],
                status=rows_by_tip[tip].status.label,
                base=name,
                is_recorded=is_recorded,
                url=url,
            )
    return found


def _measured(
    name: str, series: StoredSeries, points: Collection[StoredPoint], conditions: Conditions
) -> MeasuredSeries:
    rows = list(points)
    point = conditions.point(series, rows[0]) if rows[0].value > 0 else None
    return side_samples(name, [series.device], series, rows, point)
