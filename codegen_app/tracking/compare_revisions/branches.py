"""Compare revisions of branches with the trunk at their merge base, within one series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import connection

from codegen_app.tracking.compare_revisions.histories import (
    NewValues,
    load_histories,
    needs_history,
)
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
WITH first AS (
    SELECT revision.repository, revision.branch, min(datum.at) AS at
    FROM codegen_app_datum AS datum
    JOIN codegen_app_revision AS revision ON revision.id = datum.revision_id
    WHERE datum.series_id = %(series)s AND NOT datum.is_trunk
    GROUP BY revision.repository, revision.branch
)
SELECT tip.id, COALESCE(recorded.id, earlier.id), COALESCE(recorded.name, earlier.name),
    recorded.id IS NOT NULL, tip.repository
FROM codegen_app_revision AS tip
LEFT JOIN LATERAL (
    SELECT revision.id, revision.name
    FROM codegen_app_revision AS revision
    JOIN codegen_app_datum AS datum ON datum.revision_id = revision.id
    WHERE revision.repository = tip.repository AND revision.name = tip.merge_base
        AND datum.series_id = %(series)s AND datum.is_trunk AND {valid}
    LIMIT 1
) AS recorded ON TRUE
LEFT JOIN first ON first.repository = tip.repository AND first.branch = tip.branch
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
    """A branch's revision against the trunk's at its merge base. ``ratio`` is the slowdown with its
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
    with points (at most 7 queries). With few samples, they are compared with the trunk's history up
    to the merge base."""
    if not revisions:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_BASES, {"series": series.pk, "tips": list(revisions)})
        bases = {tip: row for tip, *row in cursor.fetchall()}
    points = load_points_of_series(series.pk, {*revisions, *(base for base, *_ in bases.values())})
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
    sides: tuple[dict[int, MeasuredSeries], dict[int, MeasuredSeries]] = {}, {}
    few_samples: list[NewValues] = []
    for tip, (base, *_) in bases.items():
        old, new = match_environments(points.get(base, ()), points.get(tip, ()), conditions)
        if not old or not new:
            continue
        for side, rows in zip(sides, (old, new), strict=True):
            side[tip] = _measured(tip, stored, rows, conditions)
        if needs_history([side[tip] for side in sides]):
            upto = max(point.at for point in old)
            few_samples.append(NewValues(tip, series.pk, series.better, old[0], new[0], upto))
    histories = load_histories(few_samples, revisions, conditions)
    for tip, past in histories.items():
        if past.replaces_before:
            sides[0][tip] = _measured(tip, stored, [past.newest], conditions)
    compared = compare(
        list(sides[0].values()),
        list(sides[1].values()),
        histories={str(tip): past.history for tip, past in histories.items()},
    )
    rows_by_tip = {int(row.series): row for row in compared.rows}
    return {
        tip: build_row(
            TrunkComparison,
            row,
            status=row.status.label,
            base=bases[tip][1],
            is_recorded=bases[tip][2],
            url=comparison_url(
                revision_text(bases[tip][1]),
                revision_text(revisions[tip]),
                repository=bases[tip][3],
            ),
        )
        for tip, row in rows_by_tip.items()
    }


def _measured(
    tip: int, series: StoredSeries, points: Sequence[StoredPoint], conditions: Conditions
) -> MeasuredSeries:
    point = conditions.point(series, points[0]) if points[0].value > 0 else None
    return side_samples(str(tip), [series.device], series, points, point)
