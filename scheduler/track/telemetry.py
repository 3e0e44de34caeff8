"""Compares clocks and throttling of the two sides: which readings differ by more than they vary."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from scheduler.track.sides import Point, Side

CLOCK_TOLERANCE = 0.01
"""Clocks nearer to each other are the same: an NVIDIA GPU's step is 15 MHz, 0.8%."""

SHARE_TOLERANCE = 0.1
"""A fraction of the samples: if the share of throttled samples changes by less, it is the same."""

_CLOCK, _THROTTLED = "_mhz", "throttled_"
_TITLES = {"sm": "SM", "gpu": "GPU"}


@dataclass(frozen=True)
class TelemetryDifference:
    """One reading that differs. The sentence of a clock says what throttled it."""

    name: str
    before: float
    after: float
    sentence: str


def telemetry_differences(before: Side, after: Side) -> tuple[TelemetryDifference, ...]:
    """Return the differences of clocks and throttling; other readings decide nothing."""
    return (*_clocks(before, after), *_throttling(before, after))


def has_telemetry_difference(one: Point, other: Point) -> bool:
    """Whether any reading of two points differs, as ``telemetry_differences`` finds for sides of
    one point each, but fast enough for thousands."""
    return one.readings != other.readings and any(
        abs(other.readings[name] - value) > CLOCK_TOLERANCE * max(value, other.readings[name])
        if name.endswith(_CLOCK)
        else name.startswith(_THROTTLED) and abs(other.readings[name] - value) >= SHARE_TOLERANCE
        for name, value in one.readings.items()
        if name in other.readings
    )


def has_clocks(before: Side, after: Side) -> bool:
    """Whether any clock was read on both sides."""
    return any(name.endswith(_CLOCK) for name in _common(before, after))


def clock_changes(before: Side, after: Side) -> tuple[float, ...]:
    """Return the ratios, after to before, of the clocks that differ."""
    return tuple(one.after / one.before for one in _clocks(before, after))


def _common(before: Side, after: Side) -> list[str]:
    names = {name for point in before.near for name in point.readings}
    return sorted(names & {name for point in after.near for name in point.readings})


def _clocks(before: Side, after: Side) -> Iterator[TelemetryDifference]:
    for name in _common(before, after):
        one, other = before.reading(name), after.reading(name)
        if not name.endswith(_CLOCK) or not one or not other:
            continue
        beyond = max(CLOCK_TOLERANCE * max(one, other), 2 * _spread(name, before, after))
        if abs(other - one) > beyond:
            yield TelemetryDifference(name, one, other, _clock_sentence(name, before, after))


def _spread(name: str, before: Side, after: Side) -> float:
    """Return how far a side's median of the clock may be off, given the points' spread, in MHz."""
    errors = []
    for side in (before, after):
        found = [point.readings[name] for point in side.near if name in point.readings]
        middle = median(found)
        off = 1.4826 * median([abs(value - middle) for value in found])
        errors.append(1.2533 * off / math.sqrt(len(found)))
    return math.hypot(*errors)


def _clock_sentence(name: str, before: Side, after: Side) -> str:
    what = name.removesuffix(_CLOCK).removesuffix("_clock")
    title = f"{_TITLES.get(what, what)} clock"
    have = f"{title} {before.reading(name):,.0f} → {after.reading(name):,.0f} MHz"
    reasons = [
        f"throttled by {reason.removeprefix(_THROTTLED)} in {slower.reading(reason) or 0:.0%} "
        f"of samples{when}"
        for slower, when in ((before, " before"), (after, ""))
        if slower is _slower(name, before, after)
        for reason in _common(before, after)
        if reason.startswith(_THROTTLED) and (slower.reading(reason) or 0) >= SHARE_TOLERANCE
    ]
    return ", ".join([have, *reasons])


def _slower(name: str, before: Side, after: Side) -> Side:
    return before if (before.reading(name) or 0) < (after.reading(name) or 0) else after


def _throttling(before: Side, after: Side) -> Iterator[TelemetryDifference]:
    for name in _common(before, after):
        one, other = before.reading(name), after.reading(name)
        if not name.startswith(_THROTTLED) or one is None or other is None:
            continue
        if abs(other - one) >= SHARE_TOLERANCE:
            by = name.removeprefix(_THROTTLED)
            sentence = f"throttled by {by} in {one:.0%} → {other:.0%} of samples"
            yield TelemetryDifference(name, one, other, sentence)
