"""Points become rows of series: all points of a batch or none, each of our own results once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone

from codegen_app.tracking.models import Batch, Conditions, Datum, Revision, Series, Source
from codegen_app.workers import queue
from scheduler.results.points.model import Point, RevisionKey, SeriesKey, digest_of

_LOCK = """
SELECT id FROM codegen_app_series WHERE id = ANY(string_to_array(%s, ',')::bigint[])
ORDER BY id FOR UPDATE
"""
_COLUMNS = (
    *("series_id", "at", "measured_at", "value", "low", "high", "n", "samples"),
    *("revision_id", "conditions_id", "source", "batch_id"),
    *("kernel_id", "build_id", "run_id", "result_id"),
)
_COPY = f"COPY {Datum._meta.db_table} ({', '.join(_COLUMNS)}) FROM STDIN"
_NULL = "\\N"
_COPY_ROWS = 500
# A series' summary of its points, and the time from which a detector has to check it.
_COUNT = """
UPDATE codegen_app_series AS series SET
    points = series.points + new.points,
    not_positive = series.not_positive + new.not_positive,
    first_at = LEAST(series.first_at, new.first_at),
    last_at = GREATEST(series.last_at, new.last_at),
    unchecked_from = LEAST(series.unchecked_from, new.first_at)
FROM json_to_recordset(%s::json)
    AS new(id bigint, points integer, not_positive integer,
        first_at timestamptz, last_at timestamptz)
WHERE series.id = new.id
"""
_BY_DIGEST = "SELECT digest, id FROM {table} WHERE digest = ANY(string_to_array(%s, ','))"
_REVISIONS = """
SELECT revision.id, repository, name, branch, revision.at
FROM json_to_recordset(%s::json) AS new(repository text, name text, branch text)
JOIN codegen_app_revision AS revision USING (repository, name, branch)
"""


@dataclass(frozen=True)
class PointSource:
    """The rows that our own points come from; a run and a result if they have them. ``at`` is their
    place in the history if it differs from revision and measurement: for a build that is measured
    again, the place of the original point."""

    problem_id: int
    kernel_id: int
    build_id: int
    run_id: int | None
    result_id: int | None
    at: datetime | None = None


@dataclass(frozen=True)
class _Revision:
    """A revision's row."""

    pk: int
    at: datetime | None


@dataclass(frozen=True)
class StoreSummary:
    """How many points were stored, of how many series, and how many series are new; and how many
    points are at or below 0, in which no changes are found, since changes are ratios."""

    points: int
    series: int
    new_series: int
    not_positive: int = 0


@transaction.atomic
def store(
    points: Sequence[Point],
    source: Source,
    batch: Batch | None = None,
    own: PointSource | None = None,
) -> StoreSummary:
    """Add points to their series, in a number of queries that does not grow with the points.

    Rows that many batches share are always inserted, and locked, in the same order, so that two
    batches never deadlock. ``own`` applies to every point. A worker is notified once they are
    committed.
    """
    digests = _Digests()
    revisions = _revisions({point.revision for point in points})
    conditions = _conditions([point.conditions for point in points], digests)
    spans: dict[str, _Span] = {}
    placed: list[_PlacedPoint] = []
    for point in points:
        revision = revisions[_identity(point.revision)]
        digest, at = digests.of_series(point.series), _history_time(point, revision, own)
        _extend(spans, digest, point, at)
        placed.append((point, digest, at, revision.pk))
    keys, new = _series(spans, own)
    texts = _CopyRows(source, batch, own)
    _insert(
        texts.row(
            point, at, keys[digest], revision, conditions[digests.of_conditions(point.conditions)]
        )
        for point, digest, at, revision in placed
    )
    queue.notify(queue.Kind.DETECT)
    return StoreSummary(
        len(points), len(spans), new, sum(one.not_positive for one in spans.values())
    )


# A point, its series' digest, its place in the history, its revision's key.
_PlacedPoint = tuple[Point, str, datetime, int]


def _history_time(point: Point, revision: _Revision, own: PointSource | None) -> datetime:
    """Return the point's place in the history."""
    return (own.at if own else None) or revision.at or point.measured_at


@dataclass
class _Span:
    """The added points of one series: one of them, their number, first and last time."""

    one: Point
    points: int
    first_at: datetime
    last_at: datetime
    not_positive: int = 0


def _extend(spans: dict[str, _Span], digest: str, point: Point, at: datetime) -> None:
    span = spans.get(digest)
    if span is None:
        span = spans[digest] = _Span(point, 0, at, at)
    span.points += 1
    span.not_positive += point.value <= 0
    span.first_at, span.last_at = min(span.first_at, at), max(span.last_at, at)


class _CopyRows:
    """Rows as COPY reads them. All columns are numbers and times, which need no escaping; times are
    few, so each is formatted once."""

    def __init__(self, source: Source, batch: Batch | None, own: PointSource | None) -> None:
        links = (own.kernel_id, own.build_id, own.run_id, own.result_id) if own else (None,) * 4
        ends = (source.value, batch.pk if batch else None, *links)
        self._end = "\t".join(_NULL if one is None else str(one) for one in ends)
        self._moments: dict[datetime, str] = {}

    def row(self, point: Point, at: datetime, series: int, revision: int, conditions: int) -> str:
        """Return a point's line; the keys are those of its rows."""
        low, high = (_NULL if one is None else repr(one) for one in (point.low, point.high))
        samples = f"{{{repr(list(point.samples))[1:-1]}}}" if point.samples else _NULL
        return (
            f"{series}\t{self._moment(at)}\t{self._moment(point.measured_at)}"
            f"\t{point.value!r}\t{low}\t{high}\t{point.n}"
            f"\t{samples}\t{revision}\t{conditions}\t{self._end}\n"
        )

    def _moment(self, moment: datetime) -> str:
        text = self._moments.get(moment)
        if text is None:
            text = self._moments[moment] = moment.isoformat()
        return text


