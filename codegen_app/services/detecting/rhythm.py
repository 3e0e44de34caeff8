"""How often points of a series come, and so when they are missing."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import pairwise

LEAST_GAPS = 8
"""Between the hours in which points were measured: of fewer nothing is learnt."""

LEAST = timedelta(days=1)
TIMES = 3


def allowed_gap(moments: Iterable[datetime]) -> timedelta | None:
    """How long a series may be without a new point: three times as long as nine of ten of its gaps
    were at most, and never less than a day. None where it has too few to say.

    Gaps lie between the hours in which something was measured, so that the runs of one night count
    once, and a pause that happened once (a holiday) says little.
    """
    hours = sorted({int(one.timestamp()) // 3600 for one in moments})
    gaps = sorted(later - earlier for earlier, later in pairwise(hours))
    if len(gaps) < LEAST_GAPS:
        return None
    return max(LEAST, TIMES * timedelta(hours=gaps[(len(gaps) - 1) * 9 // 10]))


def stale_at(
    moments: Iterable[datetime], stale_after: timedelta | None, now: datetime
) -> datetime | None:
    """When the data count as missing unless points come. ``stale_after`` is what somebody set.

    Without it, points that were late already when they came (a history that is imported) say
    nothing of how often others will: None.
    """
    known = list(moments)
    if not known:
        return None
    if stale_after is not None:
        return max(known) + stale_after
    allowed = allowed_gap(known)
    due = max(known) + allowed if allowed is not None else None
    return due if due is not None and due > now else None
