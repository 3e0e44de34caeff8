"""The default strategy: a model of the space is fitted to what was seen, and asked where to look.

It begins with configurations far from each other (or, given an analytic cost model, with those
that the model ranks first), then tries, one at a time, the configuration with the largest expected
improvement (Jones, Schonlau and Welch, 1998). Times are modelled by their logarithm and cut off
above: how bad the bad half of a space is says little about where the best lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import erf
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from scheduler.tuning import surrogate
from scheduler.tuning.space import Floats, Space
from scheduler.tuning.strategies.strategy import History

Indices: TypeAlias = npt.NDArray[np.int64]

_SPREAD_SAMPLE = 64  # how many are looked at for one that is far from the rest
_erf = np.vectorize(erf, otypes=[float])


class Guided:
    """Expected improvement over a Gaussian process.

    ``expected_ns`` is the cost model's time of each configuration, where there is one: the process
    then models how far the measured times are from it.
    """

    def __init__(
        self, space: Space, rng: np.random.Generator, expected_ns: Sequence[float] | None = None
    ) -> None:
        self._space = space
        self._rng = rng
        self._points = space.coordinates
        self._expected = None if expected_ns is None else np.log(np.asarray(expected_ns))
        self._initial = max(6, 2 * self._points.shape[1])
        self._hyperparameters = surrogate.initial_hyperparameters(self._points.shape[1])
        self._refit_at = 0

    def propose(self, history: History) -> int | None:
        """The most promising configuration that was not tried."""
        left = history.untried
        if not left.size:
            return None
        if len(history) < self._initial or history.best is None:
            return self._first(history, left)
        values, offset = self._values(history)
        points, apart = self._points[history.tried], values - offset[history.tried]
        if len(history) >= self._refit_at:
            self._hyperparameters = surrogate.improve(
                points, apart, self._hyperparameters, self._rng
            )
            self._refit_at = len(history) + max(1, len(history) // 10)
        model = surrogate.fit(points, apart, self._hyperparameters)
        mean, deviation = model.predict(self._points[left])
        expected = mean + offset[left]
        gain = expected_improvement(expected, deviation, float(values.min()))
        return int(left[int(gain.argmax())])

    def _first(self, history: History, left: Indices) -> int:
        """A first look: the cost model's favourites, or far from all that was tried."""
        if self._expected is not None and len(history) % 2 == 0:
            return int(left[int(self._expected[left].argmin())])
        if not len(history):
            return int(self._rng.choice(left))
        some = self._rng.choice(left, min(_SPREAD_SAMPLE, left.size), replace=False)
        apart = self._points[some][:, None] - self._points[history.tried][None]
        return int(some[int((apart**2).sum(axis=2).min(axis=1).argmax())])

    def _values(self, history: History) -> tuple[Floats, Floats]:
        """Standardised log times of what was tried, and in the same unit what the cost model
        says of each configuration (0 without one)."""
        times = np.array(history.times)
        failed = np.isnan(times)
        logs = np.log(np.where(failed, np.nanmax(times), times))
        logs = np.minimum(logs, 2 * np.median(logs) - logs.min())
        mean, deviation = logs.mean(), logs.std() + 1e-9
        offset = np.zeros(len(self._space))
        if self._expected is not None:
            offset = self._trust(logs, history) * (self._expected - self._expected.mean())
            offset /= deviation
        return (logs - mean) / deviation, offset

    def _trust(self, logs: Floats, history: History) -> float:
        """How much of the cost model's differences showed in the measurements: 0 to 1, by least
        squares."""
        assert self._expected is not None
        expected = self._expected[history.tried]
        expected = expected - expected.mean()
        scale = float(expected @ expected)
        if scale == 0.0:
            return 0.0
        return float(np.clip(expected @ (logs - logs.mean()) / scale, 0.0, 1.0))


def expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """By how much each is expected to undercut ``best`` (a minimum), given mean and deviation."""
    apart = (best - mean) / deviation
    below = 0.5 * (1.0 + _erf(apart / np.sqrt(2.0)))
    density = np.exp(-0.5 * apart**2) / np.sqrt(2.0 * np.pi)
    gain: Floats = deviation * (apart * below + density)
    return gain
