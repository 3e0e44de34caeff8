"""The detector's runs: series with unchecked points, and the changes in them.

``Series.unchecked_from`` is the queue, ``Change`` rows are the result; both are written in one
transaction under the lock of the series' row. So any number of workers run at once, a killed one
leaves nothing half done, and points that arrive meanwhile wait for the next run.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import F, Func, QuerySet, Value
from django.utils import timezone

from codegen_app.tracking.detector import cadence, queries, set_aside, suspicion
from codegen_app.tracking.detector.replay import DetectedChange, replay
from codegen_app.tracking.detector.writer import Writer
from codegen_app.tracking.models import Series
from codegen_app.tracking.rules import resolution
from codegen_app.tracking.rules.settings import RULES_OF_SERIES, series_settings
from codegen_app.workers import queue

MAX_SERIES = 200
MAX_POINTS = 600
"""Limit of one run: adding points to one of its series waits until the run ends."""


def unchecked_series() -> QuerySet[Series]:
    """Return series with points that no detector has checked."""
    return Series.objects.filter(unchecked_from__isnull=False)


@transaction.atomic
def detect_changes() -> int:
    """Check some waiting series; return how many (0: none waits, or others are checking them)."""
    rows = list(
        unchecked_series()
        .select_related(*RULES_OF_SERIES)
        .defer("sizes")
        .select_for_update(skip_locked=True, of=("self",))
        .order_by("unchecked_from", "pk")[:MAX_SERIES]
    )
    if not rows:
        return 0
    if unmatched := [row for row in rows if row.needs_rules]:
        resolution.resolve(unmatched)
    pending = queries.pending_series(rows, MAX_POINTS)
    if set_aside.has_machines():
        keys, since, upto = zip(
            *((row.series.pk, row.since, row.upto) for row in pending), strict=True
        )
        set_aside.set_aside(keys, since, upto)
    now, writer = timezone.now(), Writer()
    inputs = queries.detection_inputs(pending)
    windows = [series_input.window for series_input in inputs]
    replays = [replay(row.window, is_moving=row.is_moving) for row in inputs]
    steps = suspicion.suspected(windows, [changes for changes, _ in replays], now)
    for series_input, window, (changes, updated), step in zip(
        inputs, windows, replays, steps, strict=True
    ):
        stale_at = None
        if points := window.points:
            stale_after = series_settings(series_input.pending.series).stale_after
            last_measured_at = max(
                points.last_measured_at,
                series_input.pending.last_measured_at or points.last_measured_at,
            )
            stale_at = cadence.stale_at(last_measured_at, points.hours, stale_after, now)
        writer.add(series_input, changes, updated, stale_at, step)
    writer.write()
    return len(pending)


def recheck(series: Series, since: datetime | None = None) -> None:
    """Check a series again since a moment (None: all of it), after its rule or baseline changed.

    Call it in the same transaction; a worker is notified once it is committed. Changes that are no
    longer found are withdrawn.
    """
    start = since or series.first_at
    if start is None:
        return  # no points, no changes
    earliest = Func(F("unchecked_from"), Value(start), function="LEAST")  # LEAST ignores NULL
    Series.objects.filter(pk=series.pk).update(unchecked_from=earliest)
    queue.notify(queue.Kind.DETECT)


def dry_run(
    series: Series,
    least_effect: float | None,
    baselines: Sequence[datetime] = (),
    since: datetime | None = None,
) -> list[DetectedChange]:
    """Return the changes of a whole history (or since a moment) for this threshold and these
    baselines; nothing is written. They are what the detector finds, in any order of arrival.
    """
    window = queries.full_history(series, least_effect, sorted(baselines), since)
    changes, _ = replay(window)
    return [change for change in changes if since is None or change.at >= since]
