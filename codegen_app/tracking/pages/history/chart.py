"""The data of a history's chart: columns, since a history has thousands of points."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from django.db import connection

from codegen_app.tracking.models import VALID, Change, Series
from codegen_app.tracking.pages.history.query import (
    BaselineRow,
    NoteRow,
    baselines_of,
    difference_sentences,
    notes_of,
)
from codegen_app.tracking.queries.environment_marks import Mark, PointEnvironment, environment_marks
from codegen_app.tracking.queries.series_summary import (
    MIN_POINTS,
    ORIGINS,
    ChangeSummary,
    change_summary,
    series_head,
)
from scheduler.stats.intervals import MIN_INTERVAL_SAMPLES
from scheduler.track.effect import effect_of, format_change
from scheduler.track.units import scale_of

MAX_POINTS = 5_000  # points of one series
MAX_POINTS_TOTAL = 12_000  # points of all series of a chart
POINTS_BEFORE, POINTS_AFTER = 60, 40  # points around a change in its own chart

_VALID = VALID.format(datum="datum")
# The latest valid points of each series up to a moment, oldest first; times in ms.
_POINTS = f"""
SELECT d.* FROM unnest(%(series)s::bigint[]) AS s(id) CROSS JOIN LATERAL (
    SELECT series_id, id, (extract(epoch FROM at) * 1000)::bigint AS ms, value, low, high, n,
        revision_id, conditions_id, source
    FROM codegen_app_datum AS datum
    WHERE series_id = s.id AND at <= %(until)s AND {_VALID} ORDER BY at DESC, id DESC LIMIT %(most)s
) AS d ORDER BY d.series_id, d.ms, d.id
"""  # noqa: S608 - our own names
_REVISIONS = "SELECT id, name, branch, repository FROM codegen_app_revision WHERE id = ANY(%s)"
# Fields that do not describe an environment stay in the database: resources are long.
_CONDITIONS = """
SELECT id, (facts - '{resources,config,kernel,source,source_digest,code_digest}'::text[])::text
FROM codegen_app_conditions WHERE id = ANY(%s)
"""
_FAR = datetime.fromisoformat("9999-12-31T00:00:00+00:00")


@dataclass(frozen=True)
class Columns:
    """Points of a series in order: ``ms`` since the chart's ``epoch``; ``revision`` is an index
    into the chart's list, ``origin`` one into its ``origins``; null for an unknown interval."""

    id: tuple[int, ...]
    ms: tuple[int, ...]
    value: tuple[float, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    n: tuple[int, ...]
    revision: tuple[int, ...]
    origin: tuple[int, ...]


@dataclass(frozen=True)
class ChartSeries:
    """One series. Values times ``factor`` are in ``shown_unit``; ``first_level`` is the reference
    of a relative scale; of ``points``, without withdrawn ones, the latest are included; ``levels``
    are the levels between changes, each with its start."""

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
    levels: tuple[tuple[int, float], ...]
    changes: tuple[Mapping[str, Any], ...]
    environment: tuple[Mark, ...]
    baselines: tuple[BaselineRow, ...]
    notes: tuple[NoteRow, ...]


@dataclass(frozen=True)
class Chart:
    """A chart of several series; ``revisions`` are their names in order of first appearance.
    ``low`` and ``high`` of fewer than ``least_samples`` are the range, else a 95% interval."""

    epoch: int
    revisions: tuple[str, ...]
    branches: tuple[str, ...]
    origins: tuple[str, ...]
    least_points: int
    least_samples: int
    most_points: int
    series: tuple[ChartSeries, ...]


def history_chart(series: Sequence[int], until: datetime | None = None) -> Chart:
    """Return points, changes and marks of series by number (7 queries); at most ``MAX_POINTS``
    points each, the latest up to ``until``. Raises ``Series.DoesNotExist`` if none exists."""
    found = Series.objects.in_bulk(series)
    shown = [found[key] for key in dict.fromkeys(series) if key in found]
    if not shown:
        raise Series.DoesNotExist
    most = min(MAX_POINTS, MAX_POINTS_TOTAL // len(shown))
    rows = _points([one.pk for one in shown], until or _FAR, most)
    return _chart(shown, rows)


def change_chart(pk: int) -> Chart:
    """Return the points around a change (7 queries). Raises ``Change.DoesNotExist``."""
    change = Change.objects.select_related("series", "datum").get(pk=pk)
    rows = _fetch_rows(_AROUND, {"series": change.series_id, "at": change.at})
    return _chart([change.series], rows)


_AROUND = f"""
SELECT * FROM (
    (SELECT series_id, id, (extract(epoch FROM at) * 1000)::bigint AS ms, value, low, high, n,
        revision_id, conditions_id, source FROM codegen_app_datum AS datum
     WHERE series_id = %(series)s AND at < %(at)s AND {_VALID}
     ORDER BY at DESC, id DESC LIMIT {POINTS_BEFORE})
    UNION ALL
    (SELECT series_id, id, (extract(epoch FROM at) * 1000)::bigint AS ms, value, low, high, n,
        revision_id, conditions_id, source FROM codegen_app_datum AS datum
     WHERE series_id = %(series)s AND at >= %(at)s AND {_VALID}
     ORDER BY at, id LIMIT {POINTS_AFTER})
) AS d ORDER BY d.ms, d.id
"""  # noqa: S608 - our own numbers

_Row = tuple[Any, ...]


def _points(series: Sequence[int], until: datetime, most: int) -> list[_Row]:
    return _fetch_rows(_POINTS, {"series": list(series), "until": until, "most": most})


def _fetch_rows(statement: str, values: Any) -> list[_Row]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def _chart(shown: Sequence[Series], rows: Sequence[_Row]) -> Chart:
    """Build the chart from the points; everything else is loaded (5 queries)."""
    keys = [one.pk for one in shown]
    places = {key: place for place, key in enumerate(dict.fromkeys(row[7] for row in rows))}
    names = {pk: (name, branch) for pk, name, branch, _ in _fetch_rows(_REVISIONS, [list(places)])}
    environments = _environments({row[8] for row in rows})
    changes = _changes(keys)
    baselines, notes = baselines_of(keys), notes_of(keys)
    epoch = min((row[2] for row in rows), default=0)
    by_series: dict[int, list[_Row]] = {key: [] for key in keys}
    for row in rows:
        by_series[row[0]].append(row)
    ordered = sorted(places, key=lambda key: places[key])
    return Chart(
        epoch=epoch,
        revisions=tuple(_short_revision(names[key][0]) for key in ordered),
        branches=tuple(names[key][1] for key in ordered),
        origins=tuple(ORIGINS.values()),
        least_points=MIN_POINTS,
        least_samples=MIN_INTERVAL_SAMPLES,
        most_points=MAX_POINTS,
        series=tuple(
            _chart_series(
                one,
                by_series[one.pk],
                _ChartContext(epoch, places, environments),
                changes.get(one.pk, []),
                (baselines.get(one.pk, ()), notes.get(one.pk, ())),
            )
            for one in shown
        ),
    )


@dataclass(frozen=True)
class _ChartContext:
    """The data that all series of a chart refer to."""

    epoch: int
    places: Mapping[int, int]
    environments: Mapping[int, str]


def _chart_series(
    series: Series,
    rows: Sequence[_Row],
    shared: _ChartContext,
    changes: Sequence[Change],
    remarks: tuple[tuple[BaselineRow, ...], tuple[NoteRow, ...]],
) -> ChartSeries:
    head = series_head(series)
    values = [row[3] for row in rows]
    middle = median(values) if values else 0.0
    scale = scale_of(series.unit, middle)
    origin = {name: place for place, name in enumerate(ORIGINS)}
    standing = [one for one in changes if one.withdrawn_at is None]
    measured = [
        PointEnvironment(row[2] - shared.epoch, shared.environments[row[8]]) for row in rows
    ]
    return ChartSeries(
        id=series.pk,
        url=head.url,
        name=head.name,
        problem=head.problem,
        device=head.device,
        unit=series.unit,
        shown_unit=scale.unit,
        factor=scale.factor,
        better=series.better,
        points=series.points - series.withdrawn,
        is_enough=head.is_enough,
        generated=head.generated,
        emulated=head.emulated,
        first_level=standing[0].before if standing else middle,
        columns=Columns(
            id=tuple(row[1] for row in rows),
            ms=tuple(row[2] - shared.epoch for row in rows),
            value=tuple(map(_round_7, values)),
            low=tuple(None if row[4] is None else _round_7(row[4]) for row in rows),
            high=tuple(None if row[5] is None else _round_7(row[5]) for row in rows),
            n=tuple(row[6] for row in rows),
            revision=tuple(shared.places[row[7]] for row in rows),
            origin=tuple(origin[row[9]] for row in rows),
        ),
        levels=tuple(_levels(standing, rows, middle, shared.epoch)),
        changes=tuple(_change(one, series.unit, shared.epoch) for one in changes),
        environment=environment_marks(series, measured),
        baselines=remarks[0],
        notes=remarks[1],
    )


def _levels(
    changes: Sequence[Change], rows: Sequence[_Row], middle: float, epoch: int
) -> Iterable[tuple[int, float]]:
    """Yield the level from the first point and from each change on; nothing if the series is too
    short."""
    if len(rows) < MIN_POINTS:
        return
    yield rows[0][2] - epoch, changes[0].before if changes else middle
    for one in changes:
        yield max(_ms(one.at), rows[0][2]) - epoch, one.after


def _change(change: Change, unit: str, epoch: int) -> Mapping[str, Any]:
    one: ChangeSummary = change_summary(change, unit)
    return {
        "id": one.id,
        "url": one.url,
        "ms": _ms(change.at) - epoch,
        "datum": change.datum_id,
        "ratio": one.ratio,
        "text": format_change(one),
        "worse": one.worse,
        "shown": effect_of(one).is_shown,
        "withdrawn": one.withdrawn,
        "cause": one.cause,
        "revision": _short_revision(change.revision.name),
        "differs": difference_sentences(change),
        "alert": one.alert,
        "alert_state": one.alert_state,
    }


def _changes(series: Sequence[int]) -> dict[int, list[Change]]:
    rows = Change.objects.filter(series__in=series).order_by("at", "pk")
    found: dict[int, list[Change]] = {}
    for row in rows.select_related("revision", "previous", "alert")[:2_000]:
        found.setdefault(row.series_id, []).append(row)
    return found


def _environments(conditions: Iterable[int]) -> dict[int, str]:
    return dict(_fetch_rows(_CONDITIONS, [list(conditions)]))


def _round_7(value: float) -> float:
    """Round to seven digits: finer than any interval, and half as long to send as seventeen."""
    return float(f"{value:.7g}")


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _short_revision(name: str) -> str:
    return name[:12] if len(name) == 40 else name


def encode_chart(chart: Chart) -> str:
    """Encode as JSON without spaces."""
    return json.dumps(chart, default=_json_default, separators=(",", ":"), allow_nan=False)


def _json_default(value: Any) -> Any:
    if isinstance(value, datetime):
        return int(value.timestamp() * 1000)
    return value.__dict__
