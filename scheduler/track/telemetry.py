"""Compares the telemetry of the two sides: which readings differ by more than they vary.

Clocks and throttling decide whether two environments are equal. Power, temperature and ECC errors
follow from the code as well, so they decide nothing: they describe a machine that became slower.
"""

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

POWER_TOLERANCE = 0.05
"""A fraction of the power: a board at rest and one under load differ by more."""

TEMPERATURE_TOLERANCE = 5.0
"""In °C: the temperature of a machine room changes by less."""

_CLOCK_SUFFIX, _THROTTLED_PREFIX = "_mhz", "throttled_"
_TITLES = {"sm": "SM", "gpu": "GPU"}


@dataclass(frozen=True)
class TelemetryDifference:
    """One reading that differs. The sentence of a clock says what throttled it."""

    name: str
    before: float
    after: float
    sentence: str


@dataclass(frozen=True)
class _Sensor:
    """How a reading is named, and by how much it may differ: a fraction and an amount, added."""

    title: str
    unit: str
    relative: float = 0.0
    absolute: float = 0.0


_SENSORS = {
    "power_w": _Sensor("power", " W", relative=POWER_TOLERANCE),
    "temperature_c": _Sensor("temperature", " °C", absolute=TEMPERATURE_TOLERANCE),
    "ecc_corrected": _Sensor("corrected ECC errors", ""),
    "ecc_uncorrected": _Sensor("uncorrected ECC errors", ""),
}
SENSOR_NAMES = tuple(_SENSORS)
"""The readings that are compared besides clocks and throttling."""


def telemetry_differences(before: Side, after: Side) -> tuple[TelemetryDifference, ...]:
    """Return the differences of clocks and throttling; other readings decide nothing."""
    differences = list(_clock_differences(before, after))
    for name in _common_readings(before, after):
        before_value, after_value = before.reading(name), after.reading(name)
        if not name.startswith(_THROTTLED_PREFIX) or before_value is None or after_value is None:
            continue
        if abs(after_value - before_value) >= SHARE_TOLERANCE:
            reason = name.removeprefix(_THROTTLED_PREFIX)
            sentence = f"throttled by {reason} in {before_value:.0%} → {after_value:.0%} of samples"
            differences.append(TelemetryDifference(name, before_value, after_value, sentence))
    return tuple(differences)


def sensor_differences(before: Side, after: Side) -> tuple[TelemetryDifference, ...]:
    """Return the differences of power, temperature and ECC errors, which decide nothing."""
    differences = []
    for name, sensor in _SENSORS.items():
        before_value, after_value = before.reading(name), after.reading(name)
        if before_value is None or after_value is None:
            continue
        tolerance = sensor.relative * max(before_value, after_value) + sensor.absolute
        if abs(after_value - before_value) > tolerance:
            sentence = f"{sensor.title} {before_value:,.0f} → {after_value:,.0f}{sensor.unit}"
            differences.append(TelemetryDifference(name, before_value, after_value, sentence))
    return tuple(differences)


def has_telemetry_difference(earlier: Point, later: Point) -> bool:
    """Whether any reading of two points differs, as ``telemetry_differences`` finds for sides of
    one point each, but fast enough for thousands."""
    return earlier.readings != later.readings and any(
        abs(later.readings[name] - value) > CLOCK_TOLERANCE * max(value, later.readings[name])
        if name.endswith(_CLOCK_SUFFIX)
        else name.startswith(_THROTTLED_PREFIX)
        and abs(later.readings[name] - value) >= SHARE_TOLERANCE
        for name, value in earlier.readings.items()
        if name in later.readings
    )


def has_clocks(before: Side, after: Side) -> bool:
    """Whether any clock was read on both sides."""
    return any(name.endswith(_CLOCK_SUFFIX) for name in _common_readings(before, after))


def clock_changes(before: Side, after: Side) -> tuple[float, ...]:
    """Return the ratios, after to before, of the clocks that differ."""
    return tuple(clock.after / clock.before for clock in _clock_differences(before, after))


def _common_readings(before: Side, after: Side) -> list[str]:
    names = {name for point in before.near for name in point.readings}
    return sorted(names & {name for point in after.near for name in point.readings})


def _clock_differences(before: Side, after: Side) -> Iterator[TelemetryDifference]:
    for name in _common_readings(before, after):
        before_mhz, after_mhz = before.reading(name), after.reading(name)
        if not name.endswith(_CLOCK_SUFFIX) or not before_mhz or not after_mhz:
            continue
        errors = []  # of each side's median, given the points' spread, in MHz
        for side in (before, after):
            values = [point.readings[name] for point in side.near if name in point.readings]
            center = median(values)
            spread = 1.4826 * median([abs(value - center) for value in values])
            errors.append(1.2533 * spread / math.sqrt(len(values)))
        if abs(after_mhz - before_mhz) <= max(
            CLOCK_TOLERANCE * max(before_mhz, after_mhz), 2 * math.hypot(*errors)
        ):
            continue
        slower_side, side_note = (before, " before") if before_mhz < after_mhz else (after, "")
        unit = name.removesuffix(_CLOCK_SUFFIX).removesuffix("_clock")
        sentence = f"{_TITLES.get(unit, unit)} clock {before_mhz:,.0f} → {after_mhz:,.0f} MHz"
        for reason in _common_readings(before, after):
            share = slower_side.reading(reason) or 0
            if reason.startswith(_THROTTLED_PREFIX) and share >= SHARE_TOLERANCE:
                cause = reason.removeprefix(_THROTTLED_PREFIX)
                sentence += f", throttled by {cause} in {share:.0%} of samples{side_note}"
        yield TelemetryDifference(name, before_mhz, after_mhz, sentence)
