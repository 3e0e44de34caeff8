"""The points of both sides: a few queries, however many series there are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from codegen_app.models import VALID
from codegen_app.selectors.compare_revisions.sides import ComparedSide
from scheduler.track.facts import CODE_FACTS, INSTRUCTIONS_DIGEST

MAX_POINTS = 50
"""Of a series on a side: the newest ones."""

WITH_SAMPLES = 4
"""Of so many points samples are read: of more their values are the samples."""

# Newest first within a series. One text for revisions and runs, so that each has its index.
_POINTS = """
SELECT series_id, id, value, low, high, n, conditions_id, source,
    CASE WHEN place <= %s THEN samples END
FROM (
    SELECT *, row_number() OVER (PARTITION BY series_id ORDER BY measured_at DESC, id DESC) AS place
    FROM codegen_app_datum AS datum WHERE {column} = ANY(%s) AND {valid}
) AS points
WHERE place <= %s ORDER BY series_id, place
"""
_SERIES = """
SELECT id, problem, own_problem_id, sizes, target, device_name, toolchain, metric, unit, better
FROM codegen_app_series WHERE id = ANY(%s)
"""
# Thousands of conditions have few environments and clocks, and each code of its own.
_CONDITIONS = """
SELECT id,
    jsonb_build_object(
        'driver', facts->'driver', 'runtime', facts->'runtime', 'host', facts->'host',
        'attributes', CASE jsonb_typeof(facts->'attributes') WHEN 'object'
            THEN (facts->'attributes') - %s::text[] END
    )::text,
    (facts->'clocks')::text,
    CASE jsonb_typeof(facts->'code_digest') WHEN 'string' THEN facts->>'code_digest' ELSE '' END,
    CASE jsonb_typeof(facts#>%s) WHEN 'string' THEN facts#>>%s ELSE '' END
FROM codegen_app_conditions WHERE id = ANY(%s)
"""
_FACTS = "SELECT id, facts FROM codegen_app_conditions WHERE id = ANY(%s)"
_GRAPHS = """
SELECT DISTINCT node.problem_id, graph.name
FROM codegen_app_templatenode AS node JOIN codegen_app_graph AS graph ON graph.id = node.graph_id
WHERE node.problem_id = ANY(%s) ORDER BY graph.name
"""


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """A point's columns."""

    id: int
    value: float
    low: float | None
    high: float | None
    n: int
    conditions: int
    source: str
    samples: Sequence[float] | None


@dataclass(frozen=True, slots=True)
class StoredSeries:
    """A series' columns."""

    id: int
    problem: str
    own_problem: int | None
    sizes: Mapping[str, int]
    target: str
    device: str
    toolchain: str
    metric: str
    unit: str
    better: str


@dataclass(frozen=True, slots=True)
class StoredConditions:
    """What of conditions decides whether points can be compared: the facts of the environment and
    the clocks as JSON texts, equal where they are; and the digests of the code, "" where there is
    none."""

    environment: str
    clocks: str | None
    code_digest: str
    instructions_digest: str


@dataclass(frozen=True)
class StoredSides:
    """Both sides by series, newest point first, and what their points refer to."""

    before: Mapping[int, Sequence[StoredPoint]]
    after: Mapping[int, Sequence[StoredPoint]]
    series: Mapping[int, StoredSeries]
    conditions: Mapping[int, StoredConditions]
    graphs: Mapping[int, Sequence[str]]


def load_sides(before: ComparedSide, after: ComparedSide) -> StoredSides:
    """All points of both sides, at most ``MOST_POINTS`` a series (5 queries)."""
    old, new = _points(before), _points(after)
    series = _series(old.keys() | new.keys())
    return StoredSides(old, new, series, _conditions(old, new), _graphs(series.values()))


def _points(side: ComparedSide) -> dict[int, list[StoredPoint]]:
    column, keys = ("run_id", [side.run]) if side.run else ("revision_id", list(side.keys))
    found: dict[int, list[StoredPoint]] = {}
    statement = _POINTS.format(column=column, valid=VALID.format(datum="datum"))
    for series, *columns in _rows(statement, [WITH_SAMPLES, keys, MAX_POINTS]):
        found.setdefault(series, []).append(StoredPoint(*columns))
    return found


def _series(keys: Iterable[int]) -> dict[int, StoredSeries]:
    return {
        key: StoredSeries(key, problem, own, json.loads(sizes), *others)
        for key, problem, own, sizes, *others in _rows(_SERIES, [list(keys)])
    }


def _conditions(*sides: Mapping[int, Sequence[StoredPoint]]) -> dict[int, StoredConditions]:
    keys = {point.conditions for side in sides for points in side.values() for point in points}
    instructions = ["attributes", INSTRUCTIONS_DIGEST]
    values = [sorted(CODE_FACTS), instructions, instructions, list(keys)]
    return {key: StoredConditions(*texts) for key, *texts in _rows(_CONDITIONS, values)}


def load_facts(conditions: Iterable[int]) -> dict[int, Mapping[str, Any]]:
    """All that is recorded, of a few conditions: what causes are looked for in (1 query)."""
    return {key: json.loads(text) for key, text in _rows(_FACTS, [list(conditions)])}


def _graphs(series: Iterable[StoredSeries]) -> dict[int, list[str]]:
    """The graphs that a problem is of, by its key."""
    found: dict[int, list[str]] = {}
    keys = {one.own_problem for one in series if one.own_problem is not None}
    for problem, name in _rows(_GRAPHS, [list(keys)]):
        found.setdefault(problem, []).append(name)
    return found


def _rows(statement: str, values: list[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())
