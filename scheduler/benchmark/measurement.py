"""The measurement of one kernel at one binding of the symbolic sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.benchmark.metrics import TIME, Metric


@dataclass(frozen=True)
class Check:
    """The result of the correctness gate: the largest ratio of error to bound, over all outputs.

    ``ratio`` <= 1 passes. ``max_error`` and ``bound`` are those of the worst element.
    """

    passed: bool
    max_error: float
    bound: float
    ratio: float
    guard_intact: bool
    detail: str = ""


@dataclass(frozen=True)
class Measurement:
    """Times of one kernel: all valid samples, in nanoseconds per launch, and metrics by name.

    ``batch`` launches were timed together for one sample; ``readings`` are the device's telemetry,
    one value per sample. ``rejected`` samples (zero, negative, faster than the hardware can be) are
    stored separately with their reason. ``emulated`` times are those of the CPU emulation and
    unrelated to a GPU's times.
    """

    kernel: str
    device: str
    bindings: Mapping[str, int]
    samples_ns: tuple[float, ...]
    batch: int
    metrics: Mapping[str, Metric]
    rejected: tuple[tuple[float, str], ...]
    check: Check
    emulated: bool
    readings: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def median_ns(self) -> float:
        return self.metrics[TIME].value

    @property
    def low_ns(self) -> float:
        """The fast end of the interval."""
        return self.metrics[TIME].low

    @property
    def high_ns(self) -> float:
        """The slow end of the interval."""
        return self.metrics[TIME].high
