"""Intervals for medians: pure functions on numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, takewhile

import numpy as np

MIN_INTERVAL_SAMPLES = 6
"""The fewest samples that give a 95% interval of a median. All n samples lie on one side of the
median with a probability of 2 / 2**n: of 5 samples even the range covers it in only 93.75% of
cases, of 2 in half."""


class Bounds(StrEnum):
    """The kind of the bounds around a median, by the number of its samples."""

    NONE = ""
    RANGE = "range"
    INTERVAL = "95% interval"


def bounds_of(n: int) -> Bounds:
    """Return the label of the bounds of ``n`` samples: none for a single sample, a range for fewer
    than ``MIN_INTERVAL_SAMPLES``, else a 95% interval."""
    if n < 2:
        return Bounds.NONE
    return Bounds.RANGE if n < MIN_INTERVAL_SAMPLES else Bounds.INTERVAL


def bounds_text(n: int, low: str, high: str) -> str:
    """Return both bounds and their label, for a sentence."""
    return f"{bounds_of(n)} {low} \N{EN DASH} {high}".lstrip()


def bounds_cell(n: int, low: str, high: str) -> str:
    """Return the same for a column headed "interval": only a range is labelled."""
    return bounds_text(n, low, high).removeprefix(f"{Bounds.INTERVAL} ")


@dataclass(frozen=True)
class Interval:
    """A median with its bounds, in the samples' unit; ``n`` samples."""

    median: float
    low: float
    high: float
    n: int


def median_interval(
    samples: Sequence[float], confidence: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Interval:
    """Return the median and its percentile-bootstrap interval (Efron and Tibshirani, chapter 13);
    with fewer than ``MIN_INTERVAL_SAMPLES`` samples, the range.

    The generator is seeded, so that the same samples give the same interval. Raises ``ValueError``
    without samples.
    """
    if len(samples) == 0:
        raise ValueError("no samples")
    values = np.asarray(samples, dtype=np.float64)
    if values.size < MIN_INTERVAL_SAMPLES:
        return Interval(
            float(np.median(values)), float(values.min()), float(values.max()), values.size
        )
    rng = np.random.default_rng(seed)
    resampled = rng.choice(values, size=(resamples, values.size), replace=True)
    medians = np.median(resampled, axis=1)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(medians, [tail, 1.0 - tail])
    return Interval(float(np.median(values)), float(low), float(high), values.size)


def rank_interval(samples: Sequence[float], confidence: float = 0.95) -> Interval:
    """Return the median and its distribution-free interval: the narrowest between two order
    statistics, with as many samples left out at each end, that covers the median with at least
    ``confidence`` (Conover, Practical Nonparametric Statistics, section 3.2).

    It costs one sort, so it suits many sets of samples, for which a bootstrap takes too long. If
    there are too few samples for the confidence (fewer than ``MIN_INTERVAL_SAMPLES`` for 95%), it
    is the range. Raises ``ValueError`` without samples.
    """
    if len(samples) == 0:
        raise ValueError("no samples")
    values = np.sort(np.asarray(samples, dtype=np.float64))
    trimmed = _trim_count(values.size, confidence)
    low, high = values[trimmed], values[-1 - trimmed]
    return Interval(float(np.median(values)), float(low), float(high), values.size)


@lru_cache(maxsize=4096)
def _trim_count(n: int, confidence: float) -> int:
    """Return how many of n samples are left out at each end.

    The number of samples below the median, B, is binomial with probability 1/2. Of 40 samples 13
    are left out for 95%: P(B <= 13) is 1.9%, P(B <= 14) would be 4.0%.
    """
    in_tail = Fraction(1 - confidence) / 2 * 2**n  # of 2^n equally likely outcomes
    outcomes = accumulate(math.comb(n, below) for below in range((n - 1) // 2))
    return max(0, sum(1 for _ in takewhile(lambda count: count <= in_tail, outcomes)) - 1)
