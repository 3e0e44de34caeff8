"""The data of a history's chart: columns, since a history has thousands of points."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import mean, median
from typing import Any, NamedTuple

from django.db import connection

from codegen_app.tracking.models import VALID, Change, Series
from codegen_app.tracking.pages.history.answer import difference_sentences
from codegen_app.tracking.pages.history.branches import ALL_BRANCHES
from codegen_app.tracking.pages.history.form import REVISION, TIME
from codegen_app.tracking.pages.history.query import (
    BaselineRow,
    NoteRow,
    baselines_of,
    notes_of,
)
from codegen_app.tracking.queries.environment_marks import Mark, PointEnvironment, environment_marks
from codegen_app.tracking.queries.series_summary import (
    MIN_POINTS,
    ORIGINS,
    change_summary,
    series_head,
)
from codegen_app.web.row import build_row
from scheduler.stats.intervals import MIN_INTERVAL_SAMPLES
from scheduler.track.effect import effect_of, format_change
from scheduler.track.units import scale_of

MAX_POINTS = 5_000  # points of one series
MAX_POINTS_TOTAL = 12_000  # points of all series of a chart
MAX_SUBJECT = 80  # characters of a commit's subject
CLUMPED = 8  # times that revisions follow each other faster than on average, in the median
POINTS_BEFORE, POINTS_AFTER = 60, 40  # points around a change in its own chart

_VALID = VALID.format(datum="datum")
_COLUMNS = """series_id, id, (extract(epoch FROM at) * 1000)::bigint AS ms, value, low, high, n,
        revision_id, conditions_id, source FROM codegen_app_datum AS datum"""
# The latest valid points of each series up to a moment, oldest first; times in ms.
_POINTS = f"""
SELECT d.* FROM unnest(%(series)s::bigint[]) AS s(id) CROSS JOIN LATERAL (
    SELECT {_COLUMNS}
    WHERE series_id = s.id AND is_trunk AND at <= %(until)s AND {_VALID}
    ORDER BY at DESC, id DESC LIMIT %(most)s
) AS d ORDER BY d.series_id, d.ms, d.id
"""  # noqa: S608 - our own names
# Likewise of branches, or of one of them.
_BRANCH_POINTS = f"""
SELECT d.* FROM unnest(%(series)s::bigint[]) AS s(id) CROSS JOIN LATERAL (
    SELECT {_COLUMNS}
    WHERE series_id = s.id AND NOT is_trunk AND at <= %(until)s AND {_VALID}
        AND (%(branch)s = '{ALL_BRANCHES}' OR EXISTS (
            SELECT FROM codegen_app_revision AS revision
            WHERE revision.id = datum.revision_id AND revision.branch = %(branch)s
        ))
    ORDER BY at DESC, id DESC LIMIT %(most)s
) AS d ORDER BY d.series_id, d.ms, d.id
"""  # noqa: S608 - our own names
# Likewise of machines, whose points are set aside.
_SET_ASIDE_POINTS = f"""
SELECT d.* FROM unnest(%(series)s::bigint[]) AS s(id) CROSS JOIN LATERAL (
    SELECT {_COLUMNS}
    WHERE id IN (
        SELECT datum_id FROM codegen_app_withdrawal
        WHERE series_id = s.id AND alert_id IS NOT NULL AND restored_at IS NULL
    ) AND is_trunk AND at <= %(until)s
    ORDER BY at DESC, id DESC LIMIT %(most)s
) AS d ORDER BY d.series_id, d.ms, d.id
"""  # noqa: S608 - our own names
_AROUND = f"""
SELECT * FROM (
    (SELECT {_COLUMNS} WHERE series_id = %(series)s AND is_trunk AND at < %(at)s AND {_VALID}
     ORDER BY at DESC, id DESC LIMIT {POINTS_BEFORE})
    UNION ALL
    (SELECT {_COLUMNS} WHERE series_id = %(series)s AND is_trunk AND at >= %(at)s AND {_VALID}
     ORDER BY at, id LIMIT {POINTS_AFTER})
) AS d ORDER BY d.ms, d.id
"""  # noqa: S608 - our own numbers
_SUMMARIES = (
    "SELECT datum_id, points, low, high FROM codegen_app_daysummary WHERE datum_id = ANY(%s)"
)
_REVISIONS = f"""
SELECT id, name, branch, left(subject, {MAX_SUBJECT}) FROM codegen_app_revision WHERE id = ANY(%s)
"""  # noqa: S608 - our own number
# Fields that do not describe an environment stay in the database: resources are long.
_CONDITIONS = """
SELECT id, (facts - '{resources,config,kernel,source,source_digest,code_digest}'::text[])::text
FROM codegen_app_conditions WHERE id = ANY(%s)
"""
_ORIGIN_INDICES: dict[str, int] = {name: index for index, name in enumerate(ORIGINS)}
_FAR = datetime.fromisoformat("9999-12-31T00:00:00+00:00")


@dataclass(frozen=True)
class Columns:
    """Points of a series in order: ``ms`` since the chart's ``epoch``; ``revision`` is an index
    into the chart's list, ``origin`` one into its ``origins``; null for an unknown interval.
    ``day_points`` is how many points of its day each stands for, as their median within their
    range: 0 for a point that stands for itself; empty if all do."""

    id: tuple[int, ...]
    ms: tuple[int, ...]
    value: tuple[float, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    n: tuple[int, ...]
    revision: tuple[int, ...]
    origin: tuple[int, ...]
    day_points: tuple[int, ...]


@dataclass(frozen=True)
class ChartSeries:
    """One series. Values times ``factor`` are in ``shown_unit``; ``first_level`` is the reference
    of a relative scale, of the branches if no other point is shown; of ``points``, without
    withdrawn ones, the latest are included; ``levels`` are the levels between changes, each with
    its start; ``branches`` are the points of branches that were asked for, ``set_aside`` those of
    machines with an alert."""

    id: int
    url: str
    name: str
    problem: str
    device: str
    unit: str
    shown_unit: str
    factor: float
    better: str
    points: int
    is_enough: bool
    generated: bool
    emulated: bool
    first_level: float
    columns: Columns
    branches: Columns
    set_aside: Columns
    levels: tuple[tuple[int, float], ...]
    changes: tuple[Mapping[str, Any], ...]
    environment: tuple[Mark, ...]
    baselines: tuple[BaselineRow, ...]
    notes: tuple[NoteRow, ...]


@dataclass(frozen=True)
class Chart:
    """A chart of several series; ``revisions`` are their names in order of first appearance,
    ``subjects`` those of their commits. ``axis`` is the horizontal axis that suits the points:
    by revision if these clump in time. ``low`` and ``high`` of fewer than ``least_samples`` are the
    range, else a 95% interval."""

    epoch: int
    axis: str
    revisions: tuple[str, ...]
    branches: tuple[str, ...]
    subjects: tuple[str, ...]
    origins: tuple[str, ...]
    least_points: int
    least_samples: int
    most_points: int
    series: tuple[ChartSeries, ...]


class _Point(NamedTuple):
    """A row of ``_POINTS``."""

    series: int
    id: int
    ms: int
    value: float
    low: float | None
    high: float | None
    n: int
    revision: int
    conditions: int
    source: str
    day_points: int = 0


def history_chart(series: Sequence[int], until: datetime | None = None, branch: str = "") -> Chart:
    """Return points, changes and marks of series by number (8 queries, 1 more with a branch, 1 more
    with withdrawn points, 1 more with rolled-up ones); at most ``MAX_POINTS`` points each, the
    latest up to ``until``; ``branch`` adds the points of one branch or of ``ALL_BRANCHES``. Raises
    ``Series.DoesNotExist`` if none exists."""
    found = Series.objects.in_bulk(series)
    shown = [found[key] for key in dict.fromkeys(series) if key in found]
    if not shown:
        raise Series.DoesNotExist
    most = min(MAX_POINTS, MAX_POINTS_TOTAL // len(shown))
    keys = [row.pk for row in shown]
    values = {"series": keys, "until": until or _FAR, "most": most}
    rows = _fetch_rows(_POINTS, values)
    on_branches = _fetch_rows(_BRANCH_POINTS, values | {"branch": branch}) if branch else []
    withdrawn = [row.pk for row in shown if row.withdrawn]
    set_aside = _fetch_rows(_SET_ASIDE_POINTS, values | {"series": withdrawn}) if withdrawn else []
    return _chart(shown, rows, on_branches, set_aside)


def change_chart(pk: int) -> Chart:
    """Return the points around a change (8 queries, 1 more with rolled-up ones).
    Raises ``Change.DoesNotExist``."""
    change = Change.objects.select_related("series", "datum").get(pk=pk)
    rows = _fetch_rows(_AROUND, {"series": change.series_id, "at": change.at})
    return _chart([change.series], rows)


def _fetch_rows(statement: str, values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def _chart(
    shown: Sequence[Series],
    rows: Sequence[tuple[Any, ...]],
    branch_rows: Sequence[tuple[Any, ...]] = (),
    set_aside_rows: Sequence[tuple[Any, ...]] = (),
) -> Chart:
    """Build the chart from the points; everything else is loaded (6 queries)."""
    keys = [series.pk for series in shown]
    points, on_branches, set_aside = (
        [_Point(*row) for row in kind] for kind in (rows, branch_rows, set_aside_rows)
    )
    points = _with_day_summaries(shown, points)
    all_points = [*points, *on_branches, *set_aside]
    keys_of_revisions = dict.fromkeys(point.revision for point in all_points)
    revisions = {key: index for index, key in enumerate(keys_of_revisions)}
    found = _fetch_rows(_REVISIONS, [list(revisions)])
    names = {pk: (_short_revision(name), *texts) for pk, name, *texts in found}
    conditions = {point.conditions for point in points}
    environments: dict[int, str] = dict(_fetch_rows(_CONDITIONS, [list(conditions)]))
    changes: dict[int, list[Change]] = {key: [] for key in keys}
    change_rows = Change.objects.filter(series__in=keys).order_by("at", "pk")
    for change in change_rows.select_related("revision", "previous", "alert")[:2_000]:
        changes[change.series_id].append(change)
    baselines, notes = baselines_of(keys), notes_of(keys)
    epoch = min((point.ms for point in all_points), default=0)
    by_series: dict[int, list[_Point]] = {key: [] for key in keys}
    branches_by_series: dict[int, list[_Point]] = {key: [] for key in keys}
    set_aside_by_series: dict[int, list[_Point]] = {key: [] for key in keys}
    for kind, grouped in (
        (points, by_series),
        (on_branches, branches_by_series),
        (set_aside, set_aside_by_series),
    ):
        for point in kind:
            since, index = point.ms - epoch, revisions[point.revision]
            grouped[point.series].append(point._replace(ms=since, revision=index))
    return Chart(
        epoch=epoch,
        axis=_suitable_axis(all_points),
        revisions=tuple(names[key][0] for key in revisions),
        branches=tuple(names[key][1] for key in revisions),
        subjects=tuple(names[key][2] for key in revisions),
        origins=tuple(ORIGINS.values()),
        least_points=MIN_POINTS,
        least_samples=MIN_INTERVAL_SAMPLES,
        most_points=MAX_POINTS,
        series=tuple(
            _chart_series(
                series,
                by_series[series.pk],
                branches_by_series[series.pk],
                set_aside_by_series[series.pk],
                epoch,
                environments,
                changes[series.pk],
                baselines.get(series.pk, ()),
                notes.get(series.pk, ()),
            )
            for series in shown
        ),
    )


def _suitable_axis(points: Sequence[_Point]) -> str:
    """Return the axis by revision if the revisions clump in time: by time, most points would lie
    above each other."""
    first: dict[int, int] = {}
    for point in points:
        first[point.revision] = min(point.ms, first.get(point.revision, point.ms))
    times = sorted(first.values())
    gaps = [later - earlier for earlier, later in pairwise(times)]
    return REVISION if len(gaps) > 1 and CLUMPED * median(gaps) < mean(gaps) else TIME


def _with_day_summaries(shown: Sequence[Series], points: list[_Point]) -> list[_Point]:
    """Return the points, those that stand for a day with its range (1 query, if there are any)."""
    rolled_up = {series.pk for series in shown if series.rolled_up}
    if not rolled_up:
        return points
    keys = [point.id for point in points if point.series in rolled_up]
    summaries = {pk: row for pk, *row in _fetch_rows(_SUMMARIES, [keys])}
    return [
        point._replace(**dict(zip(("day_points", "low", "high"), summary, strict=True)))
        if (summary := summaries.get(point.id))
        else point
        for point in points
    ]


def _chart_series(
    series: Series,
    points: Sequence[_Point],
    on_branches: Sequence[_Point],
    set_aside: Sequence[_Point],
    epoch: int,
    environments: Mapping[int, str],
    changes: Sequence[Change],
    baselines: tuple[BaselineRow, ...],
    notes: tuple[NoteRow, ...],
) -> ChartSeries:
    """Build a series; the points' ``ms`` are since the epoch, their ``revision`` is an index."""
    head = series_head(series)
    values = [point.value for point in points or on_branches or set_aside]
    middle = median(values) if values else 0.0
    scale = scale_of(series.unit, middle)
    standing = [change for change in changes if change.withdrawn_at is None]
    first_level = standing[0].before if standing else middle
    levels: list[tuple[int, float]] = []
    if len(points) >= MIN_POINTS:
        start = points[0].ms
        levels = [(start, first_level)]
        levels += [(max(_ms(change.at) - epoch, start), change.after) for change in standing]
    measured = [PointEnvironment(point.ms, environments[point.conditions]) for point in points]
    return build_row(
        ChartSeries,
        head,
        shown_unit=scale.unit,
        factor=scale.factor,
        points=series.points - series.branch_points - series.withdrawn,
        first_level=first_level,
        columns=_columns(points),
        branches=_columns(on_branches),
        set_aside=_columns(set_aside),
        levels=tuple(levels),
        changes=tuple(_change(change, series.unit, epoch) for change in changes),
        environment=environment_marks(series, measured),
        baselines=baselines,
        notes=notes,
    )