def _insert(rows: Iterator[str]) -> None:
    """Insert rows in parts: the database stores one part while the next is written here."""
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        while part := "".join(islice(rows, _COPY_ROWS)):
            copy.write(part)


def _count(spans: Mapping[int, _Span]) -> None:
    new = [{"id": key, **_counts(span)} for key, span in spans.items()]
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [json.dumps(new)])


def _counts(span: _Span) -> dict[str, object]:
    return {
        "points": span.points,
        "not_positive": span.not_positive,
        "first_at": span.first_at.isoformat(),
        "last_at": span.last_at.isoformat(),
    }


def _select(statement: str, value: str) -> list[tuple[Any, ...]]:
    """Return the rows for values passed as one text: ten thousand parameters, or an array, take
    longer to write and read than to look up."""
    with connection.cursor() as cursor:
        cursor.execute(statement, [value])
        return list(cursor.fetchall())


class _Digests:
    """Cached digests of values that many points share."""

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
    """Return the rows; a revision's time is the one that was stored first."""
    moments: dict[tuple[str, str, str], datetime | None] = {}
    for key in keys:
        moments[_identity(key)] = moments.get(_identity(key)) or key.at
    late: list[tuple[int, datetime | None]] = []
    rows = [
        {"repository": repository, "name": name, "branch": branch, "at": _iso(moment)}
        for (repository, name, branch), moment in sorted(moments.items(), key=lambda one: one[0])
    ]
    _insert_new(Revision, rows)
    found: dict[tuple[str, str, str], _Revision] = {}
    for pk, *identity, at in _select(_REVISIONS, json.dumps(rows)):
        repository, name, branch = identity
        stated = moments[repository, name, branch]
        found[repository, name, branch] = _Revision(pk, at or stated)
        if at is None and stated is not None:
            late.append((pk, stated))
    for pk, moment in sorted(late):
        Revision.objects.filter(pk=pk, at=None).update(at=moment)
    return found


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _conditions(all_facts: Iterable[Mapping[str, object]], digests: _Digests) -> dict[str, int]:
    facts = {digests.of_conditions(one): dict(one) for one in all_facts}
    known = _by_digest(Conditions, facts)
    missing = sorted(facts.keys() - known.keys())
    return known | _insert_or_get(
        Conditions, [{"digest": one, "facts": facts[one]} for one in missing]
    )


def _series(spans: Mapping[str, _Span], own: PointSource | None) -> tuple[dict[str, int], int]:
    """Return the keys of the series: known ones are locked and updated, new ones are created from
    these points; also return how many are new."""
    known = _by_digest(Series, spans)
    missing = sorted(spans.keys() - known.keys())
    now = timezone.now().isoformat()
    rows = [_row(digest, spans[digest], own, now) for digest in missing]
    made = _insert_new(Series, rows)
    known |= _by_digest(Series, [one for one in missing if one not in made])
    if known:
        _select(_LOCK, ",".join(map(str, known.values())))
        _count({key: spans[digest] for digest, key in known.items()})
    return known | made, len(missing)


def _by_digest(model: type[Model], digests: Iterable[str]) -> dict[str, int]:
    text = ",".join(digests)
    statement = _BY_DIGEST.format(table=model._meta.db_table)
    return dict(_select(statement, text)) if text else {}


def _row(digest: str, span: _Span, own: PointSource | None, now: str) -> dict[str, object]:
    key = span.one.series
    return {
        **{"digest": digest, "problem": key.problem, "sizes": dict(key.sizes)},
        **{"target": key.target, "device_name": key.device, "toolchain": key.toolchain},
        **{"metric": key.metric, "unit": key.unit, "better": span.one.better},
        **{"own_problem_id": own.problem_id if own else None, "created_at": now},
        **_counts(span),
        "unchecked_from": span.first_at.isoformat(),
    }


def _insert_or_get(model: type[Model], rows: Sequence[Mapping[str, object]]) -> dict[str, int]:
    """Insert the rows that do not exist yet; return the keys of all by their digests."""
    made = _insert_new(model, rows)
    return made | _by_digest(
        model, [str(one["digest"]) for one in rows if one["digest"] not in made]
    )


def _insert_new(model: type[Model], rows: Sequence[Mapping[str, object]]) -> dict[str, int]:
    """Insert the rows that do not exist yet, by one statement with one text. Return the keys of
    inserted rows by digest, if the rows have digests."""
    if not rows:
        return {}
    kinds = {field.column: field for field in model._meta.concrete_fields}
    names = ", ".join(rows[0])
    typed = ", ".join(f"{name} {kinds[name].db_type(connection)}" for name in rows[0])
    returned = "RETURNING digest, id" if "digest" in rows[0] else ""
    statement = (
        f"INSERT INTO {model._meta.db_table} ({names}) SELECT {names}"  # noqa: S608 - our own names
        f" FROM json_to_recordset(%s::json) AS new({typed}) ON CONFLICT DO NOTHING {returned}"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [json.dumps(rows)])
        return dict(cursor.fetchall()) if returned else {}
