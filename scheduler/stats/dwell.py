"""How long a level must last that the series visited before.

A mode that lasts for some values (code placed otherwise, another clock) looks like a change until
it ends. If the series has visited the level and left it, the next visit is likely to be another
such mode: only one that lasts is a change.
"""

from __future__ import annotations

import numpy as np

from scheduler.stats.reference import Array, median
from scheduler.stats.settings import Settings


def is_lasting(earlier: Array, before: Array, after: Array, settings: Settings) -> bool:
    """Whether the level of ``after`` still holds, and for longer than the series stayed on it in
    ``earlier``, the values of other levels, oldest first, before those of ``before``."""
    old, new = median(before), median(after)
    ends = after[-settings.sizes[0] :]
    if abs(median(ends) - old) < abs(new - old) / 2 or (median(ends) > old) != (new > old):
        return False
    # The lengths of the visits to the new level that began and ended before.
    there = np.abs(np.concatenate((earlier, before)) - new) < abs(new - old) / 2
    edges = np.flatnonzero(there[1:] != there[:-1])
    if edges.size and there[0]:
        edges = edges[1:]  # the series began on that level: it is where it came from
    lengths = edges[1::2] - edges[: edges.size // 2 * 2 : 2]
    visits = lengths[lengths >= settings.min_dwell]
    enough = next((most for count, most in reversed(settings.waits) if visits.size >= count), 0)
    return after.size > min(int(visits.max(initial=0)), enough)
