"""A Gaussian process over a space's coordinates: predicts times and their uncertainty.

The kernel is Matern 5/2 with a length scale for each coordinate (Rasmussen and Williams, Gaussian
Processes for Machine Learning, sections 4.2.1 and 5.4.1); scales and noise have the highest
marginal likelihood found by a random search around the last ones. The posterior grows by one point
with one row of its Cholesky factor (Golub and Van Loan, section 6.5.4), so that a proposal among
thousands of configurations takes a few milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scheduler.tuning.space import Floats

# Prior over length scales (log-normal): coordinates are in [0, 1], so a scale well below 0.1
# remembers single points and one above 5 ignores the parameter.
_SCALE_CENTRE, _SCALE_SPREAD = float(np.log(0.7)), 1.0
_PRIOR_DRAWS, _LOCAL_DRAWS = 24, 16
_JITTER = 1e-8
_MIN_VARIANCE = 1e-9


@dataclass(frozen=True)
class Hyperparameters:
    """Length scale of each coordinate, and the noise's share of the variance."""

    scales: Floats
    noise: float


def initial_hyperparameters(dimensions: int) -> Hyperparameters:
    """Return the start of the hyperparameter search."""
    return Hyperparameters(np.full(dimensions, 0.5), 1e-3)


def fit_hyperparameters(
    points: Floats, values: Floats, start: Hyperparameters, rng: np.random.Generator
) -> Hyperparameters:
    """Return better hyperparameters than ``start`` if a random search finds some; ``points`` are n
    x d, ``values`` n and standardised."""
    dimensions = points.shape[1]
    candidates = [start]
    for _ in range(_PRIOR_DRAWS):
        scales = np.exp(rng.normal(_SCALE_CENTRE, 0.8, dimensions))
        candidates.append(Hyperparameters(scales, 10 ** rng.uniform(-4, -1)))
    for _ in range(_LOCAL_DRAWS):
        scales = start.scales * np.exp(rng.normal(0, 0.4, dimensions))
        candidates.append(Hyperparameters(scales, start.noise * np.exp(rng.normal(0, 0.5))))
    return max(candidates, key=lambda candidate: _evidence(points, values, candidate))


class Posterior:
    """The process given values at some of ``points`` (N x d), for predictions at all of them.

    ``known`` are indices into ``points``, in the order in which ``predict`` takes their values.
    """

    def __init__(
        self, points: Floats, known_indices: npt.NDArray[np.int64], hyperparameters: Hyperparameters
    ) -> None:
        self._points = points
        self._hyperparameters = hyperparameters
        self.known = [int(index) for index in known_indices]
        self._factor = _cholesky(points[known_indices], hyperparameters)
        covariance = _kernel(points[known_indices], points, hyperparameters.scales)
        solved = _solve_triangular(self._factor, covariance)
        self._whitened_covariance = np.empty((2 * len(known_indices) + 16, len(points)))
        self._whitened_covariance[: len(known_indices)] = solved
        self._explained_variance: Floats = np.einsum("ij,ij->j", solved, solved)

    def add(self, index: int) -> None:
        """Add an index whose value is known."""
        known_count, points = len(self.known), self._points
        covariance = _kernel(points[[index]], points, self._hyperparameters.scales)[0]
        factor_row = self._whitened_covariance[:known_count, index].copy()
        squared_pivot = 1.0 + self._hyperparameters.noise + _JITTER - float(factor_row @ factor_row)
        pivot = float(np.sqrt(max(squared_pivot, _JITTER)))
        new_row = (covariance - factor_row @ self._whitened_covariance[:known_count]) / pivot
        if known_count == len(self._whitened_covariance):
            self._whitened_covariance = np.vstack(
                [self._whitened_covariance, np.empty_like(self._whitened_covariance)]
            )
        self._whitened_covariance[known_count] = new_row
        self._explained_variance += new_row * new_row
        factor = np.zeros((known_count + 1, known_count + 1))
        factor[:known_count, :known_count] = self._factor
        factor[known_count, :known_count], factor[known_count, known_count] = factor_row, pivot
        self._factor = factor
        self.known.append(index)

    def predict(self, values: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation at every point, in the unit of ``values``
        (standardised, one per known index)."""
        known_count = len(self.known)
        weights = _solve_triangular(self._factor, values)
        variance = max(float(weights @ weights) / known_count, _MIN_VARIANCE)
        unexplained = np.maximum(1.0 - self._explained_variance, _MIN_VARIANCE)
        return weights @ self._whitened_covariance[:known_count], np.sqrt(unexplained * variance)


def _evidence(points: Floats, values: Floats, hyperparameters: Hyperparameters) -> float:
    """Return the log marginal likelihood (its variance integrated out) plus the scales' log
    prior."""
    factor = _cholesky(points, hyperparameters)
    solved = _solve_triangular(factor, values)
    variance = max(float(solved @ solved) / len(values), _MIN_VARIANCE)
    likelihood = -0.5 * len(values) * np.log(variance) - np.log(np.diag(factor)).sum()
    prior = -0.5 * (((np.log(hyperparameters.scales) - _SCALE_CENTRE) / _SCALE_SPREAD) ** 2).sum()
    return float(likelihood + prior)


def _cholesky(points: Floats, hyperparameters: Hyperparameters) -> Floats:
    """Return the lower Cholesky factor of the kernel matrix."""
    matrix = _kernel(points, points, hyperparameters.scales)
    matrix[np.diag_indices_from(matrix)] += hyperparameters.noise + _JITTER
    factor: Floats = np.linalg.cholesky(matrix).astype(np.float64)
    return factor


def _solve_triangular(factor: Floats, values: Floats) -> Floats:
    """Solve factor x = values for x, with a lower triangular factor (n x n)."""
    from scipy.linalg import solve_triangular  # noqa: PLC0415 - only a search needs it

    solved: Floats = solve_triangular(factor, values, lower=True, check_finite=False)
    return solved


def _kernel(a: Floats, b: Floats, scales: Floats) -> Floats:
    a, b = a / scales, b / scales
    squared = (a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2.0 * a @ b.T
    distance = np.sqrt(5.0 * np.maximum(squared, 0.0))
    kernel: Floats = (1.0 + distance + distance**2 / 3.0) * np.exp(-distance)
    return kernel
