"""Metrics: the figures that a measurement has, a row each.

A figure is taken from the samples, or derived from other facts of the same measurement; a derived
one says so. Everything that keeps or shows measurements goes by this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from scheduler.stats.intervals import Bounds, bounds_of, median_interval

TIME = "time"


@dataclass(frozen=True)
class Metric:
    """One figure of a kernel in its unit, and its bounds; from ``n`` samples.

    ``bounds`` says what they are: a 95% interval, or the range of fewer samples. A single sample
    has none: ``low`` and ``high`` are that sample then.
    """

    value: float
    low: float
    high: float
    unit: str
    n: int

    @property
    def bounds(self) -> Bounds:
        """What ``low`` and ``high`` are."""
        return bounds_of(self.n)


@dataclass(frozen=True)
class MetricInputs:
    """What a measurement found: nanoseconds a launch, at least one; the bytes that the problem
    certainly moves (0 where that is not known), a lower bound; and what the device read of itself
    with each sample, by the device's names for it (``runtime/device.py``: ``Timing``)."""

    samples_ns: Sequence[float]
    moved_bytes: int = 0
    readings: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @cached_property
    def time(self) -> Metric:
        """Of a launch, in nanoseconds; other metrics are derived from it."""
        return _median_metric(self.samples_ns, "ns")


@dataclass(frozen=True)
class MetricRow:
    """A metric: ``title`` heads a column, ``note`` says how it is come by. ``figure`` gives None
    where the facts do not hold it."""

    title: str
    unit: str
    note: str
    figure: Callable[[MetricInputs, str], Metric | None]


def _median_metric(values: Sequence[float], unit: str) -> Metric:
    """Their median with its interval."""
    interval = median_interval(values)
    return Metric(interval.median, interval.low, interval.high, unit, len(values))


def reading_metric(name: str) -> Callable[[MetricInputs, str], Metric | None]:
    """The figure of what a device reads under that name; None of a device that does not."""

    def figure(facts: MetricInputs, unit: str) -> Metric | None:
        values = facts.readings.get(name)
        return _median_metric(values, unit) if values else None

    return figure


def _bandwidth(facts: MetricInputs, unit: str) -> Metric | None:
    """Bytes a nanosecond are GB/s; the longest time is the lowest bandwidth."""
    if not facts.moved_bytes:
        return None
    time = facts.time
    value, low, high = (facts.moved_bytes / ns for ns in (time.value, time.high, time.low))
    return Metric(value, low, high, unit, time.n)


METRICS: Mapping[str, MetricRow] = {
    TIME: MetricRow("Median", "ns", "of a launch, measured", lambda facts, _: facts.time),
    "bandwidth": MetricRow(
        "Bandwidth",
        "GB/s",
        "derived: the bytes that the problem certainly moves, over the time; a lower bound",
        _bandwidth,
    ),
    "sm_clock": MetricRow(
        "SM clock",
        "MHz",
        "read by the device beside each sample",
        reading_metric("sm_clock_mhz"),
    ),
}


def compute_metrics(facts: MetricInputs) -> dict[str, Metric]:
    """Every metric that the facts hold, the time first."""
    found = {name: row.figure(facts, row.unit) for name, row in METRICS.items()}
    return {name: metric for name, metric in found.items() if metric is not None}
