"""How long a level must last that the series visited before.

A mode that lasts for some values (code placed otherwise, another clock) looks like a change until
it ends. If the series has visited the level and left it, the next visit is likely to be another
such mode: only one that lasts is a change.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from scheduler.stats.reference import Array, median
from scheduler.stats.settings import Settings


def is_lasting(earlier: Array, before: Array, after: Array, settings: Settings) -> bool:
    """Whether the level of ``after`` still holds, and for longer than the series stayed on it in
    ``earlier``, the values of other levels, oldest first, before those of ``before``."""
    old, new = median(before), median(after)
    ends = after[-settings.sizes[0] :]
    if abs(median(ends) - old) < abs(new - old) / 2 or (median(ends) > old) != (new > old):
        return False
    stays = _visit_lengths(np.concatenate((earlier, before)), old, new, settings.min_dwell)
    enough = next((most for visits, most in reversed(settings.waits) if stays.size >= visits), 0)
    return after.size > min(int(stays.max(initial=0)), enough)


def _visit_lengths(values: Array, old: float, new: float, least: int) -> npt.NDArray[np.intp]:
    """Return the length of each visit to the level ``new`` that began and ended among these
    values."""
    there = np.abs(values - new) < abs(new - old) / 2
    edges = np.flatnonzero(there[1:] != there[:-1])
    if edges.size and there[0]:
        edges = edges[1:]  # the series began on that level: it is where it came from
    begins = edges[: edges.size // 2 * 2 : 2]
    stays = edges[1::2] - begins
    return stays[stays >= least]
