"""Which measurement of a kernel counts, wherever its time stands, and whether it drifted.

Every run that measures a kernel adds a result. What a page shows of it in a bucket is its latest
measurement of samples enough to compare; without any such the latest. The one before that says
whether the same kernel became slower or faster.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from codegen_app.models import BenchmarkResult, Environment
from codegen_app.selectors.measured_row import Drift, metrics_of
from scheduler.track import sides
from scheduler.track.differences import environment_differences
from scheduler.track.sides import Point

#: Of two kernels that take the same time, all of three samples lie below all of three others by
#: chance in one of 20 cases (Mann-Whitney); of fewer more often.
MIN_SAMPLES = 3

#: Medians of the same code differ from run to run by some percent beyond their intervals
#: (docs/tracking.md); less than this is not called drift.
_DRIFT = 1.05


@dataclass(frozen=True)
class CurrentMeasurement:
    """The measurement of a kernel that counts, and the one before it in another run."""

    result: BenchmarkResult
    before: BenchmarkResult | None = None

    @property
    def drift(self) -> Drift | None:
        """How far the kernel moved since it was measured before; None where that is not shown."""
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
    """Of all measurements of one kernel in one bucket the one that counts; None of none."""
    ordered = sorted(rows, key=lambda row: (_is_enough(row), row.created_at, row.pk))
    if not ordered:
        return None
    now = ordered[-1]
    earlier = [row for row in ordered[:-1] if row.task_id is None or row.task_id != now.task_id]
    return CurrentMeasurement(now, earlier[-1] if earlier else None)


def measurement_fields(found: CurrentMeasurement | None) -> dict[str, Any]:
    """The fields of a ``MeasuredRow`` of that measurement; of none those of no measurement."""
    if found is None:
        return {}
    return {
        "metrics": metrics_of(found.result),
        "emulated": found.result.emulated,
        "origin": found.result.origin,
        "drift": found.drift,
    }


def environment_change(then: Environment, now: Environment) -> str:
    """What of the surroundings is another now, with both values; "" where they are alike. The
    compiler is a matter of the bucket."""
    found = environment_differences(_point(then), _point(now), unknown=True)
    return "; ".join(
        f"{one.name or one.aspect} {_as_text(one.before)} then, {_as_text(one.after)} now"
        for one in found
    )


def _point(row: Environment) -> Point:
    """A point of which nothing but its environment is known."""
    attributes = {name: str(value) for name, value in row.attributes.items()}
    return Point(
        1.0, 1.0, 1.0, 1,
        environment=sides.Environment(
            driver=row.driver, runtime=row.runtime, settings=attributes
        ),
    )  # fmt: skip


def _as_text(value: str) -> str:
    return value or "not recorded"


def _is_enough(row: BenchmarkResult) -> bool:
    return len(row.samples_ns) >= MIN_SAMPLES
