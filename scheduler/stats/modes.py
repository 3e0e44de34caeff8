"""Finds a second mode: values that go back and forth between two levels.

A median between two modes says little, and a step hides behind them. The last values are divided
into two groups where these are the tightest (two means); they are modes if they lie far apart,
both occur often, and they alternate, which two levels one after the other do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, sqrt

import numpy as np

from scheduler.stats.reference import Array

WINDOW = 60
MIN_SHARE = 0.15
"""A rarer mode is not told from spikes."""

MIN_SEPARATION = 4.0
"""The distance of the modes in units of their common deviation (Ashman's D): normal noise that is
divided in two gives 2.7."""

MIN_DISTANCE = 0.01
"""Modes nearer to each other are not reported; a fraction of the level."""

MIN_STAYS = 8
"""The fewest stays on either mode, one after the other: a level that was left and is back has
three, and each spike adds two."""

MIN_TICKS = 3
"""The fewest steps of a coarse clock between modes: neighbouring ticks are one level."""

_MIN_NOISE = 0.001
_ROUNDING = 1e-9


@dataclass(frozen=True)
class SecondMode:
    """``start`` is the index, in the values that were given, of the first value on the ``other``
    mode, which is the rarer of all values; ``main`` and ``other`` are the modes' centres in the
    unit of the values, ``ratio`` is other / main with its 95% interval, ``share`` the part of the
    last ``n`` values on the other."""

    start: int
    main: float
    other: float
    ratio: float
    low: float
    high: float
    share: float
    n: int


def find_second_mode(values: Array) -> SecondMode | None:
    """Return the modes of the last of these values, above 0 and oldest first; ``None`` if they have
    one, or are fewer than ``WINDOW``."""
    if values.size < WINDOW:
        return None
    logs = np.log(values)
    recent = logs[-WINDOW:]
    boundary = _boundary(np.sort(recent))
    if boundary is None:
        return None
    is_upper = recent > boundary
    stays = 1 + int(np.count_nonzero(is_upper[1:] != is_upper[:-1]))
    if stays < MIN_STAYS:
        return None
    is_above = bool(2 * np.count_nonzero(logs > boundary) <= logs.size)
    is_other = is_upper if is_above else ~is_upper
    main, other = recent[~is_other], recent[is_other]
    distance = float(np.median(other) - np.median(main))
    error = 1.2533 * sqrt(
        float(np.var(main)) / main.size + float(np.var(other)) / other.size + _MIN_NOISE**2
    )
    return SecondMode(
        start=_first_of(logs, boundary, is_above),
        main=exp(float(np.median(main))),
        other=exp(float(np.median(other))),
        ratio=exp(distance),
        low=exp(distance - 1.96 * error),
        high=exp(distance + 1.96 * error),
        share=other.size / WINDOW,
        n=WINDOW,
    )


def _boundary(ordered: Array) -> float | None:
    """Return the value between the two groups, or ``None`` if they are no modes."""
    n = ordered.size
    least = int(np.ceil(MIN_SHARE * n))
    counts = np.arange(least, n - least + 1)
    sums, squares = np.cumsum(ordered), np.cumsum(ordered**2)
    lower = sums[counts - 1] / counts
    upper = (sums[-1] - sums[counts - 1]) / (n - counts)
    within = squares[-1] - counts * lower**2 - (n - counts) * upper**2
    best = int(np.argmin(within))
    count = int(counts[best])
    deviations = [float(np.std(side)) for side in (ordered[:count], ordered[count:])]
    common = max(sqrt((deviations[0] ** 2 + deviations[1] ** 2) / 2), _MIN_NOISE)
    gaps = np.diff(ordered)
    gaps = gaps[gaps > _ROUNDING]
    is_quantized = gaps.size < n / 2
    tick = float(gaps.min()) if gaps.size and is_quantized else 0.0
    distance = float(upper[best] - lower[best])
    if distance < max(MIN_SEPARATION * common, MIN_DISTANCE, MIN_TICKS * tick):
        return None
    return float(ordered[count - 1] + ordered[count]) / 2


def _first_of(logs: Array, boundary: float, is_above: bool) -> int:
    """Return where the other mode begins to occur: at its first value after the last pause of more
    than half a window."""
    is_other = logs > boundary if is_above else logs < boundary
    indices = np.flatnonzero(is_other)
    pauses = np.flatnonzero(np.diff(indices) > WINDOW // 2)
    return int(indices[pauses[-1] + 1 if pauses.size else 0])
