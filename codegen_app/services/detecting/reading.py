"""What the detector reads: in as many queries, however many series are looked at together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

import psycopg
from django.db import connection

from codegen_app.models import Baseline, Change, Series
from codegen_app.models.series import HIGHER
from codegen_app.services.detecting.replay import (
    KEPT,
    Known,
    Place,
    Stretch,
    is_measurement,
    moves,
    settings_of,
)

MOST_POINTS = 500
"""Of one series that are looked at in one turn, but for more of the very same moment."""

# How many points wait in each series, counted no further than a turn goes, and up to where that is.
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
_COLUMNS = "series_id, at, measured_at, id, value, revision_id, conditions_id"
_POINTS = f"""
SELECT found.* FROM unnest(%s::bigint[], %s::timestamptz[], %s::timestamptz[])
    AS asked(id, since, upto)
CROSS JOIN LATERAL (
    SELECT {_COLUMNS} FROM codegen_app_datum
    WHERE series_id = asked.id AND at >= asked.since AND at <= asked.upto
    UNION ALL (
        SELECT {_COLUMNS} FROM codegen_app_datum
        WHERE series_id = asked.id AND at < asked.since
            AND value > 0 AND value < 'Infinity'
        ORDER BY at DESC, measured_at DESC, id DESC LIMIT {KEPT}
    )
) AS found
"""  # noqa: S608 - our own names
# Clocks are read anew with each run: by themselves they make no other conditions. A group is one
# code object in one environment, where both are known.
_CONDITIONS = """
SELECT id, md5((facts - 'clocks')::text),
    CASE WHEN facts ? 'code_digest' AND (facts ? 'driver' OR facts ? 'runtime') THEN
        md5(jsonb_build_array(facts->'code_digest', facts->'driver', facts->'runtime',
            facts->'host', facts->'attributes')::text)
    ELSE '' END
FROM codegen_app_conditions WHERE id = ANY(%s)
"""


@dataclass(frozen=True)
class Asked:
    """A series with what there is to look at: ``points`` from ``since`` up to ``upto``."""

    series: Series
    since: datetime
    upto: datetime
    points: int


def waiting(rows: Sequence[Series], at_most: int) -> list[Asked]:
    """As many of the series as have so many points that wait, at least one."""
    since = [row.unchecked_from for row in rows]
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, [[row.pk for row in rows], since, MOST_POINTS])
        counts = {pk: (n, upto) for pk, n, upto in cursor.fetchall()}
    result: list[Asked] = []
    for row in rows:
        n, upto = counts[row.pk]
        assert row.unchecked_from is not None
        if result and sum(one.points for one in result) + n > at_most:
            break
        result.append(Asked(row, row.unchecked_from, upto or row.unchecked_from, n))
    return result


@dataclass(frozen=True)
class Look:
    """What is looked at of one series. ``live`` are the changes that the new points may disprove:
    those that a point from ``since`` on showed; ``is_moving`` says whether there may be others.
    """

    asked: Asked
    stretch: Stretch
    live: Sequence[Change]
    last: Change | None
    is_moving: bool = False


def looks(asked: Sequence[Asked]) -> list[Look]:
    """All that the detector needs of these series. Floors are learnt where something moves."""
    points = _points(asked)
    known = _changes(asked)
    baselines = _baselines(asked)
    found = [
        _look(one, points.get(one.series.pk, []), known.get(one.series.pk, []), baselines)
        for one in asked
    ]
    conditions = _Conditions()
    conditions.read(_ambiguous(found))
    found = [conditions.known_of(one) for one in found]
    moving = [moves(one.stretch) for one in found]
    conditions.read(
        place.conditions
        for one, does in zip(found, moving, strict=True)
        if does
        for place in one.stretch.places
    )
    return [
        conditions.grouped(one) if does else one for one, does in zip(found, moving, strict=True)
    ]


def whole(series: Series, least_effect: float | None, baselines: Sequence[datetime]) -> Stretch:
    """A series' whole history, as if it came at once."""
    ends = datetime.fromisoformat("9999-12-31T00:00:00+00:00")
    begins = datetime.fromisoformat("0001-01-02T00:00:00+00:00")
    places = _points([Asked(series, begins, ends, 0)]).get(series.pk, [])
    stretch = Stretch(
        places, 0, 0, series.better == HIGHER, settings_of(least_effect), baselines, {}, {}
    )
    conditions = _Conditions()
    conditions.read(place.conditions for place in places)
    return replace(stretch, same=conditions.same, groups=conditions.groups)


def _points(asked: Sequence[Asked]) -> dict[int, list[Place]]:
    """Of each series the points, in order, that are above 0."""
    rows: dict[int, list[Place]] = {}
    connection.ensure_connection()
    # Moments as text are read in Python, in more time than the detector takes; binary ones are not.
    with psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(
            _POINTS,
            [
                [one.series.pk for one in asked],
                [one.since for one in asked],
                [one.upto for one in asked],
            ],
            binary=True,
        )
        for series, *row in cursor.fetchall():
            place = Place(*row)
            if is_measurement(place.value):
                rows.setdefault(series, []).append(place)
    for places in rows.values():
        places.sort()
    return rows


def _changes(asked: Sequence[Asked]) -> dict[int, list[Change]]:
    rows: dict[int, list[Change]] = {}
    of = Change.objects.filter(series__in=[one.series.pk for one in asked], withdrawn_at=None)
    for change in of.order_by("series_id", "at", "pk"):
        rows.setdefault(change.series_id, []).append(change)
    return rows


def _baselines(asked: Sequence[Asked]) -> dict[int, list[datetime]]:
    rows: dict[int, list[datetime]] = {}
    of = Baseline.objects.filter(series__in=[one.series.pk for one in asked], removed_at=None)
    for series, at in of.order_by("at").values_list("series_id", "at"):
        rows.setdefault(series, []).append(at)
    return rows


def _look(
    asked: Asked,
    places: list[Place],
    changes: list[Change],
    baselines: Mapping[int, list[datetime]],
) -> Look:
    live = [one for one in changes if (one.shown_at or one.at) >= asked.since]
    settled = [one for one in changes if (one.shown_at or one.at) < asked.since]
    last = settled[-1] if settled else None
    first = next((n for n, one in enumerate(places) if one.at >= asked.since), len(places))
    split = next((n for n, one in enumerate(places) if last and one.pk == last.datum_id), None)
    rule = getattr(asked.series, "rule", None)
    stretch = Stretch(
        places=places,
        first=first,
        level=split or 0,
        higher_is_better=asked.series.better == HIGHER,
        settings=settings_of(rule.least_effect if rule else None),
        baselines=baselines.get(asked.series.pk, []),
        same={},
        groups={},
        last=Known(last.pk, split, last.n_before, last.n_after) if last else None,
    )
    return Look(asked, stretch, live, last)


def _ambiguous(found: Iterable[Look]) -> Iterable[int]:
    """Conditions that runs of one revision do not share: only of these it matters which differ."""
    for one in found:
        for left, right in pairwise(one.stretch.places):
            if left.revision == right.revision and left.conditions != right.conditions:
                yield left.conditions
                yield right.conditions


class _Conditions:
    """Which conditions are the same but for clocks; which are of one code and environment."""

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

    def known_of(self, look: Look) -> Look:
        return replace(look, stretch=replace(look.stretch, same=self.same))

    def grouped(self, look: Look) -> Look:
        return replace(look, stretch=replace(look.stretch, groups=self.groups), is_moving=True)
