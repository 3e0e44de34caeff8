"""Storage of points in their series: all points of a batch or none."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone

from codegen_app.tracking.models import Batch, Conditions, Datum, Revision, Series, Source
from codegen_app.workers import queue
from scheduler.results.points.model import Point, RevisionKey, digest_of

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
class PointOrigin:
    """The rows that our own points come from; a run and a result if they have them. ``at`` is their
    place in the history if it differs from revision and measurement: for a build that is measured
    again, the place of the original point."""

    problem_id: int
    kernel_id: int
    build_id: int
    run_id: int | None = None
    result_id: int | None = None
    at: datetime | None = None


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
    origin: PointOrigin | None = None,
) -> StoreSummary:
    """Add points to their series, in a number of queries that does not grow with the points.

    Rows that many batches share are always inserted, and locked, in the same order, so that two
    batches never deadlock. ``origin`` applies to every point. A worker is notified once they are
    committed.
    """
    revisions = _store_revisions({point.revision for point in points})
    # Points share few keys and conditions: the digest of each object is computed once.
    keys = {id(point.series): point.series for point in points}
    series_digests = {address: key.digest for address, key in keys.items()}
    all_facts = {id(point.conditions): dict(point.conditions) for point in points}
    facts_digests = {address: digest_of(facts) for address, facts in all_facts.items()}
    facts_by_digest = {facts_digests[address]: facts for address, facts in all_facts.items()}
    known, inserted = _get_or_insert(
        Conditions, {key: {"facts": facts} for key, facts in facts_by_digest.items()}
    )
    conditions = known | inserted

    spans: dict[str, _Span] = {}
    times: list[datetime] = []
    for point in points:
        _, revision_at = revisions[_identity(point.revision)]
        at = (origin.at if origin else None) or revision_at or point.measured_at
        span = spans.setdefault(series_digests[id(point.series)], _Span(point, at, at))
        span.points += 1
        span.not_positive += point.value <= 0
        span.first_at, span.last_at = min(span.first_at, at), max(span.last_at, at)
        times.append(at)
    series, new_series = _store_series(spans, origin)

    links = (origin.kernel_id, origin.build_id, origin.run_id, origin.result_id) if origin else ()
    shared = (source.value, batch.pk if batch else None, *(links or (None,) * 4))
    shared_text = "\t".join(_NULL if value is None else str(value) for value in shared)
    iso = cache(datetime.isoformat)  # points share few times
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        lines: list[str] = []
        for point, at in zip(points, times, strict=True):
            # Numbers and times need no escaping.
            low, high = (_NULL if end is None else repr(end) for end in (point.low, point.high))
            samples = f"{{{repr(list(point.samples))[1:-1]}}}" if point.samples else _NULL
            lines.append(
                f"{series[series_digests[id(point.series)]]}\t{iso(at)}\t{iso(point.measured_at)}"
                f"\t{point.value!r}\t{low}\t{high}\t{point.n}\t{samples}"
                f"\t{revisions[_identity(point.revision)][0]}"
                f"\t{conditions[facts_digests[id(point.conditions)]]}\t{shared_text}\n"
            )
            if len(lines) == _COPY_ROWS:  # stored while the next lines are written
                copy.write("".join(lines))
                lines.clear()
        copy.write("".join(lines))
    queue.notify(queue.Kind.DETECT)
    not_positive = sum(span.not_positive for span in spans.values())
    return StoreSummary(len(points), len(spans), new_series, not_positive)


@dataclass
class _Span:
    """The added points of one series: an example, the first and last time, and the number."""

    example: Point
    first_at: datetime
    last_at: datetime
    points: int = 0
    not_positive: int = 0

    @property
    def columns(self) -> dict[str, object]:
        """Return the columns of a series that sum up its points."""
        return {
            "points": self.points,
            "not_positive": self.not_positive,
            "first_at": self.first_at.isoformat(),
            "last_at": self.last_at.isoformat(),
        }


def _fetch(statement: str, value: str) -> list[tuple[Any, ...]]:
    """Return the rows for values passed as one text: ten thousand parameters, or an array, take
    longer to write and read than to look up."""
    with connection.cursor() as cursor:
        cursor.execute(statement, [value])
        return list(cursor.fetchall()) if cursor.description else []


def _identity(key: RevisionKey) -> tuple[str, str, str]:
    return key.repository, key.name, key.branch


def _store_revisions(
    keys: Iterable[RevisionKey],
) -> dict[tuple[str, str, str], tuple[int, datetime | None]]:
    """Return the primary key and the time of each revision, inserted if new; a revision's time is
    the one that was stored first."""
    times: dict[tuple[str, str, str], datetime | None] = {}
    for key in keys:
        times[_identity(key)] = times.get(_identity(key)) or key.at
    rows = [
        {
            "repository": repository,
            "name": name,
            "branch": branch,
            "at": at.isoformat() if at else None,
        }
        for (repository, name, branch), at in sorted(times.items())
    ]
    _insert_new(Revision, rows)
    stored = {
        (repository, name, branch): (pk, at)
        for pk, repository, name, branch, at in _fetch(_REVISIONS, json.dumps(rows))
    }
    untimed = ((pk, identity) for identity, (pk, at) in stored.items() if at is None)
    for pk, identity in sorted(untimed):
        if times[identity] is not None:
            Revision.objects.filter(pk=pk, at=None).update(at=times[identity])
    return {identity: (pk, at or times[identity]) for identity, (pk, at) in stored.items()}


def _store_series(
    spans: Mapping[str, _Span], origin: PointOrigin | None
) -> tuple[dict[str, int], int]:
    """Return the primary keys of the series by digest: known ones are locked and updated, new ones
    are created from these points; also return how many are new."""
    now = timezone.now().isoformat()
    rows: dict[str, dict[str, object]] = {}
    for digest, span in spans.items():
        key = span.example.series
        rows[digest] = {
            **{"problem": key.problem, "sizes": dict(key.sizes), "target": key.target},
            **{"device_name": key.device, "toolchain": key.toolchain},
            **{"metric": key.metric, "unit": key.unit, "better": span.example.better},
            **{"own_problem_id": origin.problem_id if origin else None, "created_at": now},
            **span.columns,
            "unchecked_from": span.first_at.isoformat(),
        }
    known, inserted = _get_or_insert(Series, rows)
    if known:
        _fetch(_LOCK, ",".join(map(str, known.values())))
        counts = [{"id": pk, **spans[digest].columns} for digest, pk in known.items()]
        _fetch(_COUNT, json.dumps(counts))
    return known | inserted, len(inserted)


def _get_or_insert(
    model: type[Model], rows: Mapping[str, Mapping[str, object]]
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the keys of the rows that exist and of those that are inserted now, by digest.
    ``rows`` are the other columns by digest."""
    known = _by_digest(model, rows)
    missing = sorted(rows.keys() - known.keys())
    inserted = _insert_new(model, [{"digest": digest, **rows[digest]} for digest in missing])
    # Another transaction may have inserted some meanwhile.
    return known | _by_digest(model, [key for key in missing if key not in inserted]), inserted


def _by_digest(model: type[Model], digests: Iterable[str]) -> dict[str, int]:
    text = ",".join(digests)
    return dict(_fetch(_BY_DIGEST.format(table=model._meta.db_table), text)) if text else {}


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
    return dict(_fetch(statement, json.dumps(rows)))
