"""Large steps at their first values, before the detector can tell them from spikes.

A step is suspected while all of the last values, at most ``MAX_SUSPECTED``, lie on one side of the
level before them and further off than chance explains. It is no change: it is confirmed by
``changes.append_value`` at its fourth value or later, or disproved by the next value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scheduler.stats.prediction import MAX_HISTORY, MIN_HISTORY, Floats, History, predict
from scheduler.stats.reference import NORMAL

MAX_SUSPECTED = 7
"""The most values of a suspected step: more are a level, in which the detector has found none."""

MIN_LEVEL = 4
"""The fewest values of the level before the step."""

RATE = 3e-4
"""The probability that the noise alone exceeds the limit, for each value. The team that Kiln is
built for measures 100,000 values a day: what is shown must be rare."""

_NEAR = 3.5
"""A last value that is nearer to the median than this multiple of the noise is not examined: the
limit is twice as far, and a third nearer on the short side of skewed noise."""


@dataclass(frozen=True)
class Suspicion:
    """The last ``n`` values lie off; ``ratio`` is their median by the level before them."""

    n: int
    ratio: float


def suspected_steps(
    histories: Sequence[History], min_effects: Floats, least_noise: float
) -> list[Suspicion | None]:
    """Return for each series the step that its last values suggest; most have none, which costs
    little. ``min_effects`` are the fractions below which a step is ignored."""
    is_far = _last_is_far(histories, min_effects)
    steps: list[Suspicion | None] = [None] * len(histories)
    for index in np.flatnonzero(is_far).tolist():
        steps[index] = _suspected_step(histories[index], float(min_effects[index]), least_noise)
    return steps


def _last_is_far(histories: Sequence[History], min_effects: Floats) -> npt.NDArray[np.bool_]:
    """Return whether the last value of each series is far from the median of the last ones: a quick
    test that nearly all values fail."""
    size = MAX_HISTORY + MAX_SUSPECTED
    values = np.full((len(histories), size), np.nan)
    for row, history in enumerate(histories):
        level = history.values[history.level_starts[-1] :][-size:]
        values[row, size - level.size :] = level
    logs = np.log(values)
    distances = np.abs(logs - _row_medians(logs)[:, None])
    noise = NORMAL * _row_medians(distances)
    is_far: npt.NDArray[np.bool_] = distances[:, -1] >= np.maximum(
        _NEAR * noise, np.log1p(min_effects)
    )
    return is_far


def _row_medians(values: Floats) -> Floats:
    """As NumPy's ``nanmedian`` of each row, which takes ten times as long; each has a value."""
    ordered = np.sort(values, axis=1)  # NaN last
    last = np.maximum((~np.isnan(values)).sum(axis=1) - 1, 0)
    rows = np.arange(last.size)
    medians: Floats = (ordered[rows, last // 2] + ordered[rows, (last + 1) // 2]) / 2
    return medians


def _suspected_step(history: History, min_effect: float, least_noise: float) -> Suspicion | None:
    level_size = history.values.size - history.level_starts[-1]
    most = min(MAX_SUSPECTED, level_size - MIN_LEVEL, history.values.size - MIN_HISTORY)
    if most < 1:
        return None
    before = [History(history.values[:-n], history.level_starts) for n in range(1, most + 1)]
    prediction = predict(before, least_noise)
    steps = np.log(history.values[: -most - 1 : -1])  # the last value first
    # The nearest of the last n values decides; values on both sides of the level are no step.
    is_above = steps[0] > prediction.levels
    nearest = np.where(is_above, np.minimum.accumulate(steps), np.maximum.accumulate(steps))
    is_beyond = (nearest > prediction.levels) == is_above
    counts = np.ones(most, np.int64)
    chances = np.maximum(
        prediction.p_values(nearest, counts, min_effect),
        prediction.repeat_chances(nearest - prediction.levels, counts),
    )
    is_suspected = is_beyond & (chances <= RATE)
    if not is_suspected.any():
        return None
    n = int(np.flatnonzero(is_suspected)[-1]) + 1
    ratio = float(np.exp(np.median(steps[:n]) - prediction.levels[n - 1]))
    return Suspicion(n, ratio)
