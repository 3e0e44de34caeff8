"""Where the next values of a series are expected, from the last values of its present level: for
thousands of series at once.

A prediction interval of logarithms. Its width comes from the differences between values, each of
one run, so it includes what varies from run to run. The noise of either side of the level is
estimated by itself, since times have a longer tail above than below; outliers are clipped (Huber),
and autocorrelation widens the interval. Student's t with few degrees of freedom replaces the normal
distribution: the noise is known from few values, and its tail from none.

The stated rates hold for normal, skewed and autocorrelated noise
(``tests/unit/stats/test_prediction.py``, ``python -m tests.benchmarks.prediction``). Spikes that
were seen before are not evidence: a value is only as improbable as values as far off were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from scheduler.stats.reference import NORMAL, median

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MIN_HISTORY = 8
"""The fewest values that describe the noise of a series."""

MAX_HISTORY = 30
"""The last values that are used: a longer history would describe an earlier state of the series."""

_CLIP = 3.5
"""Distances from the level are clipped at this multiple of the side's noise."""

_AS_FAR = 0.6
"""An earlier value counts as far off as a new one from this fraction of its distance on."""

_TOGETHER = 0.4
"""The assumed probability that another value as far off follows one (``Settings.together``)."""

_ROUNDING = 1e-9
"""The rounding error between equal values after their logarithms."""

_FREEDOM = (2.0, 6.0)
"""The bounds of the degrees of freedom. The upper one makes the tail as heavy as that of skewed
noise: 30 values do not show how far one in ten thousand lies."""

_MEDIAN_VARIANCE = np.array([np.inf, 1.0, 0.5, 0.449, 0.298])
"""The variance of the median of up to four normal values, as a multiple of the variance of one; of
more values it is near ``pi / 2n``."""


@dataclass(frozen=True)
class History:
    """Values above 0 of a series, oldest first, and the indices at which its levels begin. The last
    level is the present one; earlier ones count for the noise only."""

    values: Floats
    level_starts: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Prediction:
    """The level of each series as a logarithm, and the noise of a single value below and above it.

    ``residuals`` are the distances of the ``n`` earlier values from their levels, padded with NaN;
    ``n_level`` is the number of values of the present level; ``inflation`` is the factor by which
    autocorrelation inflates the variance of a mean; ``ticks`` is the step of quantized values.
    """

    levels: Floats
    noise: tuple[Floats, Floats]
    freedom: tuple[Floats, Floats]
    residuals: Floats
    n: Ints
    n_level: Ints
    inflation: Floats
    ticks: Floats

    def errors(self, counts: Ints, is_above: npt.NDArray[np.bool_]) -> Floats:
        """Return the standard error of the distance between the median of so many new values and
        the level."""
        new = np.minimum(self.inflation * _median_variance(counts), 1.0)
        level = np.minimum(self.inflation * _median_variance(self.n_level), 1.0)
        errors: Floats = np.where(is_above, self.noise[1], self.noise[0]) * np.sqrt(new + level)
        return errors

    def interval(self, counts: Ints, confidence: float) -> tuple[Floats, Floats]:
        """Return the logarithms between which the median of so many new values is expected."""
        from scipy import special  # noqa: PLC0415 - a second of each worker's start

        ends = []
        for side, sign in ((0, -1), (1, 1)):
            reach = special.stdtrit(self.freedom[side], (1 + confidence) / 2)
            above = np.full(self.n.size, bool(side))
            reach = reach * self.errors(counts, above) + self.ticks / 2
            ends.append(self.levels + sign * reach)
        return ends[0], ends[1]

    def p_values(self, logs: Floats, counts: Ints, min_effect: float) -> Floats:
        """Return the two-sided p-values of the hypothesis that the median of so many new values is
        no further from the level than by the fraction ``min_effect``."""
        from scipy import special  # noqa: PLC0415

        distances = logs - self.levels
        is_above = distances > 0
        excess = np.maximum(np.abs(distances) - np.log1p(min_effect) - self.ticks / 2, 0.0)
        freedom = np.where(is_above, self.freedom[1], self.freedom[0])
        p: Floats = np.minimum(
            1.0, 2 * special.stdtr(freedom, -excess / self.errors(counts, is_above))
        )
        return p

    def repeat_chances(self, distances: Floats, counts: Ints) -> Floats:
        """Return the probability of so many values as far off as these, from how many of the
        earlier values were as far off on that side and how often another one followed; 0 if none
        was."""
        signs = np.where(distances > 0, 1.0, -1.0)
        with np.errstate(invalid="ignore"):  # comparisons with the padding are false
            is_far = self.residuals * signs[:, None] >= _AS_FAR * np.abs(distances)[:, None]
        n_far = is_far.sum(axis=1)
        pairs = (is_far[:, 1:] & is_far[:, :-1]).sum(axis=1)
        chance = (n_far + 1) / (self.n + 2)
        repeated = np.maximum(chance, (pairs + _TOGETHER) / (n_far + 1))
        return np.where(n_far > 0, chance * repeated ** (counts - 1), 0.0)


