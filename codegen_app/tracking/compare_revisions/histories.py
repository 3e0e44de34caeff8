"""The histories that series are compared with if a side has too few samples."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import psycopg
from django.db import connection

from codegen_app.tracking.compare_revisions.queries import StoredPoint, fetch_rows, load_conditions
from codegen_app.tracking.compare_revisions.samples import HIGHER, SMALLEST, Conditions
from codegen_app.tracking.detector.points import PointColumns, decode_points, register_array_loaders
from codegen_app.tracking.models import VALID
from scheduler.stats.prediction import MIN_HISTORY, History
from scheduler.track.compared_series import MeasuredSeries
from scheduler.track.ratios import MIN_RATIO_SAMPLES

MAX_POINTS = 60
"""The newest points that are read: of a series that several machines measure in turn, those of one
environment are used."""

_RECENT = 5
"""The newest of them whose environments are always read."""

_POINTS = """
SELECT asked.key, found.*
FROM unnest(%s::bigint[], %s::bigint[], %s::timestamptz[]) AS asked(key, id, upto)
JOIN codegen_app_series AS series ON series.id = asked.id
CROSS JOIN LATERAL (
    SELECT array_agg(at), array_agg(measured_at), array_agg(id), array_agg(value),
        array_agg(revision_id), array_agg(conditions_id)
    FROM (
        SELECT at, measured_at, id, value, revision_id, conditions_id
        FROM codegen_app_datum AS datum
        WHERE series_id = asked.id AND is_trunk AND at <= asked.upto
            AND (at > series.rolled_up_to) IS NOT FALSE
            AND value >= %s AND value < 'Infinity' AND NOT revision_id = ANY(%s) AND {valid}
        ORDER BY at DESC FETCH FIRST %s ROWS WITH TIES
    ) AS point
) AS found
""".format(valid=VALID.format(datum="datum"))  # noqa: S608 - our own names
# A level begins at a change, and where a person set a baseline.
_LEVELS = """
SELECT asked.key, level.at
FROM unnest(%s::bigint[], %s::bigint[], %s::timestamptz[], %s::timestamptz[])
    AS asked(key, id, since, upto)
CROSS JOIN LATERAL (
    SELECT at FROM codegen_app_change
    WHERE series_id = asked.id AND withdrawn_at IS NULL AND at > asked.since AND at <= asked.upto
    UNION
    SELECT at FROM codegen_app_baseline
    WHERE series_id = asked.id AND removed_at IS NULL AND at > asked.since AND at <= asked.upto
) AS level
"""


@dataclass(frozen=True)
class NewValues:
    """A series with new values: the newest point on each side, and up to when its history is
    relevant. ``key`` tells several of one series apart."""

    key: int
    series: int
    better: str
    before: StoredPoint | None
    after: StoredPoint
    upto: datetime


@dataclass(frozen=True)
class StoredHistory:
    """A history as times, and its newest point, which stands for the side before if that has no
    point in the environment of the side after."""

    history: History
    newest: StoredPoint
    replaces_before: bool


def load_histories(
    asked: Sequence[NewValues], after: Collection[int], conditions: Conditions
) -> dict[int, StoredHistory]:
    """Return the histories by ``NewValues.key``, in at most 4 queries; a series without earlier
    points has none. Points of the revisions ``after`` are no part of them. Conditions that they
    need are added to ``conditions``."""
    if not asked:
        return {}
    points = _points(asked, after)
    asked = [row for row in asked if len(points[row.key])]
    levels = _levels(asked, points)
    recent = {row.key: _recent_conditions(row, points[row.key]) for row in asked}
    conditions.add(
        load_conditions(key for keys in recent.values() for key in keys if key not in conditions)
    )
    mixed = [
        row
        for row in asked
        if any(
            conditions.environment(key) != conditions.environment(row.after.conditions)
            for key in recent[row.key]
        )
    ]
    keys = {key for row in mixed for key in points[row.key].conditions.tolist()}
    conditions.add(load_conditions(key for key in keys if key not in conditions))
    in_other_environments = {row.key for row in mixed}
    return {
        row.key: _stored_history(
            row,
            points[row.key],
            levels.get(row.key, ()),
            conditions if row.key in in_other_environments else None,
        )
        for row in asked
    }


def needs_history(sides: Sequence[MeasuredSeries]) -> bool:
    """Return whether samples cannot decide: on a side there are too few, or none."""
    if any(side.unusable for side in sides):
        return False
    return len(sides) < 2 or min(side.n for side in sides) < MIN_RATIO_SAMPLES


def _points(asked: Sequence[NewValues], after: Collection[int]) -> dict[int, PointColumns]:
    values = [
        [row.key for row in asked],
        [row.series for row in asked],
        [row.upto for row in asked],
        SMALLEST,
        list(after),
        MAX_POINTS,
    ]
    connection.ensure_connection()
    with psycopg.Cursor(connection.connection) as cursor:
        register_array_loaders(cursor.adapters)
        cursor.execute(_POINTS, values, binary=True)
        return {key: decode_points(columns) for key, *columns in cursor.fetchall()}


def _levels(
    asked: Sequence[NewValues], points: Mapping[int, PointColumns]
) -> dict[int, list[datetime]]:
    """Return the times at which levels begin within the histories, by key."""
    levels: dict[int, list[datetime]] = {}
    values = [
        [row.key for row in asked],
        [row.series for row in asked],
        [points[row.key][0].at for row in asked],
        [row.upto for row in asked],
    ]
    for key, at in fetch_rows(_LEVELS, values):
        levels.setdefault(key, []).append(at)
    return levels


def _recent_conditions(row: NewValues, points: PointColumns) -> set[int]:
    """Return the conditions that show whether several environments measure the series: loading
    those of all points takes longer than the comparison."""
    keys: set[int] = set(points.conditions[-_RECENT:].tolist())
    return keys if row.before is None else {*keys, row.before.conditions}


def _stored_history(
    row: NewValues,
    points: PointColumns,
    levels: Iterable[datetime],
    conditions: Conditions | None,
) -> StoredHistory:
    """Return the history: with ``conditions``, of the points in the environment of the side after
    if there are enough."""
    chosen = np.arange(len(points))
    replaces_before = row.before is None
    if conditions is not None:
        environment = conditions.environment(row.after.conditions)
        is_same = [conditions.environment(key) == environment for key in points.conditions.tolist()]
        if sum(is_same) >= MIN_HISTORY:
            chosen = np.flatnonzero(is_same)
            replaces_before = (
                row.before is None or conditions.environment(row.before.conditions) != environment
            )
    starts = {int(np.searchsorted(chosen, points.index_from(at))) for at in levels}
    values = points.values[chosen]
    newest = points[int(chosen[-1])]
    return StoredHistory(
        History(
            1 / values if row.better == HIGHER else values,
            (0, *sorted(start for start in starts if 0 < start < values.size)),
        ),
        StoredPoint(
            id=newest.pk,
            value=newest.value,
            low=None,
            high=None,
            n=1,
            conditions=newest.conditions,
            source="",
            at=newest.at,
            samples=None,
        ),
        replaces_before,
    )
