"""Tests whether values lie on another level than those before, and by how many standard errors.

There are three tests; passing one is enough. The first compares means of clipped values, in which a
spike weighs no more than a value clearly off; from ten values on it compares ranks too. It finds
small changes in many values. The second requires that all values lie off on the same side, near
each other, and further than nearly all of those before: it finds large changes in few values, but
allows for modes and bursts not seen yet. The third makes no such allowance: its values lie further
off than noise of any kind does. It finds a clear step in four values.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, log1p, sqrt

import numpy as np
import numpy.typing as npt

from scheduler.stats.reference import (
    Array,
    Reference,
    clip,
    detrend,
    deviation,
    fit_reference,
    median,
    variance_inflation,
)
from scheduler.stats.settings import Settings

_ROUNDING = 1e-9
"""The rounding error between equal values after their logarithms, in units of noise."""


@dataclass(frozen=True)
class DetectionFloor:
    """The known noise of the series and the least effect, as fractions of the level."""

    noise: float
    effect: float


def measure_shift(
    before: Array, after: Array, least: DetectionFloor, settings: Settings
) -> tuple[float, float]:
    """Return how far the test was passed (1: just) and the standard errors; zeros if there is no
    shift. The sides' medians must differ by the least effect (``candidate_splits.py``)."""
    level = fit_reference(before, least.noise, settings)
    shift = _shift_from(level, after, settings)
    if shift[0] < 1:
        return shift
    drift = detrend(level, settings)
    if drift is None:
        return shift
    trend = np.arange(after.size) * drift.slope * drift.noise
    detrended = after - trend
    if (median(detrended) - drift.centre) * (median(after) - level.centre) <= 0:
        return 0.0, 0.0
    if abs(median(detrended) - drift.centre) < least.effect:
        return 0.0, 0.0
    return min(shift, _shift_from(drift, detrended, settings))


def _shift_from(level: Reference, after: Array, settings: Settings) -> tuple[float, float]:
    distances = (after - level.centre) / level.noise
    errors = max(_mean_test(level, distances, settings), _rank_test(level, distances, settings))
    allowance = 1 + settings.young * max(0.0, 1 - level.cut.size / settings.settled)
    passed = errors / (allowance * _lookup(settings.thresholds, after.size))
    if passed >= 1 and not _beats_drift(level, distances, settings):
        passed = 0.0
    one_sided = max(
        _one_sided_shift(level, distances, settings), _clear_shift(level, distances, settings)
    )
    return max(passed, one_sided / allowance), errors


def _mean_test(level: Reference, distances: Array, settings: Settings) -> float:
    """Return the standard errors between the means, as a normal deviate of the same probability."""
    n, before = distances.size, level.cut.size
    cut = clip(distances, settings.cut)
    mean = float(cut.sum()) / n
    spread = max(level.spread, deviation(cut)) if n > 2 else level.spread
    ahead = 3 * (n + before) ** 2 / before**2 * (level.slope != 0)
    # The values that describe the noise: those before; after a short level also those after, once
    # they are many.
    noise_samples = before if before >= settings.settled else before + 2 * max(0, n - settings.many)
    likeness = level.likeness
    if noise_samples > before:
        centred = cut - mean
        likeness = max(likeness, variance_inflation(centred, float(centred @ centred)))
    variance = likeness * (level.spread**2 * (1 + ahead) / before + spread**2 / n)
    # Student's t as a normal deviate of the same probability (Wallace's approximation).
    student, freedom = abs(mean - level.mean) / sqrt(variance), noise_samples - 1
    scale = (8 * freedom + 1) / (8 * freedom + 3)
    return scale * sqrt(freedom * log1p(student**2 / freedom))


def _rank_test(level: Reference, distances: Array, settings: Settings) -> float:
    """Return the standard errors of how often a value after exceeds one before (Mann and Whitney's
    test). With spikes or modes it is more powerful than means; of few values it tells nothing."""
    n, before = distances.size, level.cut.size
    if n < settings.least_ranked or level.slope or not level.shown:
        return 0.0
    cut = clip(distances, settings.cut)
    ordered = np.sort(level.cut)
    below = np.searchsorted(ordered, cut - _ROUNDING) + np.searchsorted(ordered, cut + _ROUNDING)
    exceeds = float(below.sum()) / (2 * n * before)
    variance = level.likeness * (n + before + 1) / (12 * n * before)
    return abs(exceeds - 0.5) / sqrt(variance)


def _beats_drift(level: Reference, distances: Array, settings: Settings) -> bool:
    """Whether a step fits the values better than a steady drift does."""
    cut = np.concatenate((level.cut, clip(distances, settings.cut)))
    n, after = cut.size, distances.size
    cut -= cut.mean()
    offsets = np.arange(n) - (n - 1) / 2
    by_line = float(offsets @ cut) ** 2 / float(offsets @ offsets)
    by_step = float(cut[-after:].sum()) ** 2 * n / (after * (n - after))
    unit = level.spread**2 * level.likeness
    return bool(by_step - by_line >= settings.beyond_line * unit)


def _one_sided_shift(level: Reference, distances: Array, settings: Settings) -> float:
    """Return how far all values lie off, as a fraction of the requirement; 0 if they disagree."""
    side = distances if distances[0] > 0 else -distances
    nearest, furthest = float(side.min()), float(side.max())
    scale = max(level.spread, 1.0)
    if nearest <= 0 or furthest - nearest > scale * _lookup(settings.agreement, side.size):
        return 0.0
    before = level.cut if distances[0] > 0 else -level.cut
    as_far = before >= min(nearest, settings.cut) - _ROUNDING
    if _log_chance(as_far, side.size, settings.together) > log(settings.chance):
        return 0.0
    return nearest / (scale * _lookup(settings.runs, side.size))


def _clear_shift(level: Reference, distances: Array, settings: Settings) -> float:
    """Return how far all values lie off, as a fraction of what is clear whatever the noise; 0 if
    they form no level of their own, or if values as far off were seen too often before."""
    sign = 1.0 if distances[0] > 0 else -1.0
    side = sign * distances
    nearest, furthest = float(side.min()), float(side.max())
    scale = max(level.spread, 1.0)
    if nearest <= 0 or side.size < settings.sizes[0]:
        return 0.0
    spacing = max(scale * _lookup(settings.agreement, side.size), settings.alike * nearest)
    if furthest - nearest > spacing:
        return 0.0
    as_far = sign * level.distances >= nearest / 2
    if _log_chance(as_far, side.size, 0.0) > log(settings.chance):
        return 0.0
    return nearest / (scale * settings.clear)


def _log_chance(as_far: npt.NDArray[np.bool_], n: int, unseen: float) -> float:
    """Return the log probability that ``n`` values in a row are as far off as some before were.

    A value as far off may be followed by another more often than if they were independent: spikes
    come in bursts, and modes last.
    """
    far = int(as_far.sum())
    alone = (far + 1) / (as_far.size + 2)
    together = (int((as_far[1:] & as_far[:-1]).sum()) + unseen) / (far + 1)
    return log(alone) + (n - 1) * log(max(alone, together))


def _lookup(table: tuple[tuple[int, float], ...], n: int) -> float:
    return next((value for least, value in reversed(table) if n >= least), 99.0)
