"""Perfherder's detector, from its published description: a t-test of weighted windows.

Up to 24 values before a position (at least 12) and 12 from it on, values nearer to the position
weighing more; t above 7, and the highest among neighbours. https://wiki.mozilla.org/EngineeringProductivity/Projects/Perfherder
"""

from __future__ import annotations

import numpy as np

from tests.benchmarks.changes.series import Array

LEAST_BEFORE, BEFORE, AFTER, THRESHOLD = 12, 24, 12, 7.0


def changes(values: Array, threshold: float = THRESHOLD) -> list[int]:
    last = len(values) - AFTER
    start = max(LEAST_BEFORE, last - 2 * AFTER)  # earlier ones cannot be the highest anew
    scores = {at: _score(values, at) for at in range(start, last + 1)}
    return [
        at
        for at, score in scores.items()
        if score > threshold
        and score == max(scores.get(near, 0.0) for near in range(at - AFTER, at + AFTER + 1))
    ]


def _score(values: Array, at: int) -> float:
    before, after = values[max(0, at - BEFORE) : at][::-1], values[at : at + AFTER]
    (mean, error), (new_mean, new_error) = _weighted(before), _weighted(after)
    if mean == new_mean:
        return 0.0
    together = np.sqrt(error + new_error)
    return abs(new_mean - mean) / together if together else np.inf


def _weighted(nearest_first: Array) -> tuple[float, float]:
    """The weighted mean, and the variance as a part of how many there are."""
    n = nearest_first.size
    weights = (n - np.arange(n)) / (n + 1)
    mean = float(np.average(nearest_first, weights=weights))
    variance = float(((nearest_first - mean) ** 2).sum()) / (n - 1)
    return mean, variance / n
