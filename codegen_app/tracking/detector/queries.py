"""The detector's queries: their number does not depend on the number of series."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import psycopg
from django.db import connection

from codegen_app.tracking.detector.points import PointColumns, decode_points, register_array_loaders
from codegen_app.tracking.detector.replay import (
    CONTEXT_POINTS,
    KnownChange,
    ReplayWindow,
    has_change,
    settings_of,
)
from codegen_app.tracking.models import VALID, Baseline, Change, Series
from codegen_app.tracking.models.series import HIGHER

MAX_POINTS = 500
"""Limit of points per series and run, except for more points of the very same time."""

# The number of waiting points per series, counted up to the limit of a run, and the place reached.
_WAITING = """
SELECT asked.id, waiting.n, waiting.upto
FROM unnest(%s::bigint[], %s::timestamptz[]) AS asked(id, since)
CROSS JOIN LATERAL (
    SELECT count(*) AS n, max(at) AS upto FROM (
        SELECT at FROM codegen_app_datum
        WHERE series_id = asked.id AND at >= asked.since ORDER BY at LIMIT %s
    ) AS next
) AS waiting
"""
_COLUMNS = ("at", "measured_at", "id", "value", "revision_id", "conditions_id")
# Changes are ratios, so values at or below 0 have none; ``Series.not_positive`` counts them.
# (PostgreSQL's NaN is above Infinity.)
_POINTS = """
SELECT asked.id, found.* FROM unnest(%s::bigint[], %s::timestamptz[], %s::timestamptz[])
    AS asked(id, since, upto)
CROSS JOIN LATERAL (
    SELECT {arrays} FROM (
        SELECT {columns} FROM codegen_app_datum AS datum
        WHERE series_id = asked.id AND at >= asked.since AND at <= asked.upto
            AND value > 0 AND value < 'Infinity' AND {valid}
        UNION ALL (
            SELECT {columns} FROM codegen_app_datum AS datum
            WHERE series_id = asked.id AND at < asked.since
                AND value > 0 AND value < 'Infinity' AND {valid}
            ORDER BY at DESC, measured_at DESC, id DESC LIMIT {kept}
        )
    ) AS point
) AS found
""".format(  # noqa: S608 - our own names
    columns=", ".join(_COLUMNS),
    arrays=", ".join(f"array_agg({name})" for name in _COLUMNS),
    kept=CONTEXT_POINTS,
    valid=VALID.format(datum="datum"),
)
# The changes that points since a time may disprove, and the last one before these.
_CHANGE_COLUMNS = (
    *("id", "series_id", "datum_id", "at", "shown_at", "previous_id", "errors", "worse"),
    *("before", "after", "low", "high", "n_before", "n_after"),
)
_CHANGES = """
SELECT found.* FROM unnest(%s::bigint[], %s::timestamptz[]) AS asked(id, since)
CROSS JOIN LATERAL (
    SELECT {columns} FROM codegen_app_change
    WHERE series_id = asked.id AND withdrawn_at IS NULL AND COALESCE(shown_at, at) >= asked.since
    UNION ALL (
        SELECT {columns} FROM codegen_app_change
        WHERE series_id = asked.id AND withdrawn_at IS NULL AND COALESCE(shown_at, at) < asked.since
        ORDER BY at DESC, id DESC LIMIT 1
    )
) AS found
ORDER BY found.series_id, found.at, found.id
""".format(columns=", ".join(_CHANGE_COLUMNS))  # noqa: S608 - our own names
# Clocks are read in each run: alone they make no other conditions. A group is one code object in
# one environment, if both are known.
_CONDITIONS = """
SELECT id, md5((facts - 'clocks')::text),
    CASE WHEN facts ? 'code_digest' AND (facts ? 'driver' OR facts ? 'runtime') THEN
        md5(jsonb_build_array(facts->'code_digest', facts->'driver', facts->'runtime',
            facts->'host', facts->'attributes')::text)
    ELSE '' END
