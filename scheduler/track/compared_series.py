"""What a comparison takes of a series, and what it returns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from scheduler.stats.intervals import Interval
from scheduler.track.sides import Point


class Status(StrEnum):
    """In display order."""

    SLOWER = "slower"
    FASTER = "faster"
    UNCERTAIN = "uncertain"
    UNKNOWN = "cannot be said"
    SAME = "same"
    NEW = "new"
    GONE = "gone"

    @property
    def label(self) -> str:
        """The name in pages and reports."""
        return self.name.lower()


class Method(StrEnum):
    """What a series was compared by: the samples of both sides, or the history before them."""

    NONE = ""
    SAMPLES = "samples"
    HISTORY = "history"


class SideName(StrEnum):
    """A side of the comparison."""

    NONE = ""
    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True)
class CompareSettings:
    """Fractions of a time: 0.01 is 1%. ``floor`` is the least noise from run to run, unless pairs
    of the same code show more.

    For series that are compared with their history, ``false_positives`` is the probability that a
    comparison without any difference reports one, over all series. ``expected`` is the confidence
    of the expected range, for each series by itself; a range that reaches further than ``widest``
    says too little.
    """

    least_effect: float = 0.01
    equivalence: float = 0.03
    false_discoveries: float = 0.05
    floor: float = 0.002
    false_positives: float = 0.01
    expected: float = 0.99
    widest: float = 0.25


@dataclass(frozen=True)
class MeasuredSeries:
    """A series on one side: its name, its group (for means), its samples (times, above 0) and, if
    known, the conditions of the measurement.

    ``interval`` replaces samples that are missing; it is used only without samples. ``values`` are
    the times of single runs, if the samples are of fewer; they are compared with a history.
    ``groups`` are further groups that it counts in. ``unusable`` says why it cannot be compared,
    for any samples.
    """

    series: str
    group: str
    samples: npt.NDArray[np.float64]
    point: Point | None = None
    interval: Interval | None = None
    groups: tuple[str, ...] = ()
    unusable: str = ""
    values: tuple[float, ...] = ()

    @property
    def n(self) -> int:
        """The number of samples."""
        if self.samples.size or self.interval is None:
            return self.samples.size
        return self.interval.n

    @property
    def runs(self) -> npt.NDArray[np.float64]:
        """The times of single runs: the median of the samples if only these are known."""
        if self.values:
            return np.array(self.values)
        return np.array([np.median(self.samples) if self.samples.size else self._interval_median])

    @property
    def _interval_median(self) -> float:
        assert self.interval is not None, "a series without samples has an interval"
        return self.interval.median


@dataclass(frozen=True)
class SeriesRow:
    """One series. The ratio is after by before, above 1 for slower, with its 95% interval; None if
    there is none. ``reason`` says why the result is unknown; ``q`` is the p-value corrected for the
    number of series.

    By history, "before" is the level of ``n_before`` earlier values, and the ratio of ``n_after``
    new ones to it is expected between ``expected_low`` and ``expected_high``. ``rerun`` more
    measurements of ``rerun_side`` are needed if the result is uncertain.
    """

    series: str
    group: str
    status: Status
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    n_before: int = 0
    n_after: int = 0
    q: float | None = None
    reason: str = ""
    method: Method = Method.NONE
    expected_low: float | None = None
    expected_high: float | None = None
    rerun: int = 0
    rerun_side: SideName = SideName.NONE

    def sort_key(self) -> tuple[int, float, str]:
        """Return the display order: by status, the largest effect first."""
        effect = abs(math.log(self.ratio)) if self.ratio else 0.0
        return _STATUS_ORDER[self.status], -effect, self.series


_STATUS_ORDER = {status: position for position, status in enumerate(Status)}
