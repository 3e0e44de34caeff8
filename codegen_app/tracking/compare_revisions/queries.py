"""Load the points of both sides in a few queries, however many series there are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from codegen_app.tracking.compare_revisions.sides import ComparedSide
from codegen_app.tracking.models import VALID
from scheduler.track.facts import CODE_FACTS, INSTRUCTIONS_DIGEST

MAX_POINTS = 50
"""The newest points of a series on a side."""

WITH_SAMPLES = 4
"""Samples are loaded for this many points: with more points their values are the samples."""

# Newest first within a series. Formatted separately for revisions and runs, so that each uses its
# index.
_POINTS = """
SELECT series_id, id, value, low, high, n, conditions_id, source, at,
    CASE WHEN place <= %s THEN samples END
FROM (
    SELECT *, row_number() OVER (PARTITION BY series_id ORDER BY measured_at DESC, id DESC) AS place
    FROM codegen_app_datum AS datum WHERE {column} = ANY(%s) AND {valid}
) AS points
WHERE place <= %s ORDER BY series_id, place
"""
# Both kinds of points are named, so that each index of histories is combined with the revisions'.
_POINTS_OF_SERIES = """
SELECT revision_id, id, value, low, high, n, conditions_id, source, at,
    CASE WHEN place <= %s THEN samples END
FROM (
    SELECT *,
        row_number() OVER (PARTITION BY revision_id ORDER BY measured_at DESC, id DESC) AS place
    FROM codegen_app_datum AS datum
    WHERE (series_id = %s AND is_trunk OR series_id = %s AND NOT is_trunk)
        AND revision_id = ANY(%s) AND {valid}
) AS points
WHERE place <= %s ORDER BY revision_id, place
""".format(valid=VALID.format(datum="datum"))  # noqa: S608 - our own names
_SERIES = """
SELECT id, problem, own_problem_id, sizes, target, device_name, toolchain, metric, unit, better,
    first_at, rolled_up_to
FROM codegen_app_series WHERE id = ANY(%s)
"""
# Thousands of conditions share few environments and clocks, but each has its own code.
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
    """The columns of a point."""

    id: int
    value: float
    low: float | None
    high: float | None
    n: int
    conditions: int
    source: str
    at: datetime
    samples: Sequence[float] | None


@dataclass(frozen=True, slots=True)
class StoredSeries:
    """The columns of a series. Of days up to ``rolled_up_to``, one point each is left."""

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
    first_at: datetime | None
    rolled_up_to: datetime | None


@dataclass(frozen=True, slots=True)
class StoredConditions:
    """The part of the conditions that decides whether points can be compared: the facts of the
    environment and the clocks as JSON texts, equal if these are equal; and the digests of the code,
    "" if there is none."""

    environment: str
    clocks: str | None
    code_digest: str
    instructions_digest: str


@dataclass(frozen=True)
class StoredSides:
    """Both sides by series, newest point first, with the rows that their points refer to, and
    the names of the graphs that use a problem."""

    before: Mapping[int, Sequence[StoredPoint]]
    after: Mapping[int, Sequence[StoredPoint]]
    series: Mapping[int, StoredSeries]
    conditions: Mapping[int, StoredConditions]
    graphs: Mapping[int, Sequence[str]]


def load_sides(before: ComparedSide, after: ComparedSide) -> StoredSides:
    """Load all points of both sides, at most ``MAX_POINTS`` per series (5 queries)."""
    old, new = _points(before), _points(after)
    series = {
        key: StoredSeries(key, problem, own_problem, json.loads(sizes), *others)
        for key, problem, own_problem, sizes, *others in fetch_rows(_SERIES, [list({*old, *new})])
    }
    points = (point for side in (old, new) for points in side.values() for point in points)
    conditions = load_conditions({point.conditions for point in points})
    problems = {row.own_problem for row in series.values() if row.own_problem is not None}
    graphs: dict[int, list[str]] = {}
    for problem, name in fetch_rows(_GRAPHS, [list(problems)]):
        graphs.setdefault(problem, []).append(name)
    return StoredSides(old, new, series, conditions, graphs)


def load_conditions(keys: Iterable[int]) -> dict[int, StoredConditions]:
    """Return the part of conditions that decides whether points can be compared (1 query; none
    without keys)."""
    unique_keys = list(set(keys))
    if not unique_keys:
        return {}
    instructions = ["attributes", INSTRUCTIONS_DIGEST]
    values = [sorted(CODE_FACTS), instructions, instructions, unique_keys]
    return {key: StoredConditions(*texts) for key, *texts in fetch_rows(_CONDITIONS, values)}


def _points(side: ComparedSide) -> dict[int, list[StoredPoint]]:
    column, keys = ("run_id", [side.run]) if side.run else ("revision_id", list(side.keys))
    found: dict[int, list[StoredPoint]] = {}
    statement = _POINTS.format(column=column, valid=VALID.format(datum="datum"))
    for series, *columns in fetch_rows(statement, [WITH_SAMPLES, keys, MAX_POINTS]):
        found.setdefault(series, []).append(StoredPoint(*columns))
    return found


def load_points_of_series(
    series: int, revisions: Iterable[int]
) -> dict[int, Sequence[StoredPoint]]:
    """Return the points of one series by revision, newest first, at most ``MAX_POINTS`` each (1
    query)."""
    found: dict[int, list[StoredPoint]] = {}
    values = [WITH_SAMPLES, series, series, list(revisions), MAX_POINTS]
    for revision, *columns in fetch_rows(_POINTS_OF_SERIES, values):
        found.setdefault(revision, []).append(StoredPoint(*columns))
    return dict(found)


def load_facts(conditions: Iterable[int]) -> dict[int, Mapping[str, Any]]:
    """Return all recorded facts of a few conditions, in which causes are searched (1 query)."""
    return {key: json.loads(text) for key, text in fetch_rows(_FACTS, [list(conditions)])}


def fetch_rows(statement: str, values: list[Any]) -> list[tuple[Any, ...]]:
    """Return all rows of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())
