"""The detector's queries: their number does not depend on the number of series."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
from codegen_app.tracking.rules.settings import series_settings

MAX_POINTS = 500
"""Limit of points per series and run, except for more points of the very same time."""

# The number of waiting points per series, counted up to the limit of a run, the place reached, and
# when the last of them was measured.
_WAITING = """
SELECT asked.id, waiting.n, waiting.upto, waiting.measured_at
FROM unnest(%s::bigint[], %s::timestamptz[]) AS asked(id, since)
CROSS JOIN LATERAL (
    SELECT count(*) AS n, max(at) AS upto, max(measured_at) AS measured_at FROM (
        SELECT at, measured_at FROM codegen_app_datum
        WHERE series_id = asked.id AND is_trunk AND at >= asked.since ORDER BY at LIMIT %s
    ) AS next
) AS waiting
"""
_BEGIN = datetime.fromisoformat("0001-01-02T00:00:00+00:00")
_END = datetime.fromisoformat("9999-12-31T00:00:00+00:00")
_COLUMNS = ("at", "measured_at", "id", "value", "revision_id", "conditions_id")
# Changes are ratios, so values at or below 0 have none; ``Series.not_positive`` counts them.
# (PostgreSQL's NaN is above Infinity.)
# Ordered by the index alone: by more columns, the planner, which expects series of average length,
# reads and sorts the whole of a long one.
_POINTS = """
SELECT asked.id, found.*
FROM unnest(%s::bigint[], %s::timestamptz[], %s::timestamptz[], %s::timestamptz[])
    AS asked(id, since, upto, rolled_up_to)
