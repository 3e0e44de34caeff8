"""Machines that measure series in turn with others: one that changes moves no level.

``scheduler.track.shared_series`` finds it. It reads the latest points of every shared series, so it
runs as a periodic job and not with each point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from django.db import connection, transaction
from django.utils import timezone

from codegen_app.platform.advisory_lock import LockClass, lock_transaction
from codegen_app.tracking.alerting.machines import Candidate, Machine, SharedMove, raise_alerts
from codegen_app.tracking.models import VALID, Change, Datum, Series
from codegen_app.tracking.models.series import HIGHER
from scheduler.track import causes, machines, ratios
from scheduler.track.facts import point_of
from scheduler.track.shared_series import host_shifts
from scheduler.track.sides import NEAREST_COUNT, Side

_RECENT_POINTS = 20_000
_WINDOW = 120
_BATCH = 500
_MAX_SIDE = 30
_IDLE = timedelta(days=1)

# Series whose latest points come from several hosts.
_SHARED = """
SELECT datum.series_id
FROM codegen_app_datum AS datum
JOIN codegen_app_conditions AS conditions ON conditions.id = datum.conditions_id
WHERE datum.id > (SELECT max(id) FROM codegen_app_datum) - %s AND datum.is_trunk
    AND (SELECT max(measured_at) FROM codegen_app_datum WHERE id = (
        SELECT max(id) FROM codegen_app_datum)) > %s
