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
    before: Array, after: Array, floors: DetectionFloor, settings: Settings, runs: float = 1.0
) -> tuple[float, float]:
    """Return how far the test was passed (1: just) and the standard errors; zeros if there is no
    shift. The sides' medians must differ by the least effect (``candidate_splits.py``). ``runs`` is
    the mean number of values of a revision after the shift."""
    level = fit_reference(before, floors.noise, settings)
    shift = _shift_from(level, after, settings, runs)
    if shift[0] < 1:
        return shift
    detrended_level = detrend(level, settings)
    if detrended_level is None:
        return shift
    trend = np.arange(after.size) * detrended_level.slope * detrended_level.noise
    detrended_after = after - trend
    if (median(detrended_after) - detrended_level.centre) * (median(after) - level.centre) <= 0:
        return 0.0, 0.0
    if abs(median(detrended_after) - detrended_level.centre) < floors.effect:
        return 0.0, 0.0
    return min(shift, _shift_from(detrended_level, detrended_after, settings, runs))


def _shift_from(
    level: Reference, after: Array, settings: Settings, runs: float
) -> tuple[float, float]:
    distances = (after - level.centre) / level.noise
    errors = max(_mean_test(level, distances, settings), _rank_test(level, distances, settings))
    allowance = 1 + settings.young * max(0.0, 1 - level.clipped.size / settings.settled)
    observed = level.variance_inflation
    lasting = min(1.0, after.size / settings.outlasts)
    alike = 1 + settings.alike_neighbours * min(1.0, observed - 1) * (1 - lasting)
    # Runs of a revision may share a part of their variance that those before do not show.
    shared = sqrt(max(1.0, (1 + settings.shared_by_runs * (runs - 1)) / observed))
    strength = errors / (allowance * alike * shared * _lookup(settings.thresholds, after.size))
    if strength >= 1 and not _beats_drift(level, distances, settings):
        strength = 0.0
    one_sided = max(
        _one_sided_shift(level, distances, settings), _clear_shift(level, distances, settings)
    )
    return max(strength, one_sided / allowance), errors


def _mean_test(level: Reference, distances: Array, settings: Settings) -> float:
    """Return the standard errors between the means, as a normal deviate of the same probability."""
    n, n_before = distances.size, level.clipped.size
    clipped = clip(distances, settings.cut)
    mean = float(clipped.sum()) / n
    spread = max(level.spread, deviation(clipped)) if n > 2 else level.spread
    extrapolation = 3 * (n + n_before) ** 2 / n_before**2 * (level.slope != 0)
    # The values that describe the noise: those before; after a short level also those after, once
    # they are many.
    noise_samples = (
        n_before if n_before >= settings.settled else n_before + 2 * max(0, n - settings.many)
    )
    inflation = level.variance_inflation
    if noise_samples > n_before:
        centred = clipped - mean
        inflation = max(inflation, variance_inflation(centred, float(centred @ centred)))
    variance = inflation * (level.spread**2 * (1 + extrapolation) / n_before + spread**2 / n)
    # Student's t as a normal deviate of the same probability (Wallace's approximation).
    student, degrees = abs(mean - level.mean) / sqrt(variance), noise_samples - 1
    scale = (8 * degrees + 1) / (8 * degrees + 3)
    return scale * sqrt(degrees * log1p(student**2 / degrees))


def _rank_test(level: Reference, distances: Array, settings: Settings) -> float:
    """Return the standard errors of how often a value after exceeds one before (Mann and Whitney's
    test). With spikes or modes it is more powerful than means; of few values it tells nothing."""
    n, n_before = distances.size, level.clipped.size
    if n < settings.min_ranked or level.slope or not level.noise_is_observed:
        return 0.0
    clipped = clip(distances, settings.cut)
    ordered = np.sort(level.clipped)
    below = np.searchsorted(ordered, clipped - _ROUNDING) + np.searchsorted(
        ordered, clipped + _ROUNDING
    )
    exceeds = float(below.sum()) / (2 * n * n_before)
    variance = level.variance_inflation * (n + n_before + 1) / (12 * n * n_before)
    return abs(exceeds - 0.5) / sqrt(variance)


def _beats_drift(level: Reference, distances: Array, settings: Settings) -> bool:
    """Whether a step fits the values better than a steady drift does."""
    clipped = np.concatenate((level.clipped, clip(distances, settings.cut)))
    n, n_after = clipped.size, distances.size
    clipped -= clipped.mean()
    offsets = np.arange(n) - (n - 1) / 2
    by_line = float(offsets @ clipped) ** 2 / float(offsets @ offsets)
    by_step = float(clipped[-n_after:].sum()) ** 2 * n / (n_after * (n - n_after))
    unit_variance = level.spread**2 * level.variance_inflation
    return bool(by_step - by_line >= settings.beyond_line * unit_variance)


def _one_sided_shift(level: Reference, distances: Array, settings: Settings) -> float:
    """Return how far all values lie off, as a fraction of the requirement; 0 if they disagree."""
    magnitudes = distances if distances[0] > 0 else -distances
    nearest, furthest = float(magnitudes.min()), float(magnitudes.max())
    scale = max(level.spread, 1.0)
    if nearest <= 0 or furthest - nearest > scale * _lookup(settings.agreement, magnitudes.size):
        return 0.0
    before = level.clipped if distances[0] > 0 else -level.clipped
    is_as_far = before >= min(nearest, settings.cut) - _ROUNDING
    if _log_chance(is_as_far, magnitudes.size, settings.together) > log(settings.chance):
        return 0.0
    return nearest / (scale * _lookup(settings.runs, magnitudes.size))


def _clear_shift(level: Reference, distances: Array, settings: Settings) -> float:
    """Return how far all values lie off, as a fraction of what is clear with any noise; 0 if
    they do not form a separate level, or if values as far off were seen too often before."""
    sign = 1.0 if distances[0] > 0 else -1.0
    magnitudes = sign * distances
    nearest, furthest = float(magnitudes.min()), float(magnitudes.max())
    scale = max(level.spread, 1.0)
    if nearest <= 0 or magnitudes.size < settings.sizes[0]:
        return 0.0
    spacing = max(scale * _lookup(settings.agreement, magnitudes.size), settings.alike * nearest)
    if furthest - nearest > spacing:
        return 0.0
    is_as_far = sign * level.distances >= nearest / 2
    if _log_chance(is_as_far, magnitudes.size, 0.0) > log(settings.chance):
        return 0.0
    return nearest / (scale * settings.clear)


def _log_chance(is_as_far: npt.NDArray[np.bool_], n: int, unseen: float) -> float:
    """Return the log probability that ``n`` values in a row are as far off as some before were.

    A value as far off may be followed by another more often than if they were independent: spikes
    come in bursts, and modes last.
    """
    n_far = int(is_as_far.sum())
    probability = (n_far + 1) / (is_as_far.size + 2)
    repeat_probability = (int((is_as_far[1:] & is_as_far[:-1]).sum()) + unseen) / (n_far + 1)
    return log(probability) + (n - 1) * log(max(probability, repeat_probability))


def _lookup(table: tuple[tuple[int, float], ...], n: int) -> float:
    return next((value for min_n, value in reversed(table) if n >= min_n), 99.0)
