"""Select the current measurement of a kernel and report whether it drifted.

Every run that measures a kernel adds a result. Pages show the kernel's latest measurement in a
bucket with enough samples to compare; if none has enough, the latest. The previous one shows
whether the same kernel became slower or faster.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from codegen_app.tuning.models import BenchmarkResult, Environment
from codegen_app.tuning.queries.measured_row import Drift, metrics_of
from scheduler.track import sides
from scheduler.track.differences import environment_differences
from scheduler.track.sides import Point

#: For two kernels with the same time, all three samples of one lie below all three of the other by
#: chance in one of 20 cases (Mann-Whitney); with fewer samples more often.
MIN_SAMPLES = 3

#: Medians of the same code differ between runs by a few percent beyond their intervals
#: (docs/tracking.md); less than this is not called drift.
_DRIFT = 1.05


@dataclass(frozen=True)
class CurrentMeasurement:
    """The current measurement of a kernel, and the previous one in another run."""

    result: BenchmarkResult
    before: BenchmarkResult | None = None

    @property
    def drift(self) -> Drift | None:
        """How far the kernel's time moved since the previous measurement; None if not shown."""
        if self.before is None or not (_is_enough(self.result) and _is_enough(self.before)):
            return None
        now, then = self.result, self.before
        if now.low_ns <= then.high_ns and then.low_ns <= now.high_ns:
            return None
        ratio = now.median_ns / then.median_ns
        if 1 / _DRIFT < ratio < _DRIFT:
            return None
        return Drift(
            ratio=ratio,
            before_ns=then.median_ns,
            before_low_ns=then.low_ns,
            before_high_ns=then.high_ns,
            before_n=len(then.samples_ns),
            at=then.created_at,
            run=then.task.run_id if then.task else None,
            under=environment_change(then.environment, now.environment),
        )


def current_measurement(rows: Iterable[BenchmarkResult]) -> CurrentMeasurement | None:
    """Return the current one of all measurements of a kernel in a bucket; None if there are
    none."""
    ordered = sorted(rows, key=lambda row: (_is_enough(row), row.created_at, row.pk))
    if not ordered:
        return None
    now = ordered[-1]
    earlier = [row for row in ordered[:-1] if row.task_id is None or row.task_id != now.task_id]
    return CurrentMeasurement(now, earlier[-1] if earlier else None)


def measurement_fields(measured: CurrentMeasurement | None) -> dict[str, Any]:
    """Return the fields of a ``MeasuredRow`` for that measurement, or for none."""
    if measured is None:
        return {"metrics": {}, "emulated": False, "origin": "", "drift": None}
    return {
        "metrics": metrics_of(measured.result),
        "emulated": measured.result.emulated,
        "origin": measured.result.origin,
        "drift": measured.drift,
    }


def environment_change(then: Environment, now: Environment) -> str:
    """Describe what changed in the environment, with both values; "" if they are alike. The
    compiler is left out: it is part of the bucket."""
    return "; ".join(
        f"{row.name or row.aspect} {row.before or 'not recorded'} → {row.after or 'not recorded'}"
        for row in environment_differences(_point(then), _point(now), unknown=True)
    )


def _point(row: Environment) -> Point:
    """Return a point of which only the environment is known."""
    attributes = {name: str(value) for name, value in row.attributes.items()}
    return Point(
        1.0, 1.0, 1.0, 1,
        environment=sides.Environment(
            driver=row.driver, runtime=row.runtime, settings=attributes
        ),
    )  # fmt: skip


def _is_enough(row: BenchmarkResult) -> bool:
    return len(row.samples_ns) >= MIN_SAMPLES
