"""The noise floor: how much measurements of the same code object in the same environment vary.

Such variation is no change of the code. ``noise_floor`` says how much a single value varies, and
how far such measurements have moved together for a while (another process, placement of buffers,
clocks). A change of the code is believed only beyond both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.stats.reference import NORMAL, Array

MIN_VALUES = 8
"""The fewest distances for a floor; with fewer it would be chance."""

_Z_90 = 1.645
"""Nine of ten values of normal noise lie within this distance of the centre, in standard
deviations."""
_SHIFT_Z = 2.9155
"""A tenth of the differences of two medians of n normal values exceed this multiple of their
deviation over the root of n: 1.645 (nine of ten) * 1.2533 (of a median) * the root of 2."""


@dataclass(frozen=True)
class NoiseFloor:
    """Fractions of the level: 0.01 is 1%. Zeros if too little is known."""

    noise: float = 0.0
    """Standard deviation of a value, estimated from nine of ten values."""

    shift: float = 0.0
    """Nine of ten moves from one stretch of measurements to the next were no larger."""

    n: int = 0
    """The number of values that the floor was estimated from."""


def noise_floor(stretches: Sequence[Sequence[float]]) -> NoiseFloor:
    """Return the noise floor of measurements of *one* code object in *one* environment.

    ``stretches`` are values above 0 in any one unit, in the order they were measured, those of one
    run (or revision) together. Distances within a stretch are the noise; the remaining distance
    between the medians of neighbouring stretches is the shift. Raises ``ValueError`` for a value
    that is not a positive number.
    """
    values_by_stretch = [np.asarray(values, np.float64) for values in stretches if len(values) > 0]
    for values in values_by_stretch:
        invalid = ~(np.isfinite(values) & (values > 0))
        if invalid.any():
            raise ValueError(f"{values[invalid][0]} is not a measurement: must be above 0")
    logs = [np.log(values) for values in values_by_stretch]
    n = sum(values.size for values in logs)
    medians = np.array([np.median(values) for values in logs])
    distances = np.concatenate([np.empty(0), *map(_distances, logs)])
    if distances.size < MIN_VALUES:  # one value per run: all variation is noise
        return NoiseFloor(_deviation_of(_distances(medians)), 0.0, n)
    noise = _deviation_of(distances)
    if medians.size < MIN_VALUES:
        return NoiseFloor(noise, 0.0, n)
    median_move = float(np.quantile(np.abs(np.diff(medians)), 0.9))
    chance_move = _SHIFT_Z * noise / float(np.sqrt(np.median([values.size for values in logs])))
    return NoiseFloor(noise, float(np.sqrt(max(median_move**2 - chance_move**2, 0.0))), n)


def _distances(values: Array) -> Array:
    """Return the distances from the median, scaled up because few values lie nearer to their own
    median."""
    if values.size < 2:
        return np.empty(0)
    small_sample_factor = float(np.sqrt(values.size / (values.size - 1)))
    distances: Array = np.abs(values - np.median(values)) * small_sample_factor
    return distances


def _deviation_of(distances: Array) -> float:
    if distances.size < MIN_VALUES:
        return 0.0
    from_median = NORMAL * float(np.median(distances))
    return max(from_median, float(np.quantile(distances, 0.9)) / _Z_90)
