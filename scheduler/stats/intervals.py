"""Intervals for medians: pure functions on numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Interval:
    """A median with its bootstrap interval, in the samples' unit; ``n`` samples."""

    median: float
    low: float
    high: float
    n: int


def median_interval(
    samples: Sequence[float], confidence: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Interval:
    """The median and its percentile-bootstrap interval (Efron and Tibshirani, chapter 13).

    The generator is seeded, so that the same samples give the same interval. Raises
    ``ValueError`` without samples.
    """
    if len(samples) == 0:
        raise ValueError("no samples")
    values = np.asarray(samples, dtype=np.float64)
    rng = np.random.default_rng(seed)
    drawn = rng.choice(values, size=(resamples, values.size), replace=True)
    medians = np.median(drawn, axis=1)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(medians, [tail, 1.0 - tail])
    return Interval(float(np.median(values)), float(low), float(high), values.size)


def rank_interval(samples: Sequence[float], z: float = 1.96) -> Interval:
    """The median and the interval between two order statistics, whose ranks are the binomial's in
    its normal approximation (Conover, Practical Nonparametric Statistics, section 3.2).

    For many samples at once, where a bootstrap takes too long: it costs one sort. ``z`` is the
    normal quantile (1.96: 95%); of few samples it is their whole range. Raises ``ValueError``
    without samples.
    """
    if len(samples) == 0:
        raise ValueError("no samples")
    values = np.sort(np.asarray(samples, dtype=np.float64))
    n = values.size
    reach = z * math.sqrt(n) / 2
    low = values[max(0, math.floor(n / 2 - reach) - 1)]
    high = values[min(n - 1, math.ceil(n / 2 + reach))]
    return Interval(float(np.median(values)), float(low), float(high), n)
