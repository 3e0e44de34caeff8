"""Storage of points in their series: all points of a batch or none."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from operator import itemgetter
from typing import Any

from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone

from codegen_app.tracking.models import (
    Batch,
    Conditions,
    Datum,
    Repository,
    Revision,
    Series,
    Source,
)
from codegen_app.tracking.services import trunk
from codegen_app.workers import queue
from scheduler.results.points.model import Point, RevisionKey, digest_of

_LOCK = """
SELECT id FROM codegen_app_series WHERE id = ANY(string_to_array(%s, ',')::bigint[])
ORDER BY id FOR UPDATE
"""
_COLUMNS = (
    *("series_id", "at", "measured_at", "value", "low", "high", "n", "samples"),
    *("revision_id", "is_trunk", "conditions_id", "source", "batch_id"),
    *("kernel_id", "build_id", "run_id", "result_id"),
)
# Columns of a revision that are stored once they are known.
_LATER_MOMENTS = ("at", "merge_base_at")
_LATER_COLUMNS = (*_LATER_MOMENTS, "merge_base", "pull_request", "subject", "author")
_COPY = f"COPY {Datum._meta.db_table} ({', '.join(_COLUMNS)}) FROM STDIN"
_NULL = "\\N"
_COPY_ROWS = 500
# A series' summary of its points, and the time from which a detector has to check it. The times
# span the trunk's points, if there are any.
_COUNT = """
UPDATE codegen_app_series AS series SET
    points = series.points + new.points,
    branch_points = series.branch_points + new.branch_points,
    not_positive = series.not_positive + new.not_positive,
    first_at = CASE
        WHEN new.has_trunk = (series.points > series.branch_points)
            THEN LEAST(series.first_at, new.first_at)
        WHEN new.has_trunk THEN new.first_at ELSE series.first_at END,
    last_at = CASE
        WHEN new.has_trunk = (series.points > series.branch_points)
            THEN GREATEST(series.last_at, new.last_at)
        WHEN new.has_trunk THEN new.last_at ELSE series.last_at END,
    unchecked_from = LEAST(series.unchecked_from, new.unchecked_from),
    needs_rules = series.needs_rules OR (
        new.has_trunk AND (new.last_at >= series.last_at OR series.points = series.branch_points)
        AND (new.repository, new.path) IS DISTINCT FROM (series.repository, series.path)
    )
FROM (
    SELECT *, points > branch_points AS has_trunk
    FROM json_to_recordset(%s::json)
        AS batch(id bigint, points integer, branch_points integer, not_positive integer,
            first_at timestamptz, last_at timestamptz, unchecked_from timestamptz,
            repository text, path text)
) AS new
WHERE series.id = new.id
"""
_BY_DIGEST = "SELECT digest, id FROM {table} WHERE digest = ANY(string_to_array(%s, ','))"
_STORED_NOW = """
WITH due AS (
    SELECT id FROM codegen_app_revision WHERE id = ANY(string_to_array(%s, ',')::bigint[])
        AND (last_stored_at IS NULL OR last_stored_at < now() - interval '1 hour')
    ORDER BY id FOR NO KEY UPDATE
)
UPDATE codegen_app_revision AS revision SET last_stored_at = now()
FROM due WHERE revision.id = due.id
"""
_REVISIONS = """
SELECT revision.id, repository, name, branch, is_trunk, revision.at, merge_base_at, merge_base,
    pull_request, subject, author
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
    points are at or below 0, in which no changes are found, since changes are ratios.
    ``branch_points`` are of other branches than the trunk, in which no changes are found either."""

    points: int
    series: int
    new_series: int
    not_positive: int = 0
    branch_points: int = 0


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
    revision_keys = {id(point.revision): point.revision for point in points}.values()
    revisions = _store_revisions(revision_keys, trunk.hold_repositories(revision_keys))
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
        revision = revisions[_identity(point.revision)]
        at = (origin.at if origin else None) or revision.at or point.measured_at
        digest = series_digests[id(point.series)]
        span = spans.get(digest) or spans.setdefault(digest, _Span(point))
        span.add(point, at, is_positive=point.value > 0, is_trunk=revision.is_trunk)
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
            revision = revisions[_identity(point.revision)]
            lines.append(
                f"{series[series_digests[id(point.series)]]}\t{iso(at)}\t{iso(point.measured_at)}"
                f"\t{point.value!r}\t{low}\t{high}\t{point.n}\t{samples}"
                f"\t{revision.pk}\t{'t' if revision.is_trunk else 'f'}"
                f"\t{conditions[facts_digests[id(point.conditions)]]}\t{shared_text}\n"
            )
            if len(lines) == _COPY_ROWS:  # stored while the next lines are written
                copy.write("".join(lines))
                lines.clear()
        copy.write("".join(lines))
    queue.notify(queue.Kind.DETECT)
    return StoreSummary(
        points=len(points),
        series=len(spans),
        new_series=new_series,
        not_positive=sum(span.not_positive for span in spans.values()),
        branch_points=sum(span.branch_points for span in spans.values()),
    )


@dataclass
class _Span:
    """The added points of one series: an example, of the trunk the latest, their number, and the
    first and last time of the trunk's points and of all."""

    example: Point
    first_at: datetime | None = None
    last_at: datetime | None = None
    points: int = 0
    branch_points: int = 0
    not_positive: int = 0

    def add(self, point: Point, at: datetime, *, is_positive: bool, is_trunk: bool) -> None:
        """Count a point. The first point of the trunk replaces the times of branches."""
        if not is_trunk:
            self.branch_points += 1
        elif self.points == self.branch_points:
            self.first_at = self.last_at = at
        self.points += 1
        if is_trunk or self.points == self.branch_points:
            self.not_positive += is_trunk and not is_positive
            self.first_at = min(self.first_at or at, at)
            self.last_at = max(self.last_at or at, at)
            if at == self.last_at:
                self.example = point

    @property
    def columns(self) -> dict[str, object]:
        """Return the columns of a series that sum up its points."""
        assert self.first_at is not None
        assert self.last_at is not None
        first_at, has_trunk = self.first_at.isoformat(), self.points > self.branch_points
        return {
            "points": self.points,
            "branch_points": self.branch_points,
            "not_positive": self.not_positive,
            "first_at": first_at,
            "last_at": self.last_at.isoformat(),
            "unchecked_from": first_at if has_trunk else None,
        }

    @property
    def rule_facts(self) -> dict[str, str]:
        """Return what rules by patterns may depend on, besides the identity of the series."""
        path = str(self.example.conditions.get("path", ""))
        return {"repository": self.example.revision.repository, "path": path}


