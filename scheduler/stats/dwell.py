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
    old_median, new_median = median(before), median(after)
    latest = after[-settings.sizes[0] :]
    if abs(median(latest) - old_median) < abs(new_median - old_median) / 2 or (
        median(latest) > old_median
    ) != (new_median > old_median):
        return False
    is_back = abs(after[-1] - old_median) < abs(after[-1] - new_median)
    if after.size < 2 * settings.sizes[0] and is_back:
        return False  # spikes, if the next values are back as well
    # The lengths of the visits to the new level that began and ended before.
    on_new_level = (
        np.abs(np.concatenate((earlier, before)) - new_median) < abs(new_median - old_median) / 2
    )
    edges = np.flatnonzero(on_new_level[1:] != on_new_level[:-1])
    if edges.size and on_new_level[0]:
        edges = edges[1:]  # the series began on that level: it is where it came from
    lengths = edges[1::2] - edges[: edges.size // 2 * 2 : 2]
    visits = lengths[lengths >= settings.min_dwell]
    max_wait = next((wait for count, wait in reversed(settings.waits) if visits.size >= count), 0)
    return after.size > min(int(visits.max(initial=0)), max_wait)
