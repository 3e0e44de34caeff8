"""The fields of every row with a measurement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from codegen_app.tuning.models import BenchmarkResult
from scheduler.benchmark.metrics import TIME, Metric


@dataclass(frozen=True)
class Drift:
    """The same kernel had another time before: ``ratio`` is now / before. ``under`` says what
    changed in the environment, "" if nothing recorded did."""

    ratio: float
    before_ns: float
    before_low_ns: float
    before_high_ns: float
    before_n: int
    at: datetime
    run: int | None
    under: str


@dataclass(frozen=True, kw_only=True)
class MeasuredRow:
    """Metrics by name (``scheduler/benchmark/metrics.py``), the time first; none if nothing was
    measured. ``emulated`` times are those of the CPU emulation; ``origin`` has device, driver, date
    and commit of a time measured on another installation; ``drift`` is set if the kernel had
    another time before."""

    metrics: Mapping[str, Metric] = field(default_factory=dict)
    emulated: bool = False
    origin: str = ""
    drift: Drift | None = None

    @property
    def time(self) -> Metric:
        """Nanoseconds per launch. Raises ``KeyError`` if nothing was measured."""
        return self.metrics[TIME]

    @property
    def median_ns(self) -> float | None:
        """The median time of a launch."""
        return self.time.value if self.metrics else None

    @property
    def low_ns(self) -> float | None:
        """The lower bound; None for a single sample, which has none."""
        return self.time.low if self.metrics and self.time.bounds else None

    @property
    def high_ns(self) -> float | None:
        """The upper bound; None for a single sample, which has none."""
        return self.time.high if self.metrics and self.time.bounds else None

    @property
    def n(self) -> int:
        """The number of samples."""
        return self.time.n if self.metrics else 0


def metrics_of(result: BenchmarkResult | None) -> dict[str, Metric]:
    """Return the metrics of a result; none without a result."""
    return {} if result is None else result.all_metrics