@dataclass(frozen=True)
class _StoredRevision:
    """A revision's row."""

    pk: int
    at: datetime | None
    is_trunk: bool


def _fetch(statement: str, value: str) -> list[tuple[Any, ...]]:
    """Return the rows for values passed as one text: ten thousand parameters, or an array, take
    longer to write and read than to look up."""
    with connection.cursor() as cursor:
        cursor.execute(statement, [value])
        return list(cursor.fetchall()) if cursor.description else []


def _identity(key: RevisionKey) -> tuple[str, str, str]:
    return key.repository, key.name, key.branch


def _store_revisions(
    keys: Iterable[RevisionKey], repositories: Mapping[str, Repository]
) -> dict[tuple[str, str, str], _StoredRevision]:
    """Return the row of each revision, inserted if new. What is known of its commit is what
    was stored first."""
    stated: dict[tuple[str, str, str], dict[str, Any]] = {}
    for key in keys:
        known = stated.setdefault(_identity(key), dict.fromkeys(_LATER_COLUMNS))
        for name in _LATER_COLUMNS:
            known[name] = known[name] or getattr(key, name) or None
    rows = [
        {
            "repository": repository,
            "name": name,
            "branch": branch,
            "is_trunk": repositories[repository].is_trunk(branch),
            **{name: row[name] or "" for name in _LATER_COLUMNS},
            **{name: row[name].isoformat() if row[name] else None for name in _LATER_MOMENTS},
        }
        for (repository, name, branch), row in sorted(stated.items(), key=itemgetter(0))
    ]
    _insert_new(Revision, rows)
    result: dict[tuple[str, str, str], _StoredRevision] = {}
    identities = [
        {"repository": repository, "name": name, "branch": branch}
        for repository, name, branch in stated
    ]
    found = sorted(_fetch(_REVISIONS, json.dumps(identities)), key=itemgetter(0))
    for pk, repository, name, branch, is_trunk, *columns in found:
        identity = repository, name, branch
        stored = dict(zip(_LATER_COLUMNS, columns, strict=True))
        added = {
            column: value
            for column, value in stated[identity].items()
            if value and not stored[column]
        }
        if added:  # unless another batch was first
            missing = {column: stored[column] for column in added}
            Revision.objects.filter(pk=pk, **missing).update(**added)
        at = stored["at"] or stated[identity]["at"]
        result[identity] = _StoredRevision(pk, at, is_trunk)
    if on_branches := sorted(row.pk for row in result.values() if not row.is_trunk):
        _fetch(_STORED_NOW, ",".join(map(str, on_branches)))
    return result


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
        }
    known, inserted = _get_or_insert(Series, rows)
    if known:
        _fetch(_LOCK, ",".join(map(str, known.values())))
        counts = [
            {"id": pk, **spans[digest].columns, **spans[digest].rule_facts}
            for digest, pk in known.items()
        ]
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
