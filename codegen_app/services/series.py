"""Points become rows of series: all of a batch or none, each of our own results once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone

from codegen_app.models import Batch, Conditions, Datum, Revision, Series, Source
from scheduler.results.points.model import Point, RevisionKey, SeriesKey, digest_of

_LOCK = "SELECT id FROM codegen_app_series WHERE id = ANY(%s) ORDER BY id FOR UPDATE"
_COLUMNS = (
    *("series_id", "at", "measured_at", "value", "low", "high", "n", "samples"),
    *("revision_id", "conditions_id", "source", "batch_id"),
    *("kernel_id", "build_id", "run_id", "result_id"),
)
_COPY = f"COPY {Datum._meta.db_table} ({', '.join(_COLUMNS)}) FROM STDIN"
# What a series says of its points, and from where on a detector has to look.
_COUNT = """
UPDATE codegen_app_series AS series SET
    points = series.points + new.points,
    first_at = LEAST(series.first_at, new.first_at),
    last_at = GREATEST(series.last_at, new.last_at),
    unchecked_from = LEAST(series.unchecked_from, new.first_at)
FROM unnest(%s::bigint[], %s::integer[], %s::timestamptz[], %s::timestamptz[])
    AS new(id, points, first_at, last_at)
WHERE series.id = new.id
"""


@dataclass(frozen=True)
class Own:
    """The rows that a point of ours comes from."""

    problem_id: int
    kernel_id: int
    build_id: int
    run_id: int | None
    result_id: int


@dataclass(frozen=True)
class _Revision:
    """A revision's row."""

    pk: int
    at: datetime | None


@dataclass(frozen=True)
class Stored:
    """How many points, of how many series, of which so many are new."""

    points: int
    series: int
    new_series: int


@transaction.atomic
def store(
    points: Sequence[Point], source: Source, batch: Batch | None = None, own: Own | None = None
) -> Stored:
    """Add points to their series, in a number of queries that does not grow with them.

    Rows that many batches share are always inserted, and locked, in the same order: two batches
    wait for each other and never in a circle. ``own`` goes with every point.
    """
    digests = _Digests()
    revisions = _revisions({point.revision for point in points})
    conditions = _conditions([point.conditions for point in points], digests)
    series, new = _series(points, own, digests)
    _lock(series.values())
    rows = []
    spans: dict[int, tuple[int, datetime, datetime]] = {}
    links = (own.kernel_id, own.build_id, own.run_id, own.result_id) if own else (None,) * 4
    for point in points:
        revision = revisions[_identity(point.revision)]
        at = revision.at or point.measured_at
        key = series[digests.of_series(point.series)]
        count, first, last = spans.get(key, (0, at, at))
        spans[key] = count + 1, min(first, at), max(last, at)
        rows.append(
            (
                *(key, at, point.measured_at, point.value, point.low, point.high, point.n),
                *(list(point.samples) or None, revision.pk),
                *(conditions[digests.of_conditions(point.conditions)], source.value),
                *(batch.pk if batch else None, *links),
            )
        )
    _insert(rows)
    _count(spans)
    return Stored(len(rows), len(spans), new)


def _insert(rows: Iterable[Sequence[object]]) -> None:
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        for row in rows:
            copy.write_row(row)


def _count(spans: Mapping[int, tuple[int, datetime, datetime]]) -> None:
    counts, firsts, lasts = zip(*spans.values(), strict=True)
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [list(spans), list(counts), list(firsts), list(lasts)])


def _lock(keys: Iterable[int]) -> None:
    _selected(_LOCK, list(keys))


def _selected(statement: str, values: list[Any]) -> list[tuple[Any, ...]]:
    """The rows of values that are one parameter: ten thousand parameters take longer to read than
    to look up."""
    with connection.cursor() as cursor:
        cursor.execute(statement, [values])
        return list(cursor.fetchall())


