"""Tells whether a series moved from one level to another in a step or by drifting."""

from __future__ import annotations

import numpy as np

from scheduler.track.sides import Side

_MAX_POINTS = 24
"""The most points examined on each side."""

_MIN_POINTS = 12
"""The fewest points, both sides together, for a drift."""

_MIN_RAMP_POINTS = 5
"""The fewest points that a drift lasts: anything faster is a step."""

_MIN_LOG_RATIO = 5.0
"""The logarithm of the likelihoods' ratio above which a ramp is preferred to a step: a ramp has one
parameter more, and more possible positions."""


def is_ramp(before: Side, after: Side) -> bool:
    """Whether a ramp between two levels fits the points clearly better than any step. The fit uses
    sums of absolute residuals, as for Laplace's distribution, so that spikes weigh little."""
    points = (*reversed(before.points[:_MAX_POINTS]), *after.points[:_MAX_POINTS])
    n = len(points)
    if n < _MIN_POINTS:
        return False
    logs = np.log([point.value for point in points])
    starts, ends = np.triu_indices(n, 1)
    lengths = ends - starts
    shapes = np.clip((np.arange(n) - starts[:, None]) / lengths[:, None], 0.0, 1.0)
    # Each shape is scaled and shifted to the least-squares fit.
    centred = shapes - shapes.mean(axis=1, keepdims=True)
    deviations = logs - logs.mean()
    heights = centred @ deviations / (centred**2).sum(axis=1)
    costs = np.abs(deviations - heights[:, None] * centred).sum(axis=1)
    step, ramp = costs[lengths == 1].min(), costs[lengths > _MIN_RAMP_POINTS].min()
    min_cost = 1e-4 * n  # quantized times may fit exactly
    return bool(n * np.log((step + min_cost) / (ramp + min_cost)) > _MIN_LOG_RATIO)
