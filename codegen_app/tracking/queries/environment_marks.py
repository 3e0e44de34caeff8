"""Marks where a series' environment changed: driver, compiler, clocks or the device itself.

Hosts alternate and clocks fluctuate: a value that returns after a few points is not a change, and a
clock counts as changed only if the next point confirms it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

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
    first = differ[-MAX_COMPARED] if len(differ) > MAX_COMPARED else 1
    compare = _environment_comparer(series)
    seen: dict[tuple[str, str, str], int] = {}
    marks = []
    for place in (n for n in differ if n >= first):
        before, now = points[place - 1].facts, points[place].facts
        after = points[place + 1].facts if place + 1 < len(points) else now
        what = []
        for difference in compare(before, now):
            seen[_value_key(difference, difference.before)] = place - 1
            last = seen.get(_value_key(difference, difference.after))
            if last is not None and place - last <= _RETURN_WINDOW:
                continue
            if difference.aspect is Aspect.READINGS and not any(
                later.name == difference.name for later in compare(before, after)
            ):
                continue
            what.append(difference.sentence)
        if what:
            marks.append(Mark(points[place].ms, tuple(what)))
    return tuple(marks[-MAX_MARKS:])


def _value_key(difference: Difference, value: str) -> tuple[str, str, str]:
    """Return a key that is equal for values that count as one."""
    if difference.aspect is Aspect.READINGS:
        size = abs(float(value))
        value = str(round(math.log(size) / _CLOCK_STEP)) if size else ""
    return difference.aspect, difference.name, value


def _environment_comparer(series: Series) -> Callable[[str, str], tuple[Difference, ...]]:
    """Return a function that compares the facts of two environments of a series, each pair once."""
    identity: dict[str, Any] = {
        "target": series.target,
        "device": series.device_name,
        "toolchain": series.toolchain,
    }

    @cache
    def parse(facts: str) -> Point:
        value: dict[str, Any] = {"value": 1.0, "low": None, "high": None, "n": 1}
        return point_of(json.loads(facts), **value, **identity, revision="")

    @cache
    def compare(before_facts: str, after_facts: str) -> tuple[Difference, ...]:
        before, after = parse(before_facts), parse(after_facts)
        found = environment_differences(before, after)
        if before.compiler != after.compiler:
            every = differences(Side((before,)), Side((after,)))
            found = (*(row for row in every if row.aspect in _COMPILER_ASPECTS), *found)
        return found

    return compare