def predict(histories: Sequence[History], least_noise: float) -> Prediction:
    """Return the prediction for each series. ``least_noise`` is the least noise of a value, as a
    fraction. Raises ``ValueError`` for a history of fewer than ``MIN_HISTORY`` values."""
    size = max((min(history.values.size, MAX_HISTORY) for history in histories), default=1)
    shape = len(histories)
    residuals = np.full((shape, size), np.nan)
    levels, ticks = np.empty(shape), np.empty(shape)
    n, n_level = np.empty(shape, np.int64), np.empty(shape, np.int64)
    for row, history in enumerate(histories):
        logs, starts = _last_values(history)
        level_logs = np.split(logs, starts[1:])
        residuals[row, : logs.size] = np.concatenate([_distances(level) for level in level_logs])
        levels[row] = median(logs[starts[-1] :])
        n[row], n_level[row] = logs.size, logs.size - starts[-1]
        gaps = np.concatenate([np.diff(np.sort(level)) for level in level_logs])
        ticks[row] = min(gaps[gaps > _ROUNDING], default=0.0)
    inflation = _variance_inflation(residuals, n)
    noise, freedom = [], []
    for sign in (-1, 1):
        deviation, count = _side_noise(sign * residuals)
        noise.append(np.maximum(np.maximum(deviation, ticks / 2), least_noise))
        freedom.append(np.clip(count / inflation - 2, *_FREEDOM))
    return Prediction(
        levels,
        (noise[0], noise[1]),
        (freedom[0], freedom[1]),
        residuals,
        n,
        n_level,
        inflation,
        ticks,
    )


def _last_values(history: History) -> tuple[Floats, list[int]]:
    """Return the logarithms of the values that are used, and where their levels begin."""
    if history.values.size < MIN_HISTORY:
        raise ValueError(f"{history.values.size} values are too few: at least {MIN_HISTORY}")
    dropped = max(0, history.values.size - MAX_HISTORY)
    starts = [start - dropped for start in history.level_starts if start > dropped]
    return np.log(history.values[dropped:]), [0, *starts]


def _distances(level: Floats) -> Floats:
    """Return the distances from the median, scaled up because few values lie nearer to their own
    median."""
    factor = sqrt(level.size / max(level.size - 1, 1))
    distances: Floats = (level - median(level)) * factor
    return distances


def _side_noise(residuals: Floats) -> tuple[Floats, Floats]:
    """Return the noise of the values at or above the level, and their number."""
    with np.errstate(invalid="ignore"):
        is_side = residuals >= 0
    distances = np.where(is_side, residuals, np.inf)
    count = is_side.sum(axis=1)
    ordered = np.sort(distances, axis=1)
    rows = np.arange(count.size)
    last = np.maximum(count - 1, 0)
    middle = (ordered[rows, last // 2] + ordered[rows, (last + 1) // 2]) / 2
    limit = _CLIP * NORMAL * middle
    clipped = np.where(is_side, np.minimum(distances, limit[:, None]), 0.0)
    return np.sqrt((clipped**2).sum(axis=1) / np.maximum(count, 1)), count.astype(np.float64)


def _variance_inflation(residuals: Floats, n: Ints) -> Floats:
    """Return the factor by which autocorrelation inflates the variance of a mean
    (``reference.variance_inflation``), for padded rows."""
    is_value = ~np.isnan(residuals)
    values = np.where(is_value, residuals, 0.0)
    limit = _CLIP * NORMAL * np.nanmedian(np.abs(residuals), axis=1)[:, None]
    clipped = np.clip(values, -limit, limit)
    means = clipped.sum(axis=1) / n
    centred = np.where(is_value, clipped - means[:, None], 0.0)
    squares = (centred**2).sum(axis=1)
    products = (centred[:, 1:] * centred[:, :-1]).sum(axis=1)
    rho = np.clip(products / np.where(squares > 0, squares, 1.0) + 1.0 / n, 0.0, 0.8)
    return np.where(squares > 0, (1 + rho) / (1 - rho), 1.0)


def _median_variance(counts: Ints) -> Floats:
    table = _MEDIAN_VARIANCE[np.minimum(counts, _MEDIAN_VARIANCE.size - 1)]
    variance: Floats = np.where(
        counts < _MEDIAN_VARIANCE.size, table, np.pi / 2 / np.maximum(counts, 1)
    )
    return variance
