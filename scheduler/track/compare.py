"""Compares two revisions or runs over all their series: slower, faster, the same, new, gone, or
unknown.

Of thousands of series, some look slower by chance alone. Two rules keep them out: a series counts
as slower or faster only if the effect exceeds ``CompareSettings.least_effect``, and the test is
corrected for the number of series (Benjamini-Hochberg: 5% of the reported ones are expected to be
false). Intervals are for each series by itself. A series is the same if its whole interval lies
within ``CompareSettings.equivalence``; otherwise it is unknown.

Pairs of the same code in the same environment are never slower or faster. Their distance is the
noise floor of everything else in the comparison.

A series with too few samples on a side is compared with its history, if it is given
(``history_comparison.py``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from scheduler.stats.prediction import History
from scheduler.track.compared_series import (
    CompareSettings,
    MeasuredSeries,
    Method,
    SeriesRow,
    Status,
)
from scheduler.track.differences import environment_differences
from scheduler.track.history_comparison import (
    HistoryPair,
    compare_with_history,
    missing_values,
    too_short,
)
from scheduler.track.ratios import (
    MIN_RATIO_SAMPLES,
    Medians,
    Ratios,
    adjust_p_values,
    concatenate_ratios,
    geometric_mean,
    medians,
    medians_from_intervals,
    noise_floor,
    ratios,
)
from scheduler.track.sides import Point

_DEFAULT_SETTINGS = CompareSettings()
_NO_HISTORIES: Mapping[str, History] = {}

MIN_PAIRS = 10
"""The fewest pairs of the same code from which the noise floor is estimated."""


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
    settings: CompareSettings = _DEFAULT_SETTINGS,
    histories: Mapping[str, History] = _NO_HISTORIES,
) -> Comparison:
    """Compare two sides; series are matched by name. ``histories`` are the times of single runs up
    to the side before, in the environment of the side after.

    Raises ``ValueError`` for a duplicate name on a side, and for samples that are not above 0.
    """
    old_by_name, new_by_name = _by_name(before), _by_name(after)
    rows = [
        SeriesRow(name, new_by_name[name].group, Status.NEW)
        for name in new_by_name.keys() - old_by_name.keys()
    ]
    rows += [
        SeriesRow(name, old_by_name[name].group, Status.GONE)
        for name in old_by_name.keys() - new_by_name.keys()
    ]
    pairs, history_pairs = [], []
    for name in sorted(old_by_name.keys() & new_by_name.keys()):
        pair = old_by_name[name], new_by_name[name]
        history = histories.get(name)
        lacking = _too_few_samples(*pair)
        reason = _not_comparable(*pair, lacking, history)
        if reason:
            row = SeriesRow(name, pair[0].group, Status.UNKNOWN, reason=reason)
            rows.append(replace(row, n_before=pair[0].n, n_after=pair[1].n))
        elif lacking and history is not None:
            is_same = _same_code(pair[0].point, pair[1].point)
            history_pairs.append(HistoryPair(*pair, history, is_same))
        else:
            pairs.append(pair)
    by_samples = _compare_samples(pairs, settings)
    by_history = compare_with_history(history_pairs, settings)
    compared = [*(new for _, new in pairs), *(pair.after for pair in history_pairs)]
    groups = _group_means(
        concatenate_ratios([by_samples.ratios, by_history.ratios]),
        np.array(
            [*by_samples.is_same_code, *(pair.is_same_code for pair in history_pairs)], np.bool_
        ),
        [(series.group, *series.groups) for series in compared],
    )
    ordered = sorted([*rows, *by_samples.rows, *by_history.rows], key=SeriesRow.sort_key)
    return Comparison(tuple(ordered), groups, settings, by_samples.floor, by_samples.same_count)


@dataclass(frozen=True)
class _SampleComparison:
    """The rows of pairs with enough samples, their ratios in the order of the pairs, and the noise
    floor with the number of pairs that it comes from (0: from the settings)."""

    rows: Sequence[SeriesRow]
    ratios: Ratios
    is_same_code: npt.NDArray[np.bool_]
    floor: float
    same_count: int


def _compare_samples(
    pairs: Sequence[tuple[MeasuredSeries, MeasuredSeries]], settings: CompareSettings
) -> _SampleComparison:
    floor, same_count = settings.floor, 0
    before_medians, after_medians = (_medians([pair[side] for pair in pairs]) for side in (0, 1))
    is_same_code = np.array([_same_code(old.point, new.point) for old, new in pairs], np.bool_)
    if is_same_code.sum() >= MIN_PAIRS:
        same_count = int(is_same_code.sum())
        same_before, same_after = (
            side.select(is_same_code) for side in (before_medians, after_medians)
        )
        floor = max(floor, noise_floor(same_before, same_after))
    pair_ratios = ratios(before_medians, after_medians, floor)
    rows = _rows(pairs, pair_ratios, is_same_code, settings)
    return _SampleComparison(rows, pair_ratios, is_same_code, floor, same_count)


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


def _not_comparable(
    before: MeasuredSeries, after: MeasuredSeries, lacking: str, history: History | None
) -> str:
    """Return why a series cannot be compared; "" if it can. ``lacking`` is the number of samples if
    they are too few."""
    if before.unusable or after.unusable:
        return before.unusable or after.unusable
    if lacking and history is None:
        return f"insufficient data: {lacking}, at least {MIN_RATIO_SAMPLES} required"
    if before.point is not None and after.point is not None:
        differences = environment_differences(before.point, after.point)
        if differences:
            changed = "; ".join(difference.sentence for difference in differences)
            return f"different environment: {changed}"
    if lacking and history is not None and missing_values(history):
        return too_short(lacking, history)
    return ""


def _too_few_samples(before: MeasuredSeries, after: MeasuredSeries) -> str:
    """Return the number of samples if a side has too few; "" otherwise."""
    fewest = min(before.n, after.n)
    if fewest >= MIN_RATIO_SAMPLES:
        return ""
    return "1 sample" if fewest == 1 else f"{fewest} samples"


def _same_code(before: Point | None, after: Point | None) -> bool:
    if before is None or after is None or not before.environment.known:
        return False
    codes = before.code, after.code
    if all(code.instructions_digest for code in codes):
        return codes[0].instructions_digest == codes[1].instructions_digest
    return bool(codes[0].digest) and codes[0].digest == codes[1].digest


def _medians(side: Sequence[MeasuredSeries]) -> Medians:
    """Return medians of the samples, or of the interval for series without samples."""
    sampled = np.array([series.samples.size > 0 for series in side], np.bool_)
    counts = np.array([series.n for series in side], np.int64)
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
                Method.SAMPLES,
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
