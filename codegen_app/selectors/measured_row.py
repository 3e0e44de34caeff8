"""What every row with a measurement says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from codegen_app.models import BenchmarkResult
from scheduler.benchmark.metrics import TIME, Metric


@dataclass(frozen=True)
class Drift:
    """The same kernel took another time before: ``ratio`` is now over then. ``under`` says what of
    the surroundings differs, "" where nothing that is recorded does."""

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
    """Metrics by name (``scheduler/benchmark/metrics.py``), the time first; none where nothing was
    measured. ``emulated`` times are those of the CPU emulation; ``origin`` has device, driver, date
    and commit of a time that was measured elsewhere; ``drift`` says that the kernel took another
    time before."""

    metrics: Mapping[str, Metric] = field(default_factory=dict)
    emulated: bool = False
    origin: str = ""
    drift: Drift | None = None

    @property
    def time(self) -> Metric:
        """Nanoseconds a launch. Raises ``KeyError`` where nothing was measured."""
        return self.metrics[TIME]

    @property
    def median_ns(self) -> float | None:
        """The median time of a launch."""
        return self.time.value if self.metrics else None

    @property
    def low_ns(self) -> float | None:
        """Its lower bound; None of a single sample, which has none."""
        return self.time.low if self.metrics and self.time.bounds else None

    @property
    def high_ns(self) -> float | None:
        """Its upper bound; None of a single sample, which has none."""
        return self.time.high if self.metrics and self.time.bounds else None

    @property
    def n(self) -> int:
        """Samples."""
        return self.time.n if self.metrics else 0


def metrics_of(result: BenchmarkResult | None) -> dict[str, Metric]:
    """The metrics of a result; none where there is no result."""
    return {} if result is None else result.all_metrics
