"""The reference level: the centre, noise, autocorrelation and drift that predict the next values.

All values are logarithms of measured values. They are clipped at ``Settings.cut`` units of noise
from the centre (Huber, Robust Statistics, 1981); the noise is the median distance from the median.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from scheduler.stats.settings import Settings

Array: TypeAlias = npt.NDArray[np.float64]

NORMAL = 1.4826
"""The standard deviation of normal values, as a multiple of the median distance from the median."""


@dataclass(frozen=True)
class Reference:
    """``clipped`` are the values' distances from ``centre`` in units of ``noise``, clipped."""

    centre: float
    noise: float
    distances: Array
    clipped: Array
    mean: float
    spread: float
    """Standard deviation of the clipped values; never below the usual value of normal noise."""
    variance_inflation: float
    """The factor by which autocorrelation inflates the variance of a mean: 1 without any."""
    slope: float = 0.0
    """Units of noise per value."""
    noise_is_observed: bool = True
    """Whether the values themselves vary by that noise; if not, smaller differences are known to be
    chance."""


def fit_reference(before: Array, min_noise: float, settings: Settings) -> Reference:
    ordered = np.sort(before)
    centre = _middle(ordered)
    distances = before - centre
    gaps = ordered[1:] - ordered[:-1]
    gaps = gaps[gaps > 1e-9]
    quantum = float(gaps.min()) if gaps.size else 0.0  # the step of quantized values
    observed_noise = max(NORMAL * median(np.abs(distances)), quantum / 2)
    noise = max(observed_noise, min_noise)
    units = distances / noise
    return _make_reference(
        centre,
        noise,
        units,
        clip(units, settings.cut),
        noise_is_observed=observed_noise >= min_noise,
    )


def detrend(level: Reference, settings: Settings) -> Reference | None:
    """Return the level without its drift, centred at the next value; ``None`` if no drift is
    clear."""
    n = level.clipped.size
    if n < settings.min_drift:
        return None
    offsets = np.arange(n) - (n - 1) / 2
    squares = float(offsets @ offsets)
    slope = float(offsets @ level.clipped) / squares
    residuals = level.clipped - level.mean - slope * offsets
    detrended = _make_reference(0.0, 1.0, residuals, residuals)
    slope_error = float(
        np.sqrt(residuals @ residuals / (n - 2) * detrended.variance_inflation / squares)
    )
    if abs(slope) <= settings.slope_errors * slope_error:
        return None
    return Reference(
        centre=level.centre + level.noise * (level.mean + slope * (n + 1) / 2),
        noise=level.noise,
        distances=level.distances - level.mean - slope * offsets,
        clipped=residuals,
        mean=0.0,
        spread=detrended.spread,
        variance_inflation=detrended.variance_inflation,
        slope=slope,
    )


def median(values: Array) -> float:
    """As NumPy's median, which takes four times as long for so few values."""
    return _middle(np.sort(values))


def clip(values: Array, limit: float) -> Array:
    """As NumPy's clip, which takes twice as long for so few values."""
    clipped: Array = np.minimum(np.maximum(values, -limit), limit)
    return clipped


def _middle(ordered: Array) -> float:
    half = ordered.size // 2
    if ordered.size % 2:
        return float(ordered[half])
    return float(ordered[half - 1] + ordered[half]) / 2


def _make_reference(
    centre: float, noise: float, distances: Array, clipped: Array, *, noise_is_observed: bool = True
) -> Reference:
    mean = float(clipped.sum()) / clipped.size
    centred = clipped - mean
    squares = float(centred @ centred)
    return Reference(
        centre=centre,
        noise=noise,
        distances=distances,
        clipped=clipped,
        mean=mean,
        spread=max(sqrt(squares / (clipped.size - 1)), 0.8),
        variance_inflation=variance_inflation(centred, squares),
        noise_is_observed=noise_is_observed,
    )


def deviation(values: Array) -> float:
    centred = values - float(values.sum()) / values.size
    return sqrt(float(centred @ centred) / (values.size - 1))


def variance_inflation(centred: Array, squares: float) -> float:
    """Return the factor by which autocorrelation inflates the variance of a mean: 1 without any."""
    if squares == 0:
        return 1.0
    rho = float(centred[1:] @ centred[:-1]) / squares + 1.0 / centred.size
    rho = min(max(rho, 0.0), 0.8)
    return (1 + rho) / (1 - rho)
