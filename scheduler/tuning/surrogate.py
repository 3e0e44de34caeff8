"""A Gaussian process over a space's coordinates: what a time will be, and how sure that is.

Matern 5/2 kernel with a length scale for each coordinate (Rasmussen and Williams, Gaussian
Processes for Machine Learning, sections 4.2.1 and 5.4.1); scales and noise are those of the
highest marginal likelihood found by a random search around the last ones. A few hundred points
need a few milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler.tuning.space import Floats

# Prior over length scales (log-normal): coordinates are in [0, 1], so a scale well below 0.1
# remembers single points and one above 5 ignores the parameter.
_SCALE_CENTRE, _SCALE_SPREAD = np.log(0.7), 1.0
_FRESH, _NEAR = 24, 16
_JITTER = 1e-9


@dataclass(frozen=True)
class Hyperparameters:
    """Length scale of each coordinate, and the noise's share of the variance."""

    scales: Floats
    noise: float


@dataclass(frozen=True)
class Surrogate:
    """A process fitted to ``points`` (n x d) and standardised ``values`` (n)."""

    points: Floats
    hyperparameters: Hyperparameters
    weights: Floats
    factor: Floats  # Cholesky factor of the kernel matrix, lower
    variance: float

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation at each point, in the values' unit."""
        across = _kernel(points, self.points, self.hyperparameters.scales)
        mean = across @ self.weights
        solved = np.linalg.solve(self.factor, across.T)
        left = np.maximum(1.0 - np.einsum("ij,ij->j", solved, solved), _JITTER)
        return mean, np.sqrt(left * self.variance)


def initial_hyperparameters(dimensions: int) -> Hyperparameters:
    """Where the search for better ones starts."""
    return Hyperparameters(np.full(dimensions, 0.5), 1e-3)


def fit(points: Floats, values: Floats, hyperparameters: Hyperparameters) -> Surrogate:
    """The process with these hyperparameters."""
    factor = _factor(points, hyperparameters)
    weights = np.linalg.solve(factor.T, np.linalg.solve(factor, values))
    variance = max(float(values @ weights) / len(values), _JITTER)
    return Surrogate(points, hyperparameters, weights, factor, variance)


def improve(
    points: Floats, values: Floats, start: Hyperparameters, rng: np.random.Generator
) -> Hyperparameters:
    """Better hyperparameters than ``start`` where a random search finds them."""
    dimensions = points.shape[1]
    tried = [start]
    for _ in range(_FRESH):
        scales = np.exp(rng.normal(_SCALE_CENTRE, 0.8, dimensions))
        tried.append(Hyperparameters(scales, 10 ** rng.uniform(-4, -1)))
    for _ in range(_NEAR):
        scales = start.scales * np.exp(rng.normal(0, 0.4, dimensions))
        tried.append(Hyperparameters(scales, start.noise * np.exp(rng.normal(0, 0.5))))
    return max(tried, key=lambda one: _evidence(points, values, one))


def _evidence(points: Floats, values: Floats, one: Hyperparameters) -> float:
    """Log marginal likelihood (its variance integrated out) plus the scales' log prior."""
    factor = _factor(points, one)
    solved = np.linalg.solve(factor, values)
    variance = max(float(solved @ solved) / len(values), _JITTER)
    likelihood = -0.5 * len(values) * np.log(variance) - np.log(np.diag(factor)).sum()
    prior = -0.5 * (((np.log(one.scales) - _SCALE_CENTRE) / _SCALE_SPREAD) ** 2).sum()
    return float(likelihood + prior)


def _factor(points: Floats, one: Hyperparameters) -> Floats:
    matrix = _kernel(points, points, one.scales)
    matrix[np.diag_indices_from(matrix)] += one.noise + _JITTER
    factor: Floats = np.linalg.cholesky(matrix).astype(np.float64)
    return factor


def _kernel(a: Floats, b: Floats, scales: Floats) -> Floats:
    a, b = a / scales, b / scales
    squared = (a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2.0 * a @ b.T
    distance = np.sqrt(5.0 * np.maximum(squared, 0.0))
    kernel: Floats = (1.0 + distance + distance**2 / 3.0) * np.exp(-distance)
    return kernel
