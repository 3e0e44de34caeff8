"""The detector at work: series whose points nobody has looked at, and the changes in them.

``Series.unchecked_from`` is the queue, ``Change`` rows are the result; both are written in one
transaction under the lock of the series' row. So any number of workers look at once, a killed one
leaves nothing half done, and points that arrive meanwhile wait for the next turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import F, Func, QuerySet, Value
from django.utils import timezone

from codegen_app.models import Series
from codegen_app.services import queue
from codegen_app.services.detector import cadence, queries
from codegen_app.services.detector.replay import DetectedChange, replay
from codegen_app.services.detector.writer import Writer

MAX_SERIES = 200
MAX_POINTS = 600
"""In one turn: whoever adds points to one of its series waits until it is over."""


def unchecked_series() -> QuerySet[Series]:
    """Series with points that no detector has looked at."""
    return Series.objects.filter(unchecked_from__isnull=False)


@transaction.atomic
def detect_changes() -> int:
    """Look at some series that wait; at how many (0: none waits that nobody else looks at)."""
    rows = list(
        unchecked_series()
        .select_related("rule")
        .defer("sizes")
        .select_for_update(skip_locked=True, of=("self",))
        .order_by("unchecked_from", "pk")[:MAX_SERIES]
    )
    if not rows:
        return 0
    asked = queries.pending_series(rows, MAX_POINTS)
    now, writer = timezone.now(), Writer()
    for one in queries.detection_inputs(asked):
        found, again = replay(one.stretch, is_moving=one.is_moving)
        writer.add(one, found, again, _stale_at(one, now))
    writer.write()
    return len(asked)


def recheck(series: Series, since: datetime | None = None) -> None:
    """Look at a series again from a moment on (None: all of it), for a rule or a baseline changed.

    Call it in the transaction of that; a worker is told once it is committed. Changes that are no
    longer found are withdrawn.
    """
    start = since or series.first_at
    if start is None:
        return  # no points, no changes
    earliest = Func(F("unchecked_from"), Value(start), function="LEAST")  # of what is not null
    Series.objects.filter(pk=series.pk).update(unchecked_from=earliest)
    queue.notify(queue.Kind.DETECT)


def dry_run(
    series: Series,
    least_effect: float | None,
    baselines: Sequence[datetime] = (),
    since: datetime | None = None,
) -> list[DetectedChange]:
    """The changes of a whole history (or of what is since a moment) if that were its threshold and
    these its baselines; nothing is written. As the detector finds them, whenever they came."""
    found = replay(queries.full_history(series, least_effect, sorted(baselines), since))[0]
    return [one for one in found if since is None or one.at >= since]


def _stale_at(one: queries.DetectionInput, now: datetime) -> datetime | None:
    rule = getattr(one.asked.series, "rule", None)
    places = one.stretch.places
    if not len(places):
        return None
    set_for_it = rule.stale_after if rule else None
    return cadence.stale_at(places.last_measured_at, places.hours, set_for_it, now)
