"""Finds a change of spread: values that vary more, or less, than before, around any level.

A change of the noise is no change of the level. Distances from the median of the neighbours are
compared by the squared normal scores of their ranks (Klotz's test), which depend on neither the
level nor a drift, and little on single spikes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import exp, log, pi, sqrt
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from scheduler.stats.reference import NORMAL, Array, median

WINDOW = 200
MIN_BEFORE, MIN_AFTER = 40, 30
MIN_RATIO = 1.8
"""A spread that changes by less, up or down, is not reported."""

MIN_ERRORS = 5.5
"""The standard errors required of the ranks: many places are tried."""

_NEIGHBOURS = 8
_CUT = 3.5
_LOG_ERROR = 1.0
"""The standard error of the logarithm of the deviation of n values, times the root of n: 0.71 for
independent normal ones; distances share neighbours, and tails are heavier."""


@dataclass(frozen=True)
class SpreadChange:
    """``start`` is the index of the first value of the new spread in the values that were given;
    ``before`` and ``after`` are standard deviations as fractions of the level, ``ratio`` is
    after / before with its 95% interval, of ``n_before`` and ``n_after`` values."""

    start: int
    before: float
    after: float
    ratio: float
    low: float
    high: float
    n_before: int
    n_after: int


def find_spread_change(values: Array) -> SpreadChange | None:
    """Return the change after which the last of these values, above 0 and oldest first, vary
    differently; ``None`` if there is none, or there are too few values."""
    offset = max(0, values.size - WINDOW)
    logs = np.log(values[offset:])
    n = logs.size
    if n < MIN_BEFORE + MIN_AFTER:
        return None
    half = _NEIGHBOURS // 2
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(logs, half, mode="reflect"), 2 * half + 1
    )
    distances = np.abs(logs - np.median(np.delete(windows, half, axis=1), axis=1))
    scores = _scores(n)[distances.argsort(kind="stable").argsort(kind="stable")]
    splits = np.arange(MIN_BEFORE, n - MIN_AFTER + 1)
    n_after = n - splits
    sums = np.cumsum(scores[::-1])[::-1][splits]
    variance = splits * n_after / (n - 1) * float(np.var(scores))
    errors = (sums - n_after * float(scores.mean())) / np.sqrt(variance)
    best = int(np.argmax(np.abs(errors)))
    if abs(errors[best]) < MIN_ERRORS:
        return None
    split = _place(distances, splits, int(splits[best]))
    # A value's distance from the median of its neighbours varies by both.
    scale = 1 / sqrt(1 + pi / (2 * _NEIGHBOURS))
    before, after = (scale * _deviation(side) for side in (distances[:split], distances[split:]))
    if min(before, after) <= 0:
        return None  # equal values: the ticks of a coarse clock, not a spread
    ratio = after / before
    if abs(log(ratio)) < log(MIN_RATIO):
        return None
    error = 1.96 * _LOG_ERROR * sqrt(1 / split + 1 / (n - split))
    return SpreadChange(
        start=offset + split,
        before=before,
        after=after,
        ratio=ratio,
        low=exp(log(ratio) - error),
        high=exp(log(ratio) + error),
        n_before=split,
        n_after=n - split,
    )


def _place(distances: Array, splits: npt.NDArray[np.int64], tested: int) -> int:
    """Return the place at which two normal spreads fit best, spikes clipped."""
    typical = max(median(distances[:tested]), median(distances[tested:]))
    sums = np.cumsum(np.minimum(distances, _CUT * NORMAL * typical) ** 2)
    n, least = distances.size, 1e-12
    before = np.maximum(sums[splits - 1] / splits, least)
    after = np.maximum((sums[-1] - sums[splits - 1]) / (n - splits), least)
    return int(splits[np.argmin(splits * np.log(before) + (n - splits) * np.log(after))])


def _deviation(distances: Array) -> float:
    """Return the root of the mean square, with spikes clipped."""
    clipped = np.minimum(distances, _CUT * NORMAL * median(distances))
    return float(np.sqrt(np.mean(clipped**2)))


@lru_cache(maxsize=WINDOW)
def _scores(n: int) -> Array:
    """Return the squares of the normal scores of n distances, the smallest first."""
    inverse = NormalDist().inv_cdf
    return np.array([inverse((1 + rank / (n + 1)) / 2) ** 2 for rank in range(1, n + 1)])
