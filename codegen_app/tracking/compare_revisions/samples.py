"""Convert stored points to the samples that are compared."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from codegen_app.tracking.compare_revisions.queries import (
    StoredConditions,
    StoredPoint,
    StoredSeries,
)
from scheduler.stats.intervals import Interval
from scheduler.track.compared_series import MeasuredSeries
from scheduler.track.facts import environment_of, parse_readings, point_of
from scheduler.track.ratios import MIN_RATIO_SAMPLES
from scheduler.track.sides import CodeObject, Environment, Point

HIGHER = "higher"
NO_SAMPLES = np.empty(0)
SMALLEST = 1e-300  # smaller values have no finite inverse


class Conditions:
    """The conditions that points were measured under: each environment is parsed once, however many
    points share it."""

    def __init__(self, stored: Mapping[int, StoredConditions]) -> None:
        self._stored = dict(stored)
        self._environments: dict[tuple[str, str], Environment] = {}
        self._readings: dict[str | None, Mapping[str, float]] = {}

    def __contains__(self, conditions: int) -> bool:
        return conditions in self._stored

    def add(self, stored: Mapping[int, StoredConditions]) -> None:
        """Add further conditions."""
        self._stored.update(stored)

    def environment(self, conditions: int) -> str:
        """Return a key that is equal for points measured in the same recorded environment."""
        return self._stored[conditions].environment

    def point(self, series: StoredSeries, point: StoredPoint) -> Point:
        """Return the point with the fields that decide whether it can be compared; finding a cause
        needs all of them (``full_point``)."""
        stored = self._stored[point.conditions]
        environment = stored.environment, series.device
        if environment not in self._environments:
            facts = json.loads(stored.environment)
            self._environments[environment] = environment_of(facts, series.device)
        if stored.clocks not in self._readings:
            clocks = json.loads(stored.clocks) if stored.clocks else None
            self._readings[stored.clocks] = parse_readings(clocks)
        return Point(
            value=point.value,
            low=point.value if point.low is None else point.low,
            high=point.value if point.high is None else point.high,
            n=point.n,
            code=CodeObject(stored.code_digest, stored.instructions_digest),
            environment=self._environments[environment],
            readings=self._readings[stored.clocks],
        )


def full_point(
    facts: Mapping[str, Any], series: StoredSeries, point: StoredPoint, revision: str
) -> Point:
    """Return a point with everything recorded about it."""
    return point_of(
        facts,
        value=point.value,
        low=point.low,
        high=point.high,
        n=point.n,
        revision=revision,
        target=series.target,
        device=series.device,
        toolchain=series.toolchain,
    )


def match_environments(
    before: Sequence[StoredPoint], after: Sequence[StoredPoint], conditions: Conditions
) -> tuple[Sequence[StoredPoint], Sequence[StoredPoint]]:
    """Return the points of each side to compare: if a side was measured in several environments,
    those of the newest environment that both have, else of each side's newest. Points are newest
    first."""
    if len({point.conditions for side in (before, after) for point in side}) <= 1:
        return before, after
    old, new = (
        {conditions.environment(point.conditions): None for point in side}
        for side in (before, after)
    )
    if len(old) <= 1 and len(new) <= 1:
        return before, after
    common = next((environment for environment in new if environment in old), None)
    chosen = [common or next(iter(old), ""), common or next(iter(new), "")]
    return tuple(  # type: ignore[return-value]
        [point for point in side if conditions.environment(point.conditions) == environment]
        for side, environment in zip((before, after), chosen, strict=True)
    )


def side_samples(
    name: str,
    groups: Sequence[str],
    series: StoredSeries,
    points: Sequence[StoredPoint],
    newest: Point | None,
) -> MeasuredSeries:
    """Return a side's samples as times: values for which higher is better are inverted (1 / value).

    With ``MIN_RATIO_SAMPLES`` points or more, the samples are their values. With fewer, they are
    the samples of the points that have at least as many; if none has, the interval of the newest
    point that has one over as many; else the values.
    """
    values = [point.value for point in points]
    kept: list[float] = []
    interval = None
    if len(points) < MIN_RATIO_SAMPLES:
        least = 1 if len(points) == 1 else MIN_RATIO_SAMPLES
        kept = [
            sample
            for point in points
            if point.samples and len(point.samples) >= least
            for sample in point.samples
        ]
        if not kept:
            intervals = (
                Interval(point.value, point.low, point.high, point.n)
                for point in points
                if point.n >= MIN_RATIO_SAMPLES
                if point.low is not None and point.high is not None
            )
            interval = next(intervals, None)
    if not kept and interval is None:
        kept = values
    lowest = min(interval.low if interval else min(kept), *values)
    samples = np.array(kept) if kept else NO_SAMPLES
    unusable = "" if lowest >= SMALLEST else "a value is at or below 0, so no ratio can be formed"
    is_higher = series.better == HIGHER
    if is_higher and not unusable:
        if interval is None:
            samples = 1 / samples
        else:
            interval = Interval(
                1 / interval.median, 1 / interval.high, 1 / interval.low, interval.n
            )
    runs = () if unusable else tuple(1 / value if is_higher else value for value in values)
    return MeasuredSeries(
        name, groups[0], samples, newest, interval, tuple(groups[1:]), unusable, runs
    )
