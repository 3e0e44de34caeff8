"""The table of metrics that a measurement has.

A metric is computed from the samples, or derived from other data of the same measurement; the note
of a derived metric says so. All code that stores or shows measurements uses this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from scheduler.stats.intervals import Bounds, bounds_of, median_interval

TIME = "time"


@dataclass(frozen=True)
class Metric:
    """The value of a metric of one kernel in its unit, with bounds, from ``n`` samples.

    ``bounds`` is the kind of bounds: a 95% interval, or the range if there are too few samples. A
    single sample has no bounds: ``low`` and ``high`` are that sample.
    """

    value: float
    low: float
    high: float
    unit: str
    n: int

    @property
    def bounds(self) -> Bounds:
        """The kind of bounds that ``low`` and ``high`` are."""
        return bounds_of(self.n)


@dataclass(frozen=True)
class MetricInputs:
    """The data of a measurement.

    ``samples_ns`` are nanoseconds per launch, at least one sample. ``moved_bytes`` is a lower bound
    of the bytes that the problem moves (0 if unknown). ``readings`` are the device's telemetry for
    each sample, by the device's names (``runtime/device.py``: ``Timing``).
    """

    samples_ns: Sequence[float]
    moved_bytes: int = 0
    readings: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @cached_property
    def time(self) -> Metric:
        """The time of a launch in nanoseconds; other metrics are derived from it."""
        return _median_metric(self.samples_ns, "ns")


@dataclass(frozen=True)
class MetricRow:
    """A metric: ``title`` is the column header, ``note`` describes how it is obtained.

    ``figure`` returns None if the inputs lack its data.
    """

    title: str
    unit: str
    note: str
    figure: Callable[[MetricInputs, str], Metric | None]


def _median_metric(values: Sequence[float], unit: str) -> Metric:
    """Return the median of the values with its interval."""
    interval = median_interval(values)
    return Metric(interval.median, interval.low, interval.high, unit, len(values))


def reading_figure(name: str) -> Callable[[MetricInputs, str], Metric | None]:
    """Return the function for a device reading of that name; it returns None without readings."""

    def figure(facts: MetricInputs, unit: str) -> Metric | None:
        values = facts.readings.get(name)
        return _median_metric(values, unit) if values else None

    return figure


def bandwidth_figure(facts: MetricInputs, unit: str) -> Metric | None:
    """Return the bandwidth: bytes/ns equals GB/s; the longest time gives the lowest bandwidth."""
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
        bandwidth_figure,
    ),
    "sm_clock": MetricRow(
        "SM clock",
        "MHz",
        "read from the device with each sample",
        reading_figure("sm_clock_mhz"),
    ),
}


def compute_metrics(facts: MetricInputs) -> dict[str, Metric]:
    """Return all metrics for which the inputs have data, the time first."""
    metrics = {name: row.figure(facts, row.unit) for name, row in METRICS.items()}
    return {name: metric for name, metric in metrics.items() if metric is not None}
