"""The two sides of changes, as ``scheduler.track`` needs them: points with all their records.

For Kiln's own points the rows, while they exist, know more than was recorded: other builds of the
same problem that were not chosen, and the instructions of the code object.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

from django.db import connection

from codegen_app.kernels.models import Build
from codegen_app.platform import artifacts
from codegen_app.platform.files import StorageAwayError
from codegen_app.tracking.models import Change, Conditions, Series
from codegen_app.tuning.models import Candidate
from scheduler.errors import MachineError, UserError
from scheduler.track.code_object import code_object
from scheduler.track.facts import configuration_of, point_of
from scheduler.track.resources import target_of
from scheduler.track.sides import NEAREST_COUNT, Alternative, CodeObject, Point, Side

LISTING_BYTES = 4 << 20
"""Longer listings are not read: their code objects are compared only by digest."""

# A point that was not withdrawn; for a change of a machine also those that were set aside with it.
_COUNTS = """NOT EXISTS (
    SELECT FROM codegen_app_withdrawal AS withdrawal
    WHERE withdrawal.datum_id = datum.id AND withdrawal.restored_at IS NULL
        AND COALESCE(withdrawal.alert_id, 0) <> COALESCE(change.alert_id, -1)
)"""
# The points on both sides that the change's figures are computed from.
_POINTS = f"""
SELECT asked.change, found.after, found.at, found.measured_at, found.id, found.value, found.low,
    found.high, found.n, revision.name, found.conditions_id, found.build_id, found.result_id
FROM unnest(%s::bigint[], %s::integer[], %s::integer[]) AS asked(change, n_before, n_after)
JOIN codegen_app_change AS change ON change.id = asked.change
JOIN codegen_app_datum AS first ON first.id = change.datum_id
CROSS JOIN LATERAL (
    (SELECT TRUE AS after, datum.* FROM codegen_app_datum AS datum
        WHERE datum.series_id = change.series_id AND datum.is_trunk AND datum.at >= change.at
            AND (datum.at, datum.measured_at, datum.id) >= (first.at, first.measured_at, first.id)
            AND datum.value > 0 AND datum.value < 'Infinity' AND {_COUNTS}
        ORDER BY datum.at, datum.measured_at, datum.id LIMIT asked.n_after)
    UNION ALL
    (SELECT FALSE AS after, datum.* FROM codegen_app_datum AS datum
        WHERE datum.series_id = change.series_id AND datum.is_trunk AND datum.at <= change.at
            AND (datum.at, datum.measured_at, datum.id) < (first.at, first.measured_at, first.id)
            AND datum.value > 0 AND datum.value < 'Infinity' AND {_COUNTS}
        ORDER BY datum.at DESC, datum.measured_at DESC, datum.id DESC LIMIT asked.n_before)
) AS found
JOIN codegen_app_revision AS revision ON revision.id = found.revision_id
"""  # noqa: S608 - our own names


class _Row(NamedTuple):
    change: int
    after: bool
    at: datetime
    measured_at: datetime
    pk: int
    value: float
    low: float | None
    high: float | None
    n: int
    revision: str
    conditions: int
    build: int | None
    result: int | None


def change_sides(changes: Sequence[Change]) -> dict[int, tuple[Side, Side]]:
    """Return the sides before and after by the changes' keys, in a number of queries that does not
    grow with them; each change's ``series`` is loaded. A change whose points are gone has none."""
    with connection.cursor() as cursor:
        columns = (
            [getattr(row, name) for row in changes] for name in ("pk", "n_before", "n_after")
        )
        cursor.execute(_POINTS, list(columns))
        rows = [_Row(*values) for values in cursor.fetchall()]
    rows.sort(key=attrgetter("at", "measured_at", "pk"))
    sides: dict[int, tuple[list[_Row], list[_Row]]] = {}
    for row in rows:
        sides.setdefault(row.change, ([], []))[row.after].append(row)
    for before, _ in sides.values():
        before.reverse()  # the nearest first
    recorded = _Recorded(
        [row for both in sides.values() for side in both for row in side[:NEAREST_COUNT]]
    )
    series = {change.pk: change.series for change in changes}
    return {
        pk: (_side(before, series[pk], recorded), _side(after, series[pk], recorded))
        for pk, (before, after) in sides.items()
        if before and after
    }


