"""The rows of a comparison, with their figures in the unit of the series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from codegen_app.tracking.models import Source
from scheduler.track.compared_series import MeasuredSeries, Method, SeriesRow

EMULATED = "emulated"


@dataclass(frozen=True)
class ComparedRow:
    """One series. ``before`` and ``after`` are medians in its unit; ``ratio`` is the slowdown with
    its 95% interval: above 1 is slower, also for metrics where higher is better. ``why`` is the
    cause of a change, or why the result is unknown; ``origin`` is "emulated" or "generated" if the
    series was not measured on a device.

    ``method`` says what the series was compared by. By history, ``before`` is the level of
    ``n_before`` points up to the side before, and ``after`` is expected between ``expected_low``
    and ``expected_high``; if the result is uncertain, ``rerun`` more measurements of ``rerun_side``
    are needed."""

    series: int
    name: str
    url: str
    problem: str
    sizes: Mapping[str, int]
    target: str
    device: str
    toolchain: str
    metric: str
    unit: str
    better: str
    status: str
    before: float | None
    after: float | None
    ratio: float | None
    low: float | None
    high: float | None
    n_before: int
    n_after: int
    q: float | None
    method: str
    expected_low: float | None
    expected_high: float | None
    rerun: int
    rerun_side: str
    why: str
    groups: tuple[str, ...]
    origin: str

    @property
    def is_emulated(self) -> bool:
        return self.origin == EMULATED

    @property
    def is_generated(self) -> bool:
        return self.origin == Source.GENERATED.value


@dataclass(frozen=True)
class RerunRow:
    """A series to measure ``runs`` more times, at the revision of a side."""

    series: int
    problem: str
    sizes: Mapping[str, int]
    target: str
    device_name: str
    toolchain: str
    metric: str
    unit: str
    revision: str
    branch: str
    repository: str
    side: str
    runs: int
    why: str


def row_figures(
    row: SeriesRow,
    before: MeasuredSeries | None,
    after: MeasuredSeries | None,
    is_higher: bool,
) -> dict[str, float | int | None]:
    """Return the figures of a row in the unit of its series."""
    old, new = (_median(side, is_higher) for side in (before, after))
    counts = [side.n if side else 0 for side in (before, after)]
    expected: tuple[float, float] | tuple[None, None] = None, None
    if row.method is Method.HISTORY:
        assert after is not None
        assert row.ratio is not None
        assert row.expected_low is not None
        assert row.expected_high is not None
        new_time = float(np.median(after.runs))
        level = new_time / row.ratio
        old, new = (1 / level, 1 / new_time) if is_higher else (level, new_time)
        expected = level * row.expected_low, level * row.expected_high
        if is_higher:
            expected = 1 / expected[1], 1 / expected[0]
        counts = [row.n_before, row.n_after]
    return {
        "before": old,
        "after": new,
        "ratio": row.ratio,
        "low": row.low,
        "high": row.high,
        "n_before": counts[0],
        "n_after": counts[1],
        "q": row.q,
        "expected_low": expected[0],
        "expected_high": expected[1],
    }


def _median(side: MeasuredSeries | None, is_higher: bool) -> float | None:
    if side is None or not side.n:
        return None
    if side.samples.size:
        median = float(np.median(side.samples))
    else:
        assert side.interval is not None
        median = side.interval.median
    return 1 / median if is_higher and not side.unusable else median