CROSS JOIN LATERAL (
    SELECT {arrays} FROM (
        SELECT {columns} FROM codegen_app_datum AS datum
        WHERE series_id = asked.id AND is_trunk AND at >= asked.since AND at <= asked.upto
            AND value > 0 AND value < 'Infinity' AND {valid}
        UNION ALL (
            SELECT {columns} FROM codegen_app_datum AS datum
            WHERE series_id = asked.id AND is_trunk AND at < asked.since
                AND (at > asked.rolled_up_to) IS NOT FALSE
                AND value > 0 AND value < 'Infinity' AND {valid}
            ORDER BY at DESC FETCH FIRST {kept} ROWS WITH TIES
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
    *("id", "series_id", "datum_id", "at", "shown_at", "errors", "worse"),
    *("previous_id", "good_revision_id", "since", "bad_revision_id", "until"),
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
# Clocks and readings are read in each run, and benchmarks are moved to other files: alone, neither
# makes other conditions. A group is one code object in one environment, if both are known.
_CONDITIONS = """
SELECT id, md5((facts - '{clocks,readings,path}'::text[])::text),
    CASE WHEN facts ? 'code_digest' AND (facts ? 'driver' OR facts ? 'runtime') THEN
        md5(jsonb_build_array(facts->'code_digest', facts->'driver', facts->'runtime',
            facts->'host', facts->'attributes')::text)
    ELSE '' END
FROM codegen_app_conditions WHERE id = ANY(%s)
"""


@dataclass(frozen=True)
class PendingSeries:
    """A series with its points to check: ``points`` from ``since`` up to ``upto``, which is beyond
    the end of the history if all are checked. Withdrawn points are among them; the last was
    measured at ``last_measured_at``."""

    series: Series
    since: datetime
    upto: datetime
    points: int
    last_measured_at: datetime | None = None


def pending_series(rows: Sequence[Series], at_most: int) -> list[PendingSeries]:
    """Return as many series as have this many waiting points, at least one."""
    since = [_unchecked_place(row) for row in rows]
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, [[row.pk for row in rows], since, MAX_POINTS])
        counts = {pk: values for pk, *values in cursor.fetchall()}
    result: list[PendingSeries] = []
    total = 0
    for row, begin in zip(rows, since, strict=True):
        n, upto, last_measured_at = counts[row.pk]
        total += n
        if result and total > at_most:
            break
        upto = upto if n == MAX_POINTS else _END
        result.append(PendingSeries(row, begin, upto, n, last_measured_at))
    return result


def _unchecked_place(series: Series) -> datetime:
    """Return the place from which to check a waiting series."""
    assert series.unchecked_from is not None
    return max(series.unchecked_from, series.detected_from or series.unchecked_from)


@dataclass(frozen=True)
class DetectionInput:
    """The detector's input for one series. ``live`` are the changes that the new points may
    disprove: those shown by a point since ``since``; ``is_moving`` says whether there may be
    others."""

    pending: PendingSeries
    window: ReplayWindow
    live: Sequence[Change]
    last: Change | None
    is_moving: bool = False


def detection_inputs(pending: Sequence[PendingSeries]) -> list[DetectionInput]:
    """Return the detector's inputs for these series. Noise floors are computed where something
    changes."""
    keys = [row.series.pk for row in pending]
    points = _points(pending)
    changes: dict[int, list[Change]] = {pk: [] for pk in keys}
    for change in Change.objects.raw(_CHANGES, [keys, [row.since for row in pending]]):
        changes[change.series_id].append(change)
    baselines: dict[int, list[datetime]] = {pk: [] for pk in keys}
    standing = Baseline.objects.filter(series__in=keys, removed_at=None).order_by("at")
    for pk, at in standing.values_list("series_id", "at"):
        baselines[pk].append(at)
    conditions = _Conditions()
    inputs: list[DetectionInput] = []
    for pk, waiting in zip(keys, pending, strict=True):
        shown = [(change, change.shown_at or change.at) for change in changes[pk]]
        live = [change for change, shown_at in shown if shown_at >= waiting.since]
        settled = [change for change, shown_at in shown if shown_at < waiting.since]
        last = settled[-1] if settled else None
        split = points[pk].index_of(last.datum_id) if last else None
        window = ReplayWindow(
            points=points[pk],
            first=points[pk].index_from(waiting.since),
            level=split or 0,
            higher_is_better=waiting.series.better == HIGHER,
            settings=settings_of(series_settings(waiting.series).least_effect),
            baselines=baselines[pk],
            same=conditions.same,
            groups={},
            last=KnownChange(split, last.n_before, last.n_after) if last else None,
        )
        inputs.append(DetectionInput(waiting, window, live, last))
    # Runs of one revision are told apart by their conditions; for other points these do not matter.
    for row in inputs:
        revisions, used = row.window.points.revisions, row.window.points.conditions
        differ = (revisions[1:] == revisions[:-1]) & (used[1:] != used[:-1])
        conditions.add([*used[:-1][differ].tolist(), *used[1:][differ].tolist()])
    conditions.read()
    moving = [has_change(row.window) for row in inputs]
    for row, is_moving in zip(inputs, moving, strict=True):
        if is_moving:
            conditions.add(row.window.points.conditions.tolist())
    conditions.read()
    return [
        replace(row, window=replace(row.window, groups=conditions.groups), is_moving=True)
        if is_moving
        else row
        for row, is_moving in zip(inputs, moving, strict=True)
    ]


def full_history(
    series: Series,
    least_effect: float | None,
    baselines: Sequence[datetime],
    since: datetime | None = None,
) -> ReplayWindow:
    """Return a series' whole history as if it came at once; or the part since a time, with as many
    points before it as a level looks back."""
    begins = max(since or _BEGIN, series.detected_from or _BEGIN)
    points = _points([PendingSeries(series, begins, _END, 0)])[series.pk]
    window = ReplayWindow(
        points, 0, 0, series.better == HIGHER, settings_of(least_effect), baselines, {}, {}
    )
    conditions = _Conditions()
    conditions.add(points.conditions.tolist())
    conditions.read()
    return replace(window, same=conditions.same, groups=conditions.groups)


def _points(pending: Sequence[PendingSeries]) -> dict[int, PointColumns]:
    """Return each series' points in order, which are above 0 and not withdrawn."""
    keys, begins, ends, rolled = zip(
        *((row.series.pk, row.since, row.upto, row.series.rolled_up_to) for row in pending),
        strict=True,
    )
    connection.ensure_connection()
    with psycopg.Cursor(connection.connection) as cursor:
        register_array_loaders(cursor.adapters)
        cursor.execute(_POINTS, [list(keys), list(begins), list(ends), list(rolled)], binary=True)
        return {series: decode_points(columns) for series, *columns in cursor.fetchall()}


class _Conditions:
    """Which conditions are equal except for clocks, and which share code and environment."""

    def __init__(self) -> None:
        self.same: dict[int, str] = {}
        self.groups: dict[int, str] = {}
        self._missing: set[int] = set()

    def add(self, keys: Iterable[int]) -> None:
        """Have these read, if they were not."""
        self._missing.update(keys)

    def read(self) -> None:
        missing = sorted(self._missing - self.same.keys())
        if missing:
            with connection.cursor() as cursor:
                cursor.execute(_CONDITIONS, [missing])
                for key, same, group in cursor.fetchall():
                    self.same[key], self.groups[key] = same, group
