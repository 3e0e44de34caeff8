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
    differences = list(_clocks(before, after))
    for name in _common(before, after):
        one, other = before.reading(name), after.reading(name)
        if not name.startswith(_THROTTLED) or one is None or other is None:
            continue
        if abs(other - one) >= SHARE_TOLERANCE:
            by = name.removeprefix(_THROTTLED)
            sentence = f"throttled by {by} in {one:.0%} → {other:.0%} of samples"
            differences.append(TelemetryDifference(name, one, other, sentence))
    return tuple(differences)


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
    return tuple(clock.after / clock.before for clock in _clocks(before, after))


def _common(before: Side, after: Side) -> list[str]:
    names = {name for point in before.near for name in point.readings}
    return sorted(names & {name for point in after.near for name in point.readings})


def _clocks(before: Side, after: Side) -> Iterator[TelemetryDifference]:
    for name in _common(before, after):
        one, other = before.reading(name), after.reading(name)
        if not name.endswith(_CLOCK) or not one or not other:
            continue
        errors = []  # of each side's median, given the points' spread, in MHz
        for side in (before, after):
            values = [point.readings[name] for point in side.near if name in point.readings]
            middle = median(values)
            spread = 1.4826 * median([abs(value - middle) for value in values])
            errors.append(1.2533 * spread / math.sqrt(len(values)))
        if abs(other - one) <= max(CLOCK_TOLERANCE * max(one, other), 2 * math.hypot(*errors)):
            continue
        slower, when = (before, " before") if one < other else (after, "")
        unit = name.removesuffix(_CLOCK).removesuffix("_clock")
        sentence = f"{_TITLES.get(unit, unit)} clock {one:,.0f} → {other:,.0f} MHz"
        for reason in _common(before, after):
            share = slower.reading(reason) or 0
            if reason.startswith(_THROTTLED) and share >= SHARE_TOLERANCE:
                by = reason.removeprefix(_THROTTLED)
                sentence += f", throttled by {by} in {share:.0%} of samples{when}"
        yield TelemetryDifference(name, one, other, sentence)
