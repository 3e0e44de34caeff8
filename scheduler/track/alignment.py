"""Tests whether an attribute changed where the level of a series moved.

Near a change other things change all the time: commits without an effect, hosts that take turns. A
change is explained only by what differs where the level moved, and noise limits how well that place
is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from scheduler.track.sides import Point, Side

_TOLERANCE = 3.0
"""A boundary is as good as the best one if its cost exceeds the best by no more than this, in units
of the noise."""

_MAX_COST = 8.0
"""Distances from a level are clipped here, in units of the noise: a spike says little."""

_MIN_NOISE = 0.002
"""The least noise assumed of points, as a fraction of a value."""

_MIN_OVERLAP = 0.5
"""From this overlap on, an attribute's values count as the same on both sides: they take turns."""


class Relation(StrEnum):
    """How one attribute's values on both sides compare. ELSEWHERE: it changed near the change, but
    not where the level moved."""

    SAME = "same"
    DIFFERS = "differs"
    ELSEWHERE = "elsewhere"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Finding:
    """One attribute: the relation, and the two points around the place where it changed (if it did
    not, the nearest ones). ``offset`` is the distance from the change to that place in points
    (negative: before it)."""

    relation: Relation
    before: Point
    after: Point
    offset: int = 0


@dataclass(frozen=True)
class Window:
    """The points near a change, in order of time from ``before``'s to ``after``'s."""

    before: Side
    after: Side

    @cached_property
    def points(self) -> tuple[Point, ...]:
        return (*reversed(self.before.near), *self.after.near)

    @property
    def boundary(self) -> int:
        """Index of the first point after the change."""
        return len(self.before.near)

    @cached_property
    def noise(self) -> float:
        """The robust standard deviation of a point's logarithm about its side's level."""
        deviations = np.concatenate([_side_deviations(self.before), _side_deviations(self.after)])
        spread = 1.4826 * float(np.median(np.abs(deviations))) if deviations.size > 2 else 0.0
        widths = [(point.high - point.low) / point.value / 4 for point in self.points]
        return max(spread, float(np.median(widths)), _MIN_NOISE)

    @cached_property
    def candidate_boundaries(self) -> frozenset[int]:
        """Return where the level may have moved: indices of the first point of the new level."""
        if len(self.points) == 2:
            return frozenset({1})  # as in comparisons of thousands of series
        logs = np.log([point.value for point in self.points])
        levels = np.log([self.before.level, self.after.level])
        cost = np.minimum(np.abs(logs[:, None] - levels) / self.noise, _MAX_COST)
        sums = np.concatenate([np.zeros((1, 2)), np.cumsum(cost, axis=0)])
        split_costs = sums[:, 0] + (sums[-1, 1] - sums[:, 1])
        inner_costs = split_costs[1:-1]
        return frozenset(
            (1 + np.flatnonzero(inner_costs <= inner_costs.min() + _TOLERANCE)).tolist()
        )

    def finding(self, label: Callable[[Point], str], at_boundary: bool = False) -> Finding:
        """Return how an attribute's values, as texts ("": unknown), compare on both sides. With
        ``at_boundary`` a change between the two sides counts even if the values say that the level
        moved a few points away."""
        labels = [label(point) for point in self.points]
        nearest = (self.before.nearest, self.after.nearest)
        if not any(labels[: self.boundary]) or not any(labels[self.boundary :]):
            return Finding(Relation.UNKNOWN, *nearest)
        known_indices = [index for index, text in enumerate(labels) if text]
        steps = [
            (earlier, later)
            for earlier, later in pairwise(known_indices)
            if labels[earlier] != labels[later]
        ]
        boundaries = self.candidate_boundaries | ({self.boundary} if at_boundary else set())
        steps_here = [
            (earlier, later)
            for earlier, later in steps
            if boundaries & {*range(earlier + 1, later + 1)}
        ]
        before_counts, after_counts = (
            Counter(labels[: self.boundary]),
            Counter(labels[self.boundary :]),
        )
        del before_counts[""], after_counts[""]
        overlap = sum(
            min(count / before_counts.total(), after_counts[text] / after_counts.total())
            for text, count in before_counts.items()
        )
        if steps_here and overlap < _MIN_OVERLAP:
            return self._nearest_finding(Relation.DIFFERS, steps_here)
        take_turns = len(steps) >= len({text for text in labels if text})
        if steps and not steps_here and not take_turns:
            return self._nearest_finding(Relation.ELSEWHERE, steps)
        return Finding(Relation.SAME, *nearest)

    def _nearest_finding(self, relation: Relation, steps: Sequence[tuple[int, int]]) -> Finding:
        """Return the finding for the step that is nearest to the change."""
        earlier, later = min(steps, key=lambda step: abs(sum(step) + 1 - 2 * self.boundary))
        offset = (
            later - self.boundary if later < self.boundary else max(0, earlier + 1 - self.boundary)
        )
        return Finding(relation, self.points[earlier], self.points[later], offset)


def _side_deviations(side: Side) -> npt.NDArray[np.float64]:
    logs = np.log([point.value for point in side.points])
    deviations: npt.NDArray[np.float64] = logs - np.median(logs)
    return deviations