FROM codegen_app_conditions WHERE id = ANY(%s)
"""


@dataclass(frozen=True)
class PendingSeries:
    """A series with its points to check: ``points`` from ``since`` up to ``upto``."""

    series: Series
    since: datetime
    upto: datetime
    points: int


def pending_series(rows: Sequence[Series], at_most: int) -> list[PendingSeries]:
    """Return as many series as have this many waiting points, at least one."""
    since = [row.unchecked_from for row in rows]
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, [[row.pk for row in rows], since, MAX_POINTS])
        counts = {pk: (n, upto) for pk, n, upto in cursor.fetchall()}
    result: list[PendingSeries] = []
    for row in rows:
        n, upto = counts[row.pk]
        assert row.unchecked_from is not None
        if result and sum(one.points for one in result) + n > at_most:
            break
        result.append(PendingSeries(row, row.unchecked_from, upto or row.unchecked_from, n))
    return result


@dataclass(frozen=True)
class DetectionInput:
    """The detector's input for one series. ``live`` are the changes that the new points may
    disprove: those shown by a point since ``since``; ``is_moving`` says whether there may be
    others."""

    asked: PendingSeries
    stretch: ReplayWindow
    live: Sequence[Change]
    last: Change | None
    is_moving: bool = False


def detection_inputs(asked: Sequence[PendingSeries]) -> list[DetectionInput]:
    """Return the detector's inputs for these series. Noise floors are computed where something
    changes."""
    points = _points(asked)
    known = _changes(asked)
    baselines = _baselines(asked)
    found = [
        _detection_input(one, points[one.series.pk], known.get(one.series.pk, []), baselines)
        for one in asked
    ]
    conditions = _Conditions()
    conditions.read(_ambiguous(found))
    found = [conditions.with_same(one) for one in found]
    moving = [has_change(one.stretch) for one in found]
    conditions.read(
        place
        for one, does in zip(found, moving, strict=True)
        if does
        for place in one.stretch.places.conditions.tolist()
    )
    return [
        conditions.with_groups(one) if does else one
        for one, does in zip(found, moving, strict=True)
    ]


def full_history(
    series: Series,
    least_effect: float | None,
    baselines: Sequence[datetime],
    since: datetime | None = None,
) -> ReplayWindow:
    """Return a series' whole history as if it came at once; or the part since a time, with as many
    points before it as a level looks back."""
    ends = datetime.fromisoformat("9999-12-31T00:00:00+00:00")
    begins = since or datetime.fromisoformat("0001-01-02T00:00:00+00:00")
    points = _points([PendingSeries(series, begins, ends, 0)])[series.pk]
    stretch = ReplayWindow(
        points, 0, 0, series.better == HIGHER, settings_of(least_effect), baselines, {}, {}
    )
    conditions = _Conditions()
    conditions.read(points.conditions.tolist())
    return replace(stretch, same=conditions.same, groups=conditions.groups)


def _points(asked: Sequence[PendingSeries]) -> dict[int, PointColumns]:
    """Return each series' points in order, which are above 0 and not withdrawn."""
    connection.ensure_connection()
    with psycopg.Cursor(connection.connection) as cursor:
        register_array_loaders(cursor.adapters)
        cursor.execute(
            _POINTS,
            [
                [one.series.pk for one in asked],
                [one.since for one in asked],
                [one.upto for one in asked],
            ],
            binary=True,
        )
        return {series: decode_points(columns) for series, *columns in cursor.fetchall()}


def _changes(asked: Sequence[PendingSeries]) -> dict[int, list[Change]]:
    """Return the series' relevant changes, in the order of the history."""
    rows: dict[int, list[Change]] = {}
    of = [[one.series.pk for one in asked], [one.since for one in asked]]
    for change in Change.objects.raw(_CHANGES, of):
        rows.setdefault(change.series_id, []).append(change)
    return rows


def _baselines(asked: Sequence[PendingSeries]) -> dict[int, list[datetime]]:
    rows: dict[int, list[datetime]] = {}
    of = Baseline.objects.filter(series__in=[one.series.pk for one in asked], removed_at=None)
    for series, at in of.order_by("at").values_list("series_id", "at"):
        rows.setdefault(series, []).append(at)
    return rows


def _detection_input(
    asked: PendingSeries,
    points: PointColumns,
    changes: list[Change],
    baselines: Mapping[int, list[datetime]],
) -> DetectionInput:
    live = [one for one in changes if (one.shown_at or one.at) >= asked.since]
    settled = [one for one in changes if (one.shown_at or one.at) < asked.since]
    last = settled[-1] if settled else None
    split = points.index_of(last.datum_id) if last else None
    rule = getattr(asked.series, "rule", None)
    stretch = ReplayWindow(
        places=points,
        first=points.index_from(asked.since),
        level=split or 0,
        higher_is_better=asked.series.better == HIGHER,
        settings=settings_of(rule.least_effect if rule else None),
        baselines=baselines.get(asked.series.pk, []),
        same={},
        groups={},
        last=KnownChange(last.pk, split, last.n_before, last.n_after) if last else None,
    )
    return DetectionInput(asked, stretch, live, last)


def _ambiguous(found: Iterable[DetectionInput]) -> Iterable[int]:
    """Yield conditions in which runs of one revision differ: only there differences matter."""
    for one in found:
        revisions, conditions = one.stretch.places.revisions, one.stretch.places.conditions
        again = (revisions[1:] == revisions[:-1]) & (conditions[1:] != conditions[:-1])
        if again.any():
            yield from conditions[:-1][again].tolist()
            yield from conditions[1:][again].tolist()


class _Conditions:
    """Which conditions are equal except for clocks, and which share code and environment."""

    def __init__(self) -> None:
        self.same: dict[int, str] = {}
        self.groups: dict[int, str] = {}

    def read(self, keys: Iterable[int]) -> None:
        missing = sorted(set(keys) - set(self.same))
        if not missing:
            return
        with connection.cursor() as cursor:
            cursor.execute(_CONDITIONS, [missing])
            for key, same, group in cursor.fetchall():
                self.same[key], self.groups[key] = same, group

    def with_same(self, look: DetectionInput) -> DetectionInput:
        return replace(look, stretch=replace(look.stretch, same=self.same))

    def with_groups(self, look: DetectionInput) -> DetectionInput:
        return replace(look, stretch=replace(look.stretch, groups=self.groups), is_moving=True)
