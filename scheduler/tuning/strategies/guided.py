"""The default strategy: fits a model of the space to the results, and uses it to choose.

It begins with a few configurations far from each other (or, given an analytic cost model, with
those that the model ranks first), then tries, one at a time, the configuration with the largest
expected improvement (Jones, Schonlau and Welch, 1998).

The bad half of a space says little about where the best lies, so times are modelled in two views
that alternate: their logarithm clipped at the median, and the root of the logarithm of their ratio
to the best, which spreads nearly optimal values. Each view shows what the other hides.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import erfc
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from scheduler.tuning import surrogate
from scheduler.tuning.space import Floats, Space
from scheduler.tuning.strategies.strategy import History

Indices: TypeAlias = npt.NDArray[np.int64]

_INITIAL_TRIALS = 6  # tried before there is a model
_SPREAD_SAMPLE = 64  # random candidates among which one far from the rest is chosen
# Bounds that keep a proposal at a few milliseconds: configurations that are predicted, points that
# the model knows, and points that its hyperparameters are fitted to.
_MAX_PREDICTED, _MAX_KNOWN, _MAX_FITTED = 5000, 300, 150
_CENTRES = 5  # best configurations whose neighbours are always predicted
_ROOT_FLOOR = 0.01
_MIN_GAIN = 1e-12
_erfc = np.vectorize(erfc, otypes=[float])


class GuidedSearch:
    """Expected improvement over a Gaussian process.

    If there is a cost model, ``expected_ns`` has its time of each configuration: the process then
    models the deviation of the measured times from it.
    """

    def __init__(
        self, space: Space, rng: np.random.Generator, expected_ns: Sequence[float] | None = None
    ) -> None:
        self._space = space
        self._rng = rng
        self._points = space.coordinates
        self._expected = None if expected_ns is None else np.log(np.asarray(expected_ns))
        self._hyperparameters = surrogate.initial_hyperparameters(self._points.shape[1])
        self._refit_at = 0
        self._predicted: Indices = np.zeros(0, dtype=np.int64)
        self._predicted_position: dict[int, int] = {}
        self._model_known: set[int] = set()  # known to the model, or excluded
        self._posterior: surrogate.Posterior | None = None

    def propose(self, history: History) -> int | None:
        """Return the most promising untried configuration."""
        untried = history.untried
        if not untried.size:
            return None
        if len(history) < _INITIAL_TRIALS or history.best is None:
            return self._propose_initial(history, untried)
        values, offset = self._values(history)
        posterior = self._update_posterior(history, values, offset)
        known_indices = self._predicted[posterior.known]
        mean, deviation = posterior.predict(values[known_indices] - offset[known_indices])
        best = float(values[history.tried].min())
        scores = expected_improvement(mean + offset[self._predicted], deviation, best)
        if scores.max() < _MIN_GAIN:  # no improvement expected: explore
            scores = deviation.copy()
        scores[
            [self._predicted_position[i] for i in history.tried if i in self._predicted_position]
        ] = -1.0
        chosen = int(scores.argmax())
        return int(self._predicted[chosen]) if scores[chosen] >= 0.0 else int(untried[0])

    def _propose_initial(self, history: History, untried: Indices) -> int:
        """Return an initial configuration: the cost model's best, or one far from all tried
        ones."""
        if self._expected is not None and len(history) % 2 == 0:
            return int(untried[int(self._expected[untried].argmin())])
        if not len(history):
            return int(self._rng.choice(untried))
        sample = self._rng.choice(untried, min(_SPREAD_SAMPLE, untried.size), replace=False)
        difference = self._points[sample][:, None] - self._points[history.tried][None]
        return int(sample[int((difference**2).sum(axis=2).min(axis=1).argmax())])

    # ---- the model

    def _update_posterior(
        self, history: History, values: Floats, offset: Floats
    ) -> surrogate.Posterior:
        """Return the posterior given all tried configurations; from time to time with new
        hyperparameters."""
        tried = set(history.tried)
        new_indices = [index for index in history.tried if index not in self._model_known]
        can_extend = self._model_known <= tried and all(
            index in self._predicted_position for index in new_indices
        )
        if len(self._space) > _MAX_PREDICTED and history.best is not None:
            # A new best can only be refined if its neighbours are predicted.
            can_extend = can_extend and history.best[0] in self._model_known
        if self._posterior is None or len(history) >= self._refit_at or not can_extend:
            self._refit_at = len(history) + max(1, len(history) // 10)
            self._model_known = tried
            return self._refit_posterior(history, values - offset)
        for index in new_indices:
            self._posterior.add(self._predicted_position[index])
        self._model_known = tried
        return self._posterior

    def _refit_posterior(self, history: History, residuals: Floats) -> surrogate.Posterior:
        tried = np.array(history.tried)
        order = tried[np.argsort(residuals[tried], kind="stable")]
        fitted = self._subsample(order, _MAX_FITTED)
        values = residuals[fitted]
        values = (values - values.mean()) / (values.std() + 1e-9)
        self._hyperparameters = surrogate.fit_hyperparameters(
            self._points[fitted], values, self._hyperparameters, self._rng
        )
        known_indices = self._subsample(order, _MAX_KNOWN)
        if len(self._space) <= _MAX_PREDICTED:
            self._predicted = np.arange(len(self._space))
        else:  # the neighbours of the best and a random sample
            neighbours = [
                self._space.neighbours(int(i), len(self._space)) for i in order[:_CENTRES]
            ]
            count = min(_MAX_PREDICTED, history.untried.size)
            random_sample = self._rng.choice(history.untried, count, replace=False)
            self._predicted = np.unique(np.concatenate([known_indices, *neighbours, random_sample]))
        self._predicted_position = {
            int(index): position for position, index in enumerate(self._predicted)
        }
        known_positions = np.array(
            [self._predicted_position[int(index)] for index in known_indices]
        )
        points = self._points[self._predicted]
        self._posterior = surrogate.Posterior(points, known_positions, self._hyperparameters)
        return self._posterior

    def _subsample(self, order: Indices, max_count: int) -> Indices:
        """Return all, or the better half of ``max_count`` plus as many of the rest, drawn at
        random."""
        if len(order) <= max_count:
            return order
        random_rest = self._rng.choice(
            order[max_count // 2 :], max_count - max_count // 2, replace=False
        )
        return np.concatenate([order[: max_count // 2], random_rest])

    def _values(self, history: History) -> tuple[Floats, Floats]:
        """Return each configuration's standardised value in the current view (untried ones have
        none), and the cost model's prediction in the same unit."""
        times = np.array(history.times)
        failed = np.isnan(times)
        logs = np.log(np.where(failed, np.nanmax(times), times))
        view = np.minimum(logs, np.median(logs))
        if len(history) % 2 and self._expected is None:
            view = np.sqrt(view - view.min() + _ROOT_FLOOR)
        mean, deviation = view.mean(), view.std() + 1e-9
        values = np.full(len(self._space), np.nan)
        values[history.tried] = (view - mean) / deviation
        offset = np.zeros(len(self._space))
        if self._expected is not None:
            expected = self._expected[history.tried]
            expected = expected - expected.mean()
            scale = float(expected @ expected)
            # How much of the cost model's differences the measurements show, by least squares.
            weight = expected @ (view - mean) / scale if scale else 0.0
            offset = np.clip(weight, 0.0, 1.0) * (self._expected - self._expected.mean())
            offset /= deviation
        return values, offset


def expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """Return by how much each is expected to undercut ``best`` (a minimum), given mean and
    deviation."""
    z = (best - mean) / deviation
    probability = 0.5 * _erfc(-z / np.sqrt(2.0))
    density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    gain: Floats = deviation * (z * probability + density)
    return gain
