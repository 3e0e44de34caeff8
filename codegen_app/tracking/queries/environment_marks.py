"""Marks where a series' environment changed: driver, compiler, clocks or the device itself.

Hosts alternate and clocks fluctuate: a value that returns after a few points is not a change, and a
clock counts as changed only if the next point confirms it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from codegen_app.tracking.models import Series
from scheduler.track.differences import (
    Aspect,
    Difference,
    differences,
    environment_differences,
)
from scheduler.track.facts import point_of
from scheduler.track.sides import Point, Side

MAX_MARKS = 60
MAX_COMPARED = 500
_RETURN_WINDOW = 12  # a value that returns within so many points never counted as gone
_COMPILER_ASPECTS = {Aspect.COMPILER, Aspect.HEADERS}
_CLOCK_STEP = 0.02  # clocks this close to each other count as equal


@dataclass(frozen=True)
class PointEnvironment:
    """A point's time, and the facts of its environment as JSON text."""

    ms: int
    facts: str


@dataclass(frozen=True)
class Mark:
    """The environment changed at a moment: ``what`` has one sentence per change."""

    ms: int
    what: tuple[str, ...]


def environment_marks(series: Series, points: Sequence[PointEnvironment]) -> tuple[Mark, ...]:
    """Return the latest ``MAX_MARKS`` marks of a series, given its points in order. If nearly every
    point has its own facts, only the latest ``MAX_COMPARED`` differing points are compared."""
    differ = [n for n in range(1, len(points)) if points[n].facts != points[n - 1].facts]
    first = differ[-MAX_COMPARED] - 1 if len(differ) > MAX_COMPARED else 0
    return tuple(_iter_marks(series, points[first:]))[-MAX_MARKS:]


def _iter_marks(series: Series, points: Sequence[PointEnvironment]) -> Iterator[Mark]:
    between = _EnvironmentDiff(series)
    seen: dict[tuple[str, str, str], int] = {}
    for place in range(1, len(points)):
        one, other = points[place - 1], points[place]
        if one.facts == other.facts:
            continue
        after = points[place + 1].facts if place + 1 < len(points) else other.facts
        what = []
        for each in between.differences(one.facts, other.facts):
            seen[_value_key(each, each.before)] = place - 1
            last = seen.get(_value_key(each, each.after))
            if last is not None and place - last <= _RETURN_WINDOW:
                continue
            if each.aspect is Aspect.READINGS and not between.persists(each, one.facts, after):
                continue
            what.append(each.sentence)
        if what:
            yield Mark(other.ms, tuple(what))


def _value_key(each: Difference, value: str) -> tuple[str, str, str]:
    """Return a key that is equal for values that count as one."""
    if each.aspect is Aspect.READINGS:
        size = abs(float(value))
        value = str(round(math.log(size) / _CLOCK_STEP)) if size else ""
    return each.aspect, each.name, value


class _EnvironmentDiff:
    """Differences between environments of one series; each pair is compared once."""

    def __init__(self, series: Series) -> None:
        self._series = series
        self._point = lru_cache(maxsize=None)(self._parse_point)
        self.differences = lru_cache(maxsize=None)(self._differences)

    def persists(self, difference: Difference, before: str, after: str) -> bool:
        """Whether the reading also differs between ``before`` and the next point (``after``)."""
        found = self.differences(before, after)
        return any(one.name == difference.name for one in found)

    def _differences(self, one: str, other: str) -> tuple[Difference, ...]:
        before, after = self._point(one), self._point(other)
        found = environment_differences(before, after)
        if before.compiler != after.compiler:
            all_of_it = differences(Side((before,)), Side((after,)))
            found = (*(each for each in all_of_it if each.aspect in _COMPILER_ASPECTS), *found)
        return found

    def _parse_point(self, text: str) -> Point:
        facts: Mapping[str, object] = json.loads(text)
        return point_of(
            facts,
            value=1.0,
            low=None,
            high=None,
            n=1,
            revision="",
            target=self._series.target,
            device=self._series.device_name,
            toolchain=self._series.toolchain,
        )
