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


LEAST_PAIRS = 10
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
    old, new = _by_name(before), _by_name(after)
    rows = [SeriesRow(name, new[name].group, Status.NEW) for name in new.keys() - old.keys()]
    rows += [SeriesRow(name, old[name].group, Status.GONE) for name in old.keys() - new.keys()]
    pairs = []
    for name in sorted(old.keys() & new.keys()):
        one, other = old[name], new[name]
        reason = _not_comparable(one, other)
        if reason:
            counts = {"n_before": one.n, "n_after": other.n}
            rows.append(SeriesRow(name, one.group, Status.UNKNOWN, **counts, reason=reason))
        else:
            pairs.append((one, other))
    floor, same_count = settings.floor, 0
    groups: tuple[GroupMean, ...] = ()
    if pairs:
        one_side, other_side = (_medians([pair[side] for pair in pairs]) for side in (0, 1))
        same = np.array([_same_code(one.point, other.point) for one, other in pairs])
        if same.sum() >= LEAST_PAIRS:
            same_count = int(same.sum())
            floor = max(floor, noise_floor(one_side.select(same), other_side.select(same)))
        ratios_found = ratios(one_side, other_side, floor)
        rows += _rows(pairs, ratios_found, same, settings)
        groups = _group_means(ratios_found, same, [(new.group, *new.groups) for _, new in pairs])
    ordered = tuple(sorted(rows, key=SeriesRow.sort_key))
    return Comparison(ordered, groups, settings, floor, same_count)


def _by_name(side: Sequence[MeasuredSeries]) -> dict[str, MeasuredSeries]:
    by_name = {series.series: series for series in side}
    if len(by_name) != len(side):
        raise ValueError("duplicate series")
    bad = next(
        (series for series in side if not series.unusable and not (series.samples > 0).all()), None
    )
    if bad is not None:
        raise ValueError(f"{bad.series}: samples must be above 0")
    return by_name


def _not_comparable(one: MeasuredSeries, other: MeasuredSeries) -> str:
    """Return why a series cannot be compared; "" if it can."""
    if one.unusable or other.unusable:
        return one.unusable or other.unusable
    fewest = min(one.n, other.n)
    if fewest < MIN_RATIO_SAMPLES:
        samples = "1 sample" if fewest == 1 else f"{fewest} samples"
        return f"insufficient data: {samples}, at least {MIN_RATIO_SAMPLES} required"
    if one.point is None or other.point is None:
        return ""
    differences = environment_differences(one.point, other.point)
    changed = "; ".join(difference.sentence for difference in differences)
    return f"different environment: {changed}" if changed else ""


def _same_code(one: Point | None, other: Point | None) -> bool:
    if one is None or other is None or not one.environment.known:
        return False
    codes = one.code, other.code
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
    for which, part in (
        (sampled, medians(samples)),
        (~sampled, medians_from_intervals(intervals)),
    ):
        result.logs[which], result.errors[which] = part.logs, part.errors
    return result


def _rows(
    pairs: Sequence[tuple[MeasuredSeries, MeasuredSeries]],
    series_ratios: Ratios,
    same: npt.NDArray[np.bool_],
    settings: CompareSettings,
) -> list[SeriesRow]:
    low, high = series_ratios.interval()
    q = np.ones(len(pairs))
    tested = np.flatnonzero(~same)  # the same code cannot have become slower
    q[tested] = adjust_p_values(series_ratios.p_values(settings.least_effect)[tested])
    most = 1 + settings.equivalence
    near = (low >= 1 / most) & (high <= most)
    # Plain numbers: reading thousands from an array one by one is slow.
    columns = (np.exp(series_ratios.logs), low, high, q, same, near)
    result = []
    for (old, new), *figures in zip(pairs, *(column.tolist() for column in columns), strict=True):
        ratio, ratio_low, ratio_high, chance, is_same, is_near = figures
        status, reason = Status.UNKNOWN, "the interval is too wide"
        if is_same:
            status, reason = Status.SAME, "same code, same environment"
        elif chance <= settings.false_discoveries:
            status, reason = (Status.SLOWER if ratio > 1 else Status.FASTER), ""
        elif is_near:
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
                None if is_same else chance,
                reason,
            )
        )
    return result


def _group_means(
    series_ratios: Ratios, same: npt.NDArray[np.bool_], names: Sequence[Sequence[str]]
) -> tuple[GroupMean, ...]:
    """Return the means of the series by group. The ratio of the same code in the same environment
    counts as exactly 1."""
    logs, errors = (
        np.where(same, 0.0, series_ratios.logs),
        np.where(same, 0.0, series_ratios.errors),
    )
    pinned = Ratios(logs, errors, series_ratios.freedom)
    indices: defaultdict[str, list[int]] = defaultdict(list)
    for index, groups in enumerate(names):
        for name in dict.fromkeys(groups):
            indices[name].append(index)
    return tuple(
        GroupMean(name, *geometric_mean(pinned, np.array(which, np.intp)), len(which))
        for name, which in sorted(indices.items())
    )


_STATUS_ORDER = {status: place for place, status in enumerate(Status)}
