"""What was measured of one kernel at one binding of the symbolic sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.benchmark.metrics import TIME, Metric


@dataclass(frozen=True)
class Check:
    """The correctness gate's finding: the largest error over its bound, over all outputs.

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
    """Times of one kernel: every sample kept, in nanoseconds a launch, and its metrics by name.

    ``batch`` launches were timed together for one sample; ``readings`` are what the device read of
    itself meanwhile, a value a sample. ``rejected`` samples (zero, negative, faster than the
    hardware can) are kept beside them with their reason. ``emulated`` times are those of the CPU
    emulation: they say nothing of a GPU.
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
        """The fast end of its interval."""
        return self.metrics[TIME].low

    @property
    def high_ns(self) -> float:
        """The slow end of its interval."""
        return self.metrics[TIME].high
