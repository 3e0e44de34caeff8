"""Stored points as the samples that are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from codegen_app.selectors.comparing.reading import StoredPoint, StoredSeries
from scheduler.stats.intervals import Interval
from scheduler.track.compare import Measured
from scheduler.track.facts import point_of
from scheduler.track.ratios import LEAST_SAMPLES
from scheduler.track.sides import Point

HIGHER = "higher"
_OF_ENVIRONMENT = ("driver", "runtime", "host")
_RESOURCES = "resources"
_NONE = np.empty(0)
_LEAST = 1e-300  # what is below has no inverse


class Facts:
    """What points were measured with: each set of conditions is read once."""

    def __init__(self, facts: Mapping[int, Mapping[str, Any]]) -> None:
        self._facts = facts
        self._environments: dict[int, str] = {}

    def environment(self, conditions: int) -> str:
        """Equal where two points were measured in what is recorded as the same environment."""
        if conditions not in self._environments:
            facts = self._facts[conditions]
            known = [facts.get(name) for name in _OF_ENVIRONMENT]
            self._environments[conditions] = repr((known, facts.get("attributes")))
        return self._environments[conditions]

    def point(
        self, series: StoredSeries, point: StoredPoint, revision: str, *, whole: bool = False
    ) -> Point:
        """As the engine compares it; ``whole`` with the resources of its code, whose checks take
        longer than all else and that only the cause needs."""
        facts = self._facts[point.conditions]
        return point_of(
            facts if whole else {name: facts[name] for name in facts if name != _RESOURCES},
            value=point.value,
            low=point.low,
            high=point.high,
            n=point.n,
            revision=revision,
            target=series.target,
            device=series.device,
            toolchain=series.toolchain,
        )


def of_one_environment(
    before: Sequence[StoredPoint], after: Sequence[StoredPoint], facts: Facts
) -> tuple[Sequence[StoredPoint], Sequence[StoredPoint]]:
    """The points of each side that are compared: where a side was measured in several environments,
    those of the newest that both have, else each side's newest. Points are newest first."""
    if len({point.conditions for side in (before, after) for point in side}) <= 1:
        return before, after
    old, new = (
        {facts.environment(point.conditions): None for point in side} for side in (before, after)
    )
    if len(old) <= 1 and len(new) <= 1:
        return before, after
    common = next((one for one in new if one in old), None)
    chosen = [common or next(iter(old), ""), common or next(iter(new), "")]
    return tuple(  # type: ignore[return-value]
        [point for point in side if facts.environment(point.conditions) == of]
        for side, of in zip((before, after), chosen, strict=True)
    )


def measured(
    name: str,
    groups: Sequence[str],
    series: StoredSeries,
    points: Sequence[StoredPoint],
    point: Point | None,
) -> Measured:
    """A side's samples, as times: what is better the higher it is, is turned (1 by it).

    Of ``LEAST_SAMPLES`` points and more their values are the samples; of fewer the samples of those
    that have so many; where none has, the interval of the newest that has one of so many; else the
    values.
    """
    samples, interval = _NONE, None
    if len(points) < LEAST_SAMPLES:
        least = 1 if len(points) == 1 else LEAST_SAMPLES
        rich = [one.samples for one in points if one.samples and len(one.samples) >= least]
        if rich:
            samples = np.concatenate([np.asarray(one) for one in rich])
        else:
            interval = next(filter(None, map(_interval, points)), None)
    if not samples.size and interval is None:
        samples = np.array([one.value for one in points])
    lowest = min(interval.low if interval else samples.min(), *(one.value for one in points))
    unusable = "" if lowest >= _LEAST else "a value is not above 0: there is no ratio"
    if series.better == HIGHER and not unusable:
        samples, interval = _turned(samples, interval)
    return Measured(name, groups[0], samples, point, interval, tuple(groups[1:]), unusable)


def _interval(point: StoredPoint) -> Interval | None:
    if point.n < LEAST_SAMPLES or point.low is None or point.high is None:
        return None
    return Interval(point.value, point.low, point.high, point.n)


def _turned(
    samples: npt.NDArray[np.float64], interval: Interval | None
) -> tuple[npt.NDArray[np.float64], Interval | None]:
    if interval is None:
        return 1 / samples, None
    turned = Interval(1 / interval.median, 1 / interval.high, 1 / interval.low, interval.n)
    return samples, turned
