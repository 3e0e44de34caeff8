"""Compares two revisions or runs over all their series: slower, faster, the same, new, gone, or
unknown.

Of thousands of series, some look slower by chance alone. Two rules keep them out: a series counts
as slower or faster only if the effect exceeds ``CompareSettings.least_effect``, and the test is
corrected for the number of series (Benjamini-Hochberg: 5% of the reported ones are expected to be
false). Intervals are for each series by itself. A series is the same if its whole interval lies
within ``CompareSettings.equivalence``; otherwise it is unknown.

Pairs of the same code in the same environment are never slower or faster. Their distance is the
noise floor of everything else in the comparison.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from scheduler.stats.intervals import Interval
from scheduler.track.differences import environment_differences
from scheduler.track.ratios import (
    MIN_RATIO_SAMPLES,
    Medians,
    Ratios,
    adjust_p_values,
    geometric_mean,
    medians,
    medians_from_intervals,
    noise_floor,
    ratios,
)
from scheduler.track.sides import Point


class Status(StrEnum):
    """In display order."""

    SLOWER = "slower"
    FASTER = "faster"
    UNKNOWN = "cannot be said"
    SAME = "same"
    NEW = "new"
    GONE = "gone"

    @property
    def label(self) -> str:
        """The name in pages and reports."""
        return self.name.lower()


@dataclass(frozen=True)
class CompareSettings:
    """Fractions of a time: 0.01 is 1%. ``floor`` is the least noise from run to run, unless pairs
    of the same code show more."""

    least_effect: float = 0.01
    equivalence: float = 0.03
    false_discoveries: float = 0.05
    floor: float = 0.002


MIN_PAIRS = 10
"""The fewest pairs of the same code from which the noise floor is estimated."""


@dataclass(frozen=True)
class MeasuredSeries:
    """A series on one side: its name, its group (for means), its samples (times, above 0) and, if
    known, the conditions of the measurement.

    ``interval`` replaces samples that are missing; it is used only without samples. ``groups`` are
    further groups that it counts in. ``unusable`` says why it cannot be compared, whatever its
    samples are.
    """

    series: str
    group: str
    samples: npt.NDArray[np.float64]
    point: Point | None = None
    interval: Interval | None = None
    groups: tuple[str, ...] = ()
    unusable: str = ""

    @property
    def n(self) -> int:
        """The number of samples."""
        if self.samples.size or self.interval is None:
            return self.samples.size
        return self.interval.n


@dataclass(frozen=True)
class SeriesRow:
    """One series. The ratio is after by before, above 1 for slower, with its 95% interval; None if
    there is none. ``reason`` says why the result is unknown; ``q`` is the p-value corrected for the
    number of series."""

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

    def sort_key(self) -> tuple[int, float, str]:
        """Return the display order: by status, the largest effect first."""
        effect = abs(math.log(self.ratio)) if self.ratio else 0.0
        return _STATUS_ORDER[self.status], -effect, self.series


@dataclass(frozen=True)
class GroupMean:
    """The geometric mean of a group's comparable series, with its 95% interval; the same code in
    the same environment counts as exactly 1."""

    name: str
    ratio: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Comparison:
    """Rows by status, the largest effect first; ``pairs`` is the number of pairs of the same code
    that gave the ``floor`` (0: it comes from the settings)."""

    rows: tuple[SeriesRow, ...]
    groups: tuple[GroupMean, ...]
    settings: CompareSettings
    floor: float
    pairs: int

    def select(self, status: Status) -> tuple[SeriesRow, ...]:
        return tuple(row for row in self.rows if row.status is status)

    @property
    def compared(self) -> int:
        """The number of series on both sides with a verdict: slower, faster or the same."""
        return sum(row.status in {Status.SLOWER, Status.FASTER, Status.SAME} for row in self.rows)


def compare(
    before: Sequence[MeasuredSeries],
    after: Sequence[MeasuredSeries],
    settings: CompareSettings = CompareSettings(),
) -> Comparison:
    """Compare two sides; series are matched by name. Raises ``ValueError`` for a duplicate name on
    a side, and for samples that are not above 0."""
    old_by_name, new_by_name = _by_name(before), _by_name(after)
    rows = [
        SeriesRow(name, new_by_name[name].group, Status.NEW)
        for name in new_by_name.keys() - old_by_name.keys()
    ]
    rows += [
        SeriesRow(name, old_by_name[name].group, Status.GONE)
        for name in old_by_name.keys() - new_by_name.keys()
    ]
    pairs = []
    for name in sorted(old_by_name.keys() & new_by_name.keys()):
        before_series, after_series = old_by_name[name], new_by_name[name]
        reason = _not_comparable(before_series, after_series)
        if reason:
            counts = {"n_before": before_series.n, "n_after": after_series.n}
            rows.append(
                SeriesRow(name, before_series.group, Status.UNKNOWN, **counts, reason=reason)
            )
        else:
            pairs.append((before_series, after_series))
    floor, same_count = settings.floor, 0
    groups: tuple[GroupMean, ...] = ()
    if pairs:
        before_medians, after_medians = (
            _medians([pair[side] for pair in pairs]) for side in (0, 1)
        )
        is_same_code = np.array(
            [
                _same_code(before_series.point, after_series.point)
                for before_series, after_series in pairs
            ]
        )
        if is_same_code.sum() >= MIN_PAIRS:
            same_count = int(is_same_code.sum())
            floor = max(
                floor,
                noise_floor(
                    before_medians.select(is_same_code), after_medians.select(is_same_code)
                ),
            )
        series_ratios = ratios(before_medians, after_medians, floor)
        rows += _rows(pairs, series_ratios, is_same_code, settings)
        groups = _group_means(
            series_ratios,
            is_same_code,
            [(new_by_name.group, *new_by_name.groups) for _, new_by_name in pairs],
        )
    ordered = tuple(sorted(rows, key=SeriesRow.sort_key))
    return Comparison(ordered, groups, settings, floor, same_count)


def _by_name(side: Sequence[MeasuredSeries]) -> dict[str, MeasuredSeries]:
    by_name = {series.series: series for series in side}
    if len(by_name) != len(side):
        raise ValueError("duplicate series")
    invalid = next(
        (series for series in side if not series.unusable and not (series.samples > 0).all()), None
    )
    if invalid is not None:
        raise ValueError(f"{invalid.series}: samples must be above 0")
    return by_name


def _not_comparable(before: MeasuredSeries, after: MeasuredSeries) -> str:
    """Return why a series cannot be compared; "" if it can."""
    if before.unusable or after.unusable:
        return before.unusable or after.unusable
    fewest = min(before.n, after.n)
    if fewest < MIN_RATIO_SAMPLES:
        samples = "1 sample" if fewest == 1 else f"{fewest} samples"
        return f"insufficient data: {samples}, at least {MIN_RATIO_SAMPLES} required"
    if before.point is None or after.point is None:
        return ""
    differences = environment_differences(before.point, after.point)
    changed = "; ".join(difference.sentence for difference in differences)
    return f"different environment: {changed}" if changed else ""


def _same_code(before: Point | None, after: Point | None) -> bool:
    if before is None or after is None or not before.environment.known:
        return False
    codes = before.code, after.code
    if all(code.instructions_digest for code in codes):
        return codes[0].instructions_digest == codes[1].instructions_digest
    return bool(codes[0].digest) and codes[0].digest == codes[1].digest


def _medians(side: Sequence[MeasuredSeries]) -> Medians:
    """Return medians of the samples, or of the interval for series without samples."""
    sampled = np.array([series.samples.size > 0 for series in side])
    counts = np.array([series.n for series in side])
    result = Medians(np.empty(len(side)), np.empty(len(side)), counts)
    samples = [series.samples for series in side if series.samples.size]
    intervals = [series.interval for series in side if series.interval and not series.samples.size]
    for mask, side_medians in (
        (sampled, medians(samples)),
        (~sampled, medians_from_intervals(intervals)),
    ):
        result.logs[mask], result.errors[mask] = side_medians.logs, side_medians.errors
    return result


def _rows(
    pairs: Sequence[tuple[MeasuredSeries, MeasuredSeries]],
    series_ratios: Ratios,
    is_same_code: npt.NDArray[np.bool_],
    settings: CompareSettings,
) -> list[SeriesRow]:
    low, high = series_ratios.interval()
    q = np.ones(len(pairs))
    tested = np.flatnonzero(~is_same_code)  # the same code cannot have become slower
    q[tested] = adjust_p_values(series_ratios.p_values(settings.least_effect)[tested])
    max_ratio = 1 + settings.equivalence
    is_equivalent = (low >= 1 / max_ratio) & (high <= max_ratio)
    # Plain numbers: reading thousands from an array one by one is slow.
    columns = (np.exp(series_ratios.logs), low, high, q, is_same_code, is_equivalent)
    result = []
    for (old, new), *figures in zip(pairs, *(column.tolist() for column in columns), strict=True):
        ratio, ratio_low, ratio_high, p_value, is_same, is_within = figures
        status, reason = Status.UNKNOWN, "the interval is too wide"
        if is_same:
            status, reason = Status.SAME, "same code, same environment"
        elif p_value <= settings.false_discoveries:
            status, reason = (Status.SLOWER if ratio > 1 else Status.FASTER), ""
        elif is_within:
            status, reason = Status.SAME, ""
        result.append(
            SeriesRow(
                old.series,
                old.group,
                status,
                ratio,
                ratio_low,
                ratio_high,
                old.n,
                new.n,
                None if is_same else p_value,
                reason,
            )
        )
    return result


def _group_means(
    series_ratios: Ratios, is_same_code: npt.NDArray[np.bool_], names: Sequence[Sequence[str]]
) -> tuple[GroupMean, ...]:
    """Return the means of the series by group. The ratio of the same code in the same environment
    counts as exactly 1."""
    logs, errors = (
        np.where(is_same_code, 0.0, series_ratios.logs),
        np.where(is_same_code, 0.0, series_ratios.errors),
    )
    adjusted_ratios = Ratios(logs, errors, series_ratios.freedom)
    indices: defaultdict[str, list[int]] = defaultdict(list)
    for index, groups in enumerate(names):
        for name in dict.fromkeys(groups):
            indices[name].append(index)
    return tuple(
        GroupMean(
            name,
            *geometric_mean(adjusted_ratios, np.array(group_indices, np.intp)),
            len(group_indices),
        )
        for name, group_indices in sorted(indices.items())
    )


_STATUS_ORDER = {status: position for position, status in enumerate(Status)}
