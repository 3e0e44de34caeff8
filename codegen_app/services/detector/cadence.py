"""How often points of a series come, and so when they are missing."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import pairwise

MIN_GAPS = 8
"""Between the hours in which points were measured: of fewer nothing is learnt."""

MIN_ALLOWED_GAP = timedelta(days=1)
GAP_FACTOR = 3


def active_hours(moments: Iterable[datetime]) -> list[int]:
    """Those in which something was measured, in order."""
    return sorted({int(one.timestamp()) // 3600 for one in moments})


def allowed_gap(hours: Iterable[int]) -> timedelta | None:
    """How long a series may be without a new point: three times as long as nine of ten of its gaps
    were at most, and never less than a day. None where it has too few to say.

    ``hours`` are those in which something was measured, in order. Gaps lie between them, so that
    the runs of one night count once, and a pause that happened once (a holiday) says little.
    """
    gaps = sorted(later - earlier for earlier, later in pairwise(hours))
    if len(gaps) < MIN_GAPS:
        return None
    return max(MIN_ALLOWED_GAP, GAP_FACTOR * timedelta(hours=gaps[(len(gaps) - 1) * 9 // 10]))


def stale_at(
    last: datetime, hours: Iterable[int], stale_after: timedelta | None, now: datetime
) -> datetime | None:
    """When the data count as missing unless points come: ``last`` is when the last one was
    measured, ``hours`` are as of ``allowed_gap``. ``stale_after`` is what somebody set.

    Without it, points that were late already when they came (a history that is imported) say
    nothing of how often others will: None.
    """
    if stale_after is not None:
        return last + stale_after
    allowed = allowed_gap(hours)
    due = last + allowed if allowed is not None else None
    return due if due is not None and due > now else None
