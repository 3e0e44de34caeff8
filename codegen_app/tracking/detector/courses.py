"""The latest points of series, and what they show besides changes: a drift, another spread, a
second mode."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import psycopg
from django.db import connection
from django.db.models import Max

from codegen_app.tracking.detector.points import PointColumns, decode_points, register_array_loaders
from codegen_app.tracking.models import VALID, AlertKind, Baseline
from scheduler.stats.modes import find_second_mode
from scheduler.stats.reference import Array
from scheduler.stats.spread import find_spread_change
from scheduler.stats.trend import LONG, SHORT, find_drift

MIN_POINTS = SHORT
"""The fewest points in which anything is found."""

_MIN_BEFORE_MODE = 40
"""The fewest points that precede a second mode: a series that had two from its beginning is as it
was."""

_COLUMNS = ("at", "measured_at", "id", "value", "revision_id", "conditions_id")
_POINTS = """
SELECT asked.id, found.* FROM unnest(%s::bigint[], %s::timestamptz[]) AS asked(id, since)
CROSS JOIN LATERAL (
    SELECT {arrays} FROM (
        SELECT {columns} FROM codegen_app_datum AS datum
        WHERE series_id = asked.id AND is_trunk AND at >= asked.since
            AND value > 0 AND value < 'Infinity' AND {valid}
        ORDER BY at DESC FETCH FIRST {most} ROWS WITH TIES
    ) AS point
) AS found
""".format(  # noqa: S608 - our own names
    columns=", ".join(_COLUMNS),
    arrays=", ".join(f"array_agg({name})" for name in _COLUMNS),
    most=LONG,
    valid=VALID.format(datum="datum"),
)
_BEGIN = datetime.fromisoformat("0001-01-02T00:00:00+00:00")


@dataclass(frozen=True)
class CourseFinding:
    """Something about the latest points of a series, as ``SeriesFinding`` stores it. ``start`` is
    the index of its first point; ``is_new`` is false if it may have been there from the first
    point."""

    kind: AlertKind
    start: int
    before: float
    after: float
    ratio: float
    low: float
    high: float
    n_before: int
    n_after: int
    share: float | None = None
    is_new: bool = True

    @property
    def has_ratio(self) -> bool:
        """Whether its ratio is a number: levels may be hundreds of orders of magnitude apart."""
        return all(0 < figure < math.inf for figure in (self.ratio, self.low, self.high))


def latest_points(series: Sequence[int]) -> Mapping[int, PointColumns]:
    """Return the latest points of each series since its last baseline, in order (2 queries)."""
    standing = Baseline.objects.filter(series__in=series, removed_at=None)
    begins = dict(standing.values_list("series_id").annotate(Max("at")).order_by())
    connection.ensure_connection()
    with psycopg.Cursor(connection.connection) as cursor:
        register_array_loaders(cursor.adapters)
        since = [begins.get(key, _BEGIN) for key in series]
        cursor.execute(_POINTS, [list(series), since], binary=True)
        return {key: decode_points(columns) for key, *columns in cursor.fetchall()}


def course_findings(values: Array) -> dict[AlertKind, CourseFinding]:
    """Return what the latest values, above 0 and oldest first, show, by kind."""
    findings = []
    if (drift := find_drift(values)) is not None:
        findings.append(
            CourseFinding(
                AlertKind.DRIFT,
                start=drift.start,
                before=drift.level,
                after=drift.level * (1 + drift.change),
                ratio=1 + drift.change,
                low=1 + drift.low,
                high=1 + drift.high,
                n_before=drift.start,
                n_after=drift.n,
            )
        )
    mode = find_second_mode(values)
    if mode is not None:
        findings.append(
            CourseFinding(
                AlertKind.MODE,
                start=mode.start,
                before=mode.main,
                after=mode.other,
                ratio=mode.ratio,
                low=mode.low,
                high=mode.high,
                n_before=mode.start,
                n_after=mode.n,
                share=mode.share,
                is_new=mode.start >= _MIN_BEFORE_MODE,
            )
        )
    # Two modes spread further than one: that is said once.
    spread = find_spread_change(values) if mode is None else None
    if spread is not None:
        findings.append(
            CourseFinding(
                AlertKind.SPREAD,
                start=spread.start,
                before=spread.before,
                after=spread.after,
                ratio=spread.ratio,
                low=spread.low,
                high=spread.high,
                n_before=spread.n_before,
                n_after=spread.n_after,
            )
        )
    return {finding.kind: finding for finding in findings if finding.has_ratio}
