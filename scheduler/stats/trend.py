"""Finds a drift: a level that moves a little with each value, so that no step is ever found.

``find_drift`` looks at the last ``LONG`` values, and at the last ``SHORT`` if these show none. The
values must lie on a line (flat up to some value, then rising or falling) more clearly than on up to
four levels, and the line must go on in the last values. Spikes are clipped as in ``reference.py``,
and neighbours that are alike widen the error of the slope.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, sqrt

import numpy as np

from scheduler.stats.reference import NORMAL, Array, clip, median, variance_inflation

SHORT, LONG = 60, 200
MIN_CHANGE = 0.03
"""A smaller drift over the window is not reported."""

MIN_ERRORS = 6.0
"""The standard errors of a slope that is reported: a level that wanders has many chances."""

_CUT = 3.5
_MIN_NOISE = 0.001
_RECENT = 0.25
"""The slope of the last ``SHORT`` values, as a fraction of the whole line's, below which the drift
has ended."""

_BEYOND_LEVELS = 10.0
"""Twice the logarithm of the likelihoods' ratio of the line to the levels, beyond the penalty for
their parameters."""

_MAX_LEVELS = 4
_MIN_LEVEL = 5
"""The fewest values of a level, and of either part of a line with a bend."""


@dataclass(frozen=True)
class Drift:
    """``start`` is the index of the first value of the drift in the values that were given, of
    which ``n`` follow; ``change`` is the size since then, as a fraction of the level there, with
    its 95% interval; ``level`` is the level there in the unit of the values."""

    start: int
    n: int
    level: float
    change: float
    low: float
    high: float


def find_drift(values: Array) -> Drift | None:
    """Return the drift that the last of these values, above 0 and oldest first, still take part in;
    ``None`` if there is none, or there are fewer than ``SHORT`` values."""
    if values.size < SHORT:
        return None
    logs = np.log(values[-LONG:])
    offset = values.size - logs.size
    return _drift_of(logs, offset) or _drift_of(logs[-SHORT:], values.size - SHORT)


def _drift_of(logs: Array, offset: int) -> Drift | None:
    n = logs.size
    centre = median(logs)
    noise = max(NORMAL * median(np.abs(np.diff(logs))) / sqrt(2), _MIN_NOISE)
    # Spikes lie far from their neighbours; a line's values do not.
    neighbours = np.lib.stride_tricks.sliding_window_view(np.pad(logs, 3, mode="reflect"), 7)
    smooth = np.median(neighbours, axis=1)
    clipped = smooth + clip(logs - smooth, _CUT * noise) - centre
    start, slope, intercept, squares = _bent_line(clipped)
    ramp = np.maximum(np.arange(n) - start, 0.0)
    residuals = clipped - intercept - slope * ramp
    length = float(n - 1 - start)
    change = slope * length
    if abs(expm1(change)) < MIN_CHANGE:
        return None
    residual_squares = float(residuals @ residuals)
    deviation = max(sqrt(residual_squares / (n - 3)), _MIN_NOISE)
    inflation = variance_inflation(residuals, residual_squares)
    error = deviation * sqrt(inflation / squares) * length
    if abs(change) < MIN_ERRORS * error or not _goes_on(clipped, slope):
        return None
    if not _beats_levels(clipped, deviation**2, residual_squares, inflation):
        return None
    return Drift(
        start=offset + start,
        n=n - start,
        level=float(np.exp(centre + intercept)),
        change=expm1(change),
        low=expm1(change - 1.96 * error),
        high=expm1(change + 1.96 * error),
    )


def _bent_line(logs: Array) -> tuple[int, float, float, float]:
    """Return the line that is flat up to a value and fits best from there on (least squares): that
    value's index, the slope, the level before, and the sum of squares of the regressor."""
    n = logs.size
    starts = np.arange(0, n - SHORT // 2)
    starts = starts[(starts == 0) | (starts >= _MIN_LEVEL)]
    ramps = np.maximum(np.arange(n)[None, :] - starts[:, None], 0.0)
    means = ramps.mean(axis=1)
    centred = ramps - means[:, None]
    squares = np.einsum("ij,ij->i", centred, centred)
    slopes = centred @ logs / squares
    best = int(np.argmax(slopes**2 * squares))
    # A line without a bend has one parameter less: it is preferred if it is nearly as good.
    residual = float(((logs - logs.mean()) ** 2).sum())
    straight, bent = residual - slopes[[0, best]] ** 2 * squares[[0, best]]
    if bent > 0 and n * np.log(straight / bent) < 2 * np.log(n):
        best = 0
    intercept = float(logs.mean() - slopes[best] * means[best])
    return int(starts[best]), float(slopes[best]), intercept, float(squares[best])


def _goes_on(logs: Array, slope: float) -> bool:
    """Return whether the last values still move as the line does."""
    recent = logs[-SHORT:]
    offsets = np.arange(recent.size) - (recent.size - 1) / 2
    return float(offsets @ recent / (offsets @ offsets)) / slope >= _RECENT


def _beats_levels(logs: Array, variance: float, line_squares: float, inflation: float) -> bool:
    """Return whether the line fits the values clearly better than one to four levels do."""
    n = logs.size
    sums = np.concatenate(([0.0], np.cumsum(logs)))
    squares = np.concatenate(([0.0], np.cumsum(logs**2)))
    begins, ends = np.arange(n)[:, None], np.arange(1, n + 1)[None, :]
    lengths = ends - begins
    with np.errstate(divide="ignore", invalid="ignore"):
        costs = squares[ends] - squares[begins] - (sums[ends] - sums[begins]) ** 2 / lengths
    costs = np.where(lengths >= _MIN_LEVEL, costs, np.inf)
    fits = costs[0]  # of the values before each end, by one level
    for levels in range(2, _MAX_LEVELS + 1):
        fits = np.concatenate(
            (fits[:1], np.minimum(fits[:-1, None] + costs[1:], np.inf).min(0)[1:])
        )
        # Each further level has a value and a place; a bent line has three parameters.
        penalty = (2 * levels - 1 - 3) * np.log(n)
        beyond = (float(fits[-1]) - line_squares) / (variance * inflation) + penalty
        if beyond < _BEYOND_LEVELS:
            return False
    return True
