"""The two sides of a change: points of one series, with their values and the conditions of the
measurement.

An empty text means unknown; None is an entirely unknown build or environment. Nothing is ever
concluded from two unknowns being equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Any

from scheduler.stats.intervals import Interval, median_interval

NEAREST_COUNT = 8
"""The number of points, nearest to the change, that describe a side's conditions."""


@dataclass(frozen=True)
class Compiler:
    """``name`` (rocm, bundled, nvcc), ``version`` as it reports itself, ``flags`` in order;
    ``digest`` is of what else decides its output: the headers that kernels include."""

    name: str = ""
    version: str = ""
    flags: tuple[str, ...] = ()
    digest: str = ""

    @property
    def known(self) -> bool:
        return bool(self.name and self.version)

    @property
    def text(self) -> str:
        """Return the name, version and flags; "" if unknown."""
        return " ".join((self.name, self.version, *self.flags)) if self.known else ""


@dataclass(frozen=True)
class CodeObject:
    """The code that was built: hashes of the file and of its instructions alone (equal if only
    names, line tables or paths differ), resources by device function as its recipe gives them, and
    the instructions of the inner loop by class (``scheduler.isa.listing.count_kinds``)."""

    digest: str = ""
    instructions_digest: str = ""
    resources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    inner_loop: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Environment:
    """The machine. ``device`` is the model, ``unit`` identifies the device (its UUID or serial
    number), ``settings`` has other settings (power limit, persistence, MIG), by name."""

    driver: str = ""
    runtime: str = ""
    device: str = ""
    unit: str = ""
    host: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def known(self) -> bool:
        """Whether enough is recorded to call two environments equal."""
        return bool(self.device and (self.driver or self.runtime))


@dataclass(frozen=True)
class Alternative:
    """A configuration built from the same revision by the same compiler but not selected."""

    source_digest: str = ""
    code_digest: str = ""


@dataclass(frozen=True)
class Point:
    """One measurement of a series. ``value`` is the median in the series' unit, ``low`` to ``high``
    its interval over ``n`` samples.

    ``readings`` is the device's telemetry during the measurement: clocks as medians
    (``sm_clock_mhz``), throttling as the share of samples in which it was active
    (``throttled_power``: 0.4), power in W (``power_w``), temperature (``temperature_c``) and ECC
    errors (``ecc_corrected``, ``ecc_uncorrected``). ``others`` are the alternatives that tuning
    chose from, keyed by the configurations' texts.
    """

    value: float
    low: float
    high: float
    n: int
    revision: str = ""
    source_digest: str = ""
    configuration: str = ""
    target: str = ""
    compiler: Compiler = field(default_factory=Compiler)
    code: CodeObject = field(default_factory=CodeObject)
    environment: Environment = field(default_factory=Environment)
    readings: Mapping[str, float] = field(default_factory=dict)
    others: Mapping[str, Alternative] = field(default_factory=dict)


@dataclass(frozen=True)
class Side:
    """The points on one side of a change, at least one, the nearest to the change first, so that
    two sides can be exchanged. Raises ``ValueError`` without points, and for a value that is not
    above 0."""

    points: tuple[Point, ...]

    def __post_init__(self) -> None:
        if not self.points:
            raise ValueError("a side of a change must have points")
        if not all(0 < point.value < float("inf") for point in self.points):
            raise ValueError("a measurement must be above 0")

    @property
    def nearest(self) -> Point:
        return self.points[0]

    @property
    def near(self) -> tuple[Point, ...]:
        """The points that describe the side's conditions."""
        return self.points[:NEAREST_COUNT]

    @cached_property
    def level(self) -> float:
        """The median of the points' values."""
        return float(median([point.value for point in self.points]))

    @cached_property
    def interval(self) -> Interval:
        """Return the side's median and its interval; a single point's own."""
        if len(self.points) == 1:
            only = self.nearest
            return Interval(only.value, only.low, only.high, only.n)
        return median_interval([point.value for point in self.points])

    def reading(self, name: str) -> float | None:
        """Return the median of a reading over the nearest points; None if it was not read."""
        readings = [point.readings[name] for point in self.near if name in point.readings]
        return float(median(readings)) if readings else None


def sides_at(points: tuple[Point, ...], index: int) -> tuple[Side, Side]:
    """Split a series, whose points are in order of time, at a change: ``index`` is the first point
    of the new level."""
    return Side(tuple(reversed(points[:index]))), Side(points[index:])