def _side(rows: Sequence[_Row], series: Series, recorded: _Recorded) -> Side:
    """Return a side. The conditions of points further away are not needed: they are unknown, which
    is stated once."""
    points: list[Point] = []
    for row in rows[:NEAREST_COUNT]:
        point = _point(row, series, recorded.facts.get(row.conditions, {}))
        code = recorded.code.get(row.build or 0, point.code)
        points.append(replace(point, code=code, others=recorded.others.get(row.result or 0, {})))
    if len(rows) > NEAREST_COUNT:
        blank = _point(rows[NEAREST_COUNT], series, {})
        for row in rows[NEAREST_COUNT:]:
            low, high = (row.value if bound is None else bound for bound in (row.low, row.high))
            points.append(
                replace(blank, value=row.value, low=low, high=high, n=row.n, revision=row.revision)
            )
    return Side(tuple(points))


def _point(row: _Row, series: Series, facts: Mapping[str, Any]) -> Point:
    return point_of(
        facts,
        value=row.value,
        low=row.low,
        high=row.high,
        n=row.n,
        revision=row.revision,
        target=series.target,
        device=series.device_name,
        toolchain=series.toolchain,
    )


class _Recorded:
    """What was recorded with points, and what our own rows add: by conditions, result and build."""

    def __init__(self, rows: Collection[_Row]) -> None:
        conditions = Conditions.objects.in_bulk({row.conditions for row in rows})
        self.facts = {pk: row.facts for pk, row in conditions.items()}
        self.others = _alternatives({row.result for row in rows if row.result is not None})
        builds = {row.build for row in rows if row.build is not None}
        self.code: dict[int, CodeObject] = {}
        by_digest: dict[str, CodeObject | None] = {}  # each listing is read once
        for build in Build.objects.select_related("listing").filter(pk__in=builds):
            digest = build.code_digest
            if digest and by_digest.get(digest) is None:
                by_digest[digest] = _read_code_object(build)
            if (code := by_digest.get(digest)) is not None:
                self.code[build.pk] = code


def _alternatives(results: set[int]) -> dict[int, dict[str, Alternative]]:
    """Return for each result the other builds of the same task with the same compiler, by
    configuration."""
    if not results:
        return {}
    chosen = Candidate.objects.filter(result__in=results, build__isnull=False)
    tasks = {
        task: (result, toolchain)
        for task, result, toolchain in chosen.values_list(
            "task_id", "result_id", "build__toolchain_version"
        )
    }
    alternatives: dict[int, dict[str, Alternative]] = {}
    built = Candidate.objects.filter(task__in=tasks, build__isnull=False).exclude(
        build__code_digest=""
    )
    for task, toolchain, config, source, code in built.values_list(
        "task_id",
        "build__toolchain_version",
        "kernel__config",
        "kernel__source_digest",
        "build__code_digest",
    ):
        result, chosen_toolchain = tasks[task]
        if toolchain == chosen_toolchain:
            text = configuration_of({"config": config})
            alternatives.setdefault(result, {})[text] = Alternative(source, code)
    return alternatives


def _read_code_object(build: Build) -> CodeObject | None:
    """Return None if the listing cannot be read: the point's own records are still known."""
    target, listing = target_of(build.target), build.listing
    if target is None or listing is None or listing.size_bytes > LISTING_BYTES:
        return None
    try:
        text = artifacts.read(listing).decode("utf-8", "replace")
        return code_object(target, build.code_digest, build.resources, text)
    except StorageAwayError:  # it exists: the change is explained once it can be read
        raise
    except (MachineError, UserError, OSError):
        return None
