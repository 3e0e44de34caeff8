"""What measurements of the same code object in the same environment vary by: the noise floor.

What moves there is no change of the code. ``noise_floor`` says how much a single value varies, and
by how much such measurements have moved together for a while (another process, placement of
buffers, clocks): a change of other code is believed only beyond both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LEAST_VALUES = 8
"""A floor of fewer distances than that would be chance."""

_NORMAL = 1.4826
_NINE_OF_TEN = 1.645
"""Nine of ten values of normal noise lie no further from the centre, in standard deviations."""


@dataclass(frozen=True)
class NoiseFloor:
    """As parts of the level: 0.01 is 1%. Zeros where too little is known."""

    noise: float = 0.0
    """Standard deviation of a value, as far as nine of ten values show it."""

    shift: float = 0.0
    """Half of the moves from one stretch of measurements to the next were at least that."""

    n: int = 0
    """Values that this was learnt from."""


def noise_floor(stretches: Sequence[Sequence[float]]) -> NoiseFloor:
    """The floor of measurements of *one* code object in *one* environment.

    ``stretches`` are values above 0 in any one unit, in the order they were measured, those of one
    run (or revision) together. Distances within a stretch are the noise; what remains between the
    medians of neighbouring stretches beyond it is the shift. Raises ``ValueError`` for a value
    that is not a positive number.
    """
    logs = [np.log(_positive(stretch)) for stretch in stretches if len(stretch) > 0]
    within = [
        (values - np.median(values)) * np.sqrt(values.size / (values.size - 1))
        for values in logs
        if values.size > 1
    ]
    n = sum(values.size for values in logs)
    together = np.abs(np.concatenate(within)) if within else np.empty(0)
    medians = np.array([np.median(values) for values in logs])
    moves = np.abs(np.diff(medians))
    if together.size < LEAST_VALUES:  # a value a run: all of it is noise
        return NoiseFloor(_deviation(np.abs(medians - np.median(medians))), 0.0, n) if n else NoiseFloor()
    noise = _deviation(together)
    if moves.size + 1 < LEAST_VALUES:
        return NoiseFloor(noise, 0.0, n)
    expected = noise * np.sqrt(2 * np.pi / 2 / np.median([values.size for values in logs]))
    return NoiseFloor(noise, float(np.sqrt(max(np.median(moves) ** 2 - expected**2, 0.0))), n)


def _deviation(distances: np.ndarray) -> float:
    if distances.size < LEAST_VALUES:
        return 0.0
    return float(max(_NORMAL * np.median(distances), np.quantile(distances, 0.9) / _NINE_OF_TEN))


def _positive(stretch: Sequence[float]) -> np.ndarray:
    values = np.asarray(stretch, dtype=np.float64)
    bad = ~(np.isfinite(values) & (values > 0))
    if bad.any():
        raise ValueError(f"{values[bad][0]} is no measurement: it must be above 0")
    return values
