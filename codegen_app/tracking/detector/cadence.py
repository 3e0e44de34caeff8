"""How often points of a series come, and when they are missing."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import pairwise

MIN_GAPS = 8
"""Minimum number of gaps between hours with measurements for a rhythm."""

MIN_ALLOWED_GAP = timedelta(days=1)
GAP_FACTOR = 3


def active_hours(moments: Iterable[datetime]) -> list[int]:
    """Return the hours with measurements, in order."""
    return sorted({int(moment.timestamp()) // 3600 for moment in moments})


def allowed_gap(hours: Iterable[int]) -> timedelta | None:
    """Return how long a series may be without a new point: three times the gap that nine of ten of
    its gaps do not exceed, and at least a day. None if it has too few gaps.

    ``hours`` are the hours with measurements, in order. Gaps lie between them, so that the runs of
    one night count once, and a single pause (a holiday) has little weight.
    """
    gaps = sorted(later - earlier for earlier, later in pairwise(hours))
    if len(gaps) < MIN_GAPS:
        return None
    return max(MIN_ALLOWED_GAP, GAP_FACTOR * timedelta(hours=gaps[(len(gaps) - 1) * 9 // 10]))


def stale_at(
    last: datetime, hours: Iterable[int], stale_after: timedelta | None, now: datetime
) -> datetime | None:
    """Return when data count as missing unless points come. ``last`` is when the last point was
    measured, ``hours`` are as in ``allowed_gap``; ``stale_after`` is the series' setting.

    Without a setting, points that were late when they came (an imported history) say nothing about
    the rhythm: None.
    """
    if stale_after is not None:
        return last + stale_after
    allowed = allowed_gap(hours)
    due = last + allowed if allowed is not None else None
    return due if due is not None and due > now else None