def _columns(points: Sequence[_Point]) -> Columns:
    return Columns(
        id=tuple(point.id for point in points),
        ms=tuple(point.ms for point in points),
        value=tuple(_round_7(point.value) for point in points),
        low=tuple(None if point.low is None else _round_7(point.low) for point in points),
        high=tuple(None if point.high is None else _round_7(point.high) for point in points),
        n=tuple(point.n for point in points),
        revision=tuple(point.revision for point in points),
        origin=tuple(_ORIGIN_INDICES[point.source] for point in points),
        day_points=tuple(point.day_points for point in points)
        if any(point.day_points for point in points)
        else (),
    )


def _change(change: Change, unit: str, epoch: int) -> Mapping[str, Any]:
    summary = change_summary(change, unit)
    return {
        "id": summary.id,
        "url": summary.url,
        "ms": _ms(change.at) - epoch,
        "datum": change.datum_id,
        "ratio": summary.ratio,
        "text": format_change(summary),
        "worse": summary.worse,
        "shown": effect_of(summary).is_shown,
        "withdrawn": summary.withdrawn,
        "cause": summary.cause,
        "revision": _short_revision(change.revision.name),
        "differs": difference_sentences(change),
        "alert": summary.alert,
        "alert_state": summary.alert_state,
    }


def _round_7(value: float) -> float:
    """Round to seven digits: finer than any interval, and half as long to send as seventeen."""
    return float(f"{value:.7g}")


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _short_revision(name: str) -> str:
    return name[:12] if len(name) == 40 else name


def encode_chart(chart: Chart) -> str:
    """Encode as JSON without spaces."""

    def columns(value: Any) -> Any:
        return _ms(value) if isinstance(value, datetime) else value.__dict__

    return json.dumps(chart, default=columns, separators=(",", ":"), allow_nan=False)
