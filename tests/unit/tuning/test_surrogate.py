"""The process: grown point by point it says what it says when it is fitted at once."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.tuning.surrogate import Hyperparameters, Posterior, fit_hyperparameters


def test_a_grown_posterior_is_the_fitted_one() -> None:
    rng = np.random.default_rng(0)
    points = rng.random((50, 3))
    values = np.sin(points.sum(axis=1) * 3)
    chosen = Hyperparameters(np.array([0.5, 1.0, 2.0]), 1e-3)
    whole = Posterior(points, np.arange(30), chosen)
    grown = Posterior(points, np.arange(5), chosen)
    for place in range(5, 30):
        grown.add(place)
    for mine, theirs in zip(grown.predict(values[:30]), whole.predict(values[:30]), strict=True):
        assert mine == pytest.approx(theirs, abs=1e-6)


def test_it_is_sure_where_it_knows_and_near_the_truth_elsewhere() -> None:
    rng = np.random.default_rng(1)
    points = rng.random((200, 2))
    values = points[:, 0] ** 2 - points[:, 1]
    values = (values - values.mean()) / values.std()
    known = np.arange(60)
    fitted = fit_hyperparameters(
        points[known], values[known], Hyperparameters(np.full(2, 0.5), 1e-3), rng
    )
    mean, deviation = Posterior(points, known, fitted).predict(values[known])
    assert np.abs(mean[60:] - values[60:]).max() < 0.2
    assert deviation[known].max() < deviation[60:].max()