GROUP BY datum.series_id HAVING count(DISTINCT conditions.facts->>'host') > 1
ORDER BY datum.series_id
"""
_POINTS = """
SELECT asked.id, points.* FROM unnest(%s::bigint[]) AS asked(id)
CROSS JOIN LATERAL (
    SELECT array_agg(latest.id ORDER BY latest.at, latest.id),
        array_agg(latest.value ORDER BY latest.at, latest.id),
        array_agg(COALESCE(conditions.facts->>'host', '') ORDER BY latest.at, latest.id),
        array_agg(md5(jsonb_build_array(conditions.facts->'driver', conditions.facts->'runtime',
            conditions.facts->'attributes', conditions.facts->'toolchain_version',
            conditions.facts->'flags')::text) ORDER BY latest.at, latest.id)
    FROM (
        SELECT id, at, value, conditions_id FROM codegen_app_datum AS datum
        WHERE series_id = asked.id AND is_trunk AND value > 0 AND value < 'Infinity' AND {valid}
        ORDER BY at DESC FETCH FIRST {window} ROWS WITH TIES
    ) AS latest
    JOIN codegen_app_conditions AS conditions ON conditions.id = latest.conditions_id
) AS points
""".format(valid=VALID.format(datum="datum"), window=_WINDOW)  # noqa: S608 - our own names


@dataclass(frozen=True)
class _Shift:
    """A host's change in one series: the keys of its points on both sides, the nearest first on
    both, and the ratios of their values to the other hosts' values next to them. ``level`` is that
    of its values since."""

    series: int
    host: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    ratios_before: tuple[float, ...]
    ratios_after: tuple[float, ...]
    level: float
    errors: float


@transaction.atomic
def check_shared_series() -> int:
    """Raise alerts of hosts that changed in series that others measure as well; return how many (a
    query for the series, one for each ``_BATCH`` of them, and those of the alerts)."""
    lock_transaction(LockClass.MACHINES)
    with connection.cursor() as cursor:
        cursor.execute(_SHARED, [_RECENT_POINTS, timezone.now() - _IDLE])
        keys = [pk for (pk,) in cursor.fetchall()]
    batches = (keys[start : start + _BATCH] for start in range(0, len(keys), _BATCH))
    shifts = [shift for batch in batches for shift in _shifts(batch)]
    if not shifts:
        return 0
    hosts = sorted({shift.host for shift in shifts})
    return raise_alerts([Machine(host, "") for host in hosts], _shared_moves(shifts))


def _shifts(series: Sequence[int]) -> Iterator[_Shift]:
    """Yield the changes of hosts in these series (1 query). A host whose environment or compiler
    changed with its values is none."""
    with connection.cursor() as cursor:
        cursor.execute(_POINTS, [list(series)])
        rows = cursor.fetchall()
    for pk, keys, values, hosts, environments in rows:
        if keys is None:
            continue
        array = np.asarray(values, dtype=np.float64)
        for shift in host_shifts(array, hosts):
            start, end = max(0, shift.first - _MAX_SIDE), shift.first + _MAX_SIDE
            before = shift.places[start : shift.first][::-1].tolist()
            after = shift.places[shift.first : end].tolist()
            if len({environments[place] for place in (before[0], *after)}) > 1:
                continue
            yield _Shift(
                series=pk,
                host=shift.host,
                before=tuple(keys[place] for place in before),
                after=tuple(keys[place] for place in after),
                ratios_before=tuple(shift.ratios[start : shift.first].tolist()),
                ratios_after=tuple(shift.ratios[shift.first : end].tolist()),
                level=float(np.median(array[after])),
                errors=shift.errors,
            )


def _shared_moves(shifts: Sequence[_Shift]) -> list[SharedMove]:
    """Return the moves, with the levels and the readings of both sides (2 queries)."""
    keys = {
        key
        for shift in shifts
        for key in (*shift.before[:NEAREST_COUNT], *shift.after[:NEAREST_COUNT], shift.after[-1])
    }
    rows = Datum.objects.filter(pk__in=keys).select_related("conditions", "revision")
    points = rows.defer("samples").in_bulk()
    series = Series.objects.in_bulk({shift.series for shift in shifts})
    return [
        _shared_move(-number, shift, series[shift.series], points)
        for number, shift in enumerate(shifts, start=1)
    ]


def _shared_move(key: int, shift: _Shift, series: Series, points: dict[int, Datum]) -> SharedMove:
    before, after = (
        [points[pk] for pk in side[:NEAREST_COUNT]] for side in (shift.before, shift.after)
    )
    first, previous = after[0], before[0]
    # The earlier level as it would be now: the code may have changed for all hosts since.
    ratio = float(np.median(shift.ratios_after) / np.median(shift.ratios_before))
    low, high = _interval(shift)
    explanation = asdict(causes.explain(_side(before, series), _side(after, series)))
    row = Change(
        series=series,
        datum=first,
        at=first.at,
        shown_at=points[shift.after[-1]].at,
        revision=first.revision,
        previous=previous.revision,
        before=shift.level / ratio,
        after=shift.level,
        low=low,
        high=high,
        n_before=len(shift.before),
        n_after=len(shift.after),
        errors=shift.errors,
        worse=(ratio < 1) is (series.better == HIGHER),
        explanation=explanation,
        explained_at=timezone.now(),
    )
    times = [one.measured_at for one in (*before[:2], *after[:2])]
    move = machines.Move(key, series.pk, row.ratio, min(times), first.measured_at, max(times))
    candidate = Candidate(
        pk=key,
        series=series.pk,
        device_name=series.device_name,
        at=row.at,
        shown_at=row.shown_at,
        before=row.before,
        after=row.after,
        worse=row.worse,
        found_at=timezone.now(),
        hosts=[shift.host],
        readings=explanation["readings"],
    )
    return SharedMove(candidate, move, row)


def _side(points: Sequence[Datum], series: Series) -> Side:
    return Side(
        tuple(
            point_of(
                point.conditions.facts,
                value=point.value,
                low=point.low,
                high=point.high,
                n=point.n,
                revision=point.revision.name,
                target=series.target,
                device=series.device_name,
                toolchain=series.toolchain,
            )
            for point in points
        )
    )


def _interval(shift: _Shift) -> tuple[float | None, float | None]:
    """Return the 95% interval of after / before; None with too few values."""
    if min(len(shift.before), len(shift.after)) < ratios.MIN_RATIO_SAMPLES:
        return None, None
    sides: list[Any] = [
        ratios.medians([np.asarray(side)]) for side in (shift.ratios_before, shift.ratios_after)
    ]
    if sides[0].errors[0] == 0 or sides[1].errors[0] == 0:  # all values of a side are equal
        return None, None
    lows, highs = ratios.ratios(sides[0], sides[1], floor=0.0).interval()
    return float(lows[0]), float(highs[0])