class _Digests:
    """Digests of what many points share, each made once."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[object, str]] = {}

    def of_series(self, key: SeriesKey) -> str:
        return self._once(key, lambda: key.digest)

    def of_conditions(self, facts: Mapping[str, object]) -> str:
        return self._once(facts, lambda: digest_of(dict(facts)))

    def _once(self, of: object, make: object) -> str:
        known = self._made.get(id(of))
        if known is None:
            known = self._made[id(of)] = of, make()  # type: ignore[operator]
        return known[1]


def _identity(key: RevisionKey) -> tuple[str, str, str]:
    return key.repository, key.name, key.branch


def _revisions(keys: Iterable[RevisionKey]) -> dict[tuple[str, str, str], _Revision]:
    """The rows; when a revision was made is what was said of it first."""
    moments: dict[tuple[str, str, str], datetime | None] = {}
    for key in keys:
        moments[_identity(key)] = moments.get(_identity(key)) or key.at
    late: list[tuple[int, datetime | None]] = []
    rows = [(*identity, moments[identity]) for identity in sorted(moments)]
    _add_missing(Revision, ("repository", "name", "branch", "at"), rows)
    columns = "id, repository, name, branch, at"
    statement = f"SELECT {columns} FROM {Revision._meta.db_table} WHERE name = ANY(%s)"  # noqa: S608
    names = sorted({name for _, name, _ in moments})
    found: dict[tuple[str, str, str], _Revision] = {}
    for pk, repository, name, branch, at in _selected(statement, names):
        identity = repository, name, branch
        if identity in moments:
            found[identity] = _Revision(pk, at or moments[identity])
            if at is None and moments[identity] is not None:
                late.append((pk, moments[identity]))
    for pk, moment in sorted(late):
        Revision.objects.filter(pk=pk, at=None).update(at=moment)
    return found


def _conditions(all_facts: Iterable[Mapping[str, object]], digests: _Digests) -> dict[str, int]:
    facts = {digests.of_conditions(one): dict(one) for one in all_facts}
    rows = [(digest, json.dumps(facts[digest])) for digest in sorted(facts)]
    _add_missing(Conditions, ("digest", "facts"), rows)
    return _by_digest(Conditions, facts)


def _series(
    points: Iterable[Point], own: Own | None, digests: _Digests
) -> tuple[dict[str, int], int]:
    firsts: dict[str, Point] = {}
    for point in points:
        firsts.setdefault(digests.of_series(point.series), point)
    known = _by_digest(Series, firsts)
    missing = sorted(set(firsts) - set(known))
    if missing:
        rows = [_row(digest, firsts[digest], own) for digest in missing]
        _add_missing(Series, _SERIES_COLUMNS, rows)
        known |= _by_digest(Series, missing)
    return known, len(missing)


def _by_digest(model: type[Model], digests: Iterable[str]) -> dict[str, int]:
    table = model._meta.db_table
    statement = f"SELECT digest, id FROM {table} WHERE digest = ANY(%s)"  # noqa: S608 - our name
    return dict(_selected(statement, list(digests)))


_SERIES_COLUMNS = (
    *("digest", "problem", "own_problem_id", "sizes", "target", "device_name", "toolchain"),
    *("metric", "unit", "better", "points", "created_at"),
)


def _row(digest: str, point: Point, own: Own | None) -> tuple[object, ...]:
    key = point.series
    return (
        *(digest, key.problem, own.problem_id if own else None, json.dumps(dict(key.sizes))),
        *(key.target, key.device, key.toolchain, key.metric, key.unit, point.better),
        *(0, timezone.now()),
    )


def _add_missing(
    model: type[Model], columns: Sequence[str], rows: Sequence[Sequence[object]]
) -> None:
    """Insert those of the rows that are not there yet, by one statement of one text."""
    kinds = {field.column: field for field in model._meta.concrete_fields}
    types = [kinds[column].db_type(connection) for column in columns]
    # An array of JSON would be taken apart: it goes as text.
    sent = ["text" if kind == "jsonb" else str(kind).partition("(")[0] for kind in types]
    arrays = ", ".join(f"%s::{kind}[]" for kind in sent)
    chosen = ", ".join(f"{c}::{kind}" for c, kind in zip(columns, types, strict=True))
    names = ", ".join(columns)
    statement = (
        f"INSERT INTO {model._meta.db_table} ({names}) SELECT {chosen}"  # noqa: S608 - our own names
        f" FROM unnest({arrays}) AS new({names}) ON CONFLICT DO NOTHING"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [list(column) for column in zip(*rows, strict=True)])
