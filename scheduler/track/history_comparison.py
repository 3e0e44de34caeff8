"""Compares one or a few new values of a series with its history, for thousands of series at once.

Where a side has too few samples, the difference between two runs says nothing: what the same code
varies by from run to run is in the history only. The median of the new values is compared with the
level and the noise of the last values before them (``scheduler.stats.prediction``). The test is
corrected for the number of series, so that a comparison without any difference reports one in
``CompareSettings.false_positives`` of cases.

A value outside the expected range that may still be chance is uncertain, and so is one within a
range that is too wide to tell. Both are settled by measuring again: ``SeriesRow.rerun`` says how
often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scheduler.stats.prediction import MIN_HISTORY, Floats, History, Ints, Prediction, predict
from scheduler.stats.reference import median
from scheduler.stats.suspicion import Suspicion, suspected_steps
from scheduler.track.compared_series import (
    CompareSettings,
    MeasuredSeries,
    Method,
    SeriesRow,
    SideName,
    Status,
)
from scheduler.track.ratios import MIN_RATIO_SAMPLES, Ratios, adjust_p_values

MAX_RERUNS = 5
"""The most further measurements that are asked for at once."""


@dataclass(frozen=True)
class HistoryPair:
    """A series with new values, and its history up to the side before."""

    before: MeasuredSeries
    after: MeasuredSeries
    history: History
    is_same_code: bool


@dataclass(frozen=True)
class HistoryComparison:
    """The rows of the pairs, and their ratios for geometric means, in the order of the pairs."""

    rows: tuple[SeriesRow, ...]
    ratios: Ratios


@dataclass(frozen=True)
class _Test:
    """The new values of all pairs against their predictions.

    ``p_noise`` is the probability by the noise alone, ``p`` also by how often values were as far
    off before, ``q`` corrects the latter for the number of series. ``suspicions`` are steps at the
    end of the histories, which the predictions leave out.
    """

    pairs: Sequence[HistoryPair]
    prediction: Prediction
    suspicions: Sequence[Suspicion | None]
    logs: Floats
    counts: Ints
    p_noise: Floats
    p: Floats
    q: Floats


def missing_values(history: History) -> int:
    """Return how many values a history lacks to be compared with."""
    return max(0, MIN_HISTORY - history.values.size)


def compare_with_history(
    pairs: Sequence[HistoryPair], settings: CompareSettings
) -> HistoryComparison:
    """Compare the new values of each series with its history, of at least ``MIN_HISTORY``
    values."""
    suspicions = suspected_steps(
        [pair.history for pair in pairs],
        np.full(len(pairs), settings.least_effect),
        settings.floor,
    )
    prediction = predict(
        [
            _before_step(pair.history, suspicion)
            for pair, suspicion in zip(pairs, suspicions, strict=True)
        ],
        settings.floor,
    )
    runs = [pair.after.runs for pair in pairs]
    logs = np.log([median(values) for values in runs])
    counts = np.array([values.size for values in runs], np.int64)
    p_noise = prediction.p_values(logs, counts, settings.least_effect)
    repeats = prediction.repeat_chances(logs - prediction.levels, counts)
    p = np.maximum(p_noise, repeats)
    q = np.ones(len(pairs))
    tested = np.flatnonzero([not pair.is_same_code for pair in pairs])
    if tested.size:
        q[tested] = adjust_p_values(p[tested])
    test = _Test(pairs, prediction, suspicions, logs, counts, p_noise, p, q)
    return HistoryComparison(tuple(_rows(test, settings)), _ratios(test))


def _before_step(history: History, suspicion: Suspicion | None) -> History:
    """Return the history without the values of a suspected step."""
    if suspicion is None:
        return history
    return History(history.values[: -suspicion.n], history.level_starts)


def _ratios(test: _Test) -> Ratios:
    """Return the ratios of the new values to their levels. The side towards the level gives their
    error: a value above it may be noise above it."""
    is_above = test.logs > test.prediction.levels
    below, above = test.prediction.freedom
    return Ratios(
        test.logs - test.prediction.levels,
        test.prediction.errors(test.counts, is_above),
        np.where(is_above, above, below),
    )


def _rows(test: _Test, settings: CompareSettings) -> list[SeriesRow]:
    margin = np.log1p(settings.least_effect)
    low, high = test.prediction.interval(test.counts, settings.expected)
    levels = test.prediction.levels
    expected = np.exp(low - levels - margin), np.exp(high - levels + margin)
    ratio_low, ratio_high = _ratios(test).interval()
    reruns = _reruns(test, settings)
    columns = (
        *(np.exp(test.logs - levels), ratio_low, ratio_high),
        *(*expected, test.q, test.prediction.n, test.counts, reruns),
    )
    statuses = [_status(test, index, high, settings) for index in range(len(test.pairs))]
    rows = []
    for pair, suspicion, (status, reason), *figures in zip(
        test.pairs,
        test.suspicions,
        statuses,
        *(column.tolist() for column in columns),
        strict=True,
    ):
        ratio, bound_low, bound_high, lowest, highest, q, n, count, rerun = figures
        is_uncertain = status is Status.UNCERTAIN
        side = SideName.BEFORE if suspicion is not None else SideName.AFTER
        rows.append(
            SeriesRow(
                pair.after.series,
                pair.after.group,
                status,
                ratio,
                bound_low,
                bound_high,
                n,
                count,
                None if pair.is_same_code else q,
                reason,
                Method.HISTORY,
                lowest,
                highest,
                rerun if is_uncertain else 0,
                side if is_uncertain else SideName.NONE,
            )
        )
    return rows


def _status(test: _Test, index: int, high: Floats, settings: CompareSettings) -> tuple[Status, str]:
    """Return the status of a pair and, unless it moved, the reason."""
    suspicion = test.suspicions[index]
    distance = test.logs[index] - test.prediction.levels[index]
    if test.pairs[index].is_same_code:
        return Status.SAME, "same code, same environment"
    is_outside = test.p_noise[index] <= 1 - settings.expected
    if is_outside and suspicion is not None:
        step = np.log(suspicion.ratio)
        if distance * step > 0 and abs(distance) < 2 * abs(step):
            return Status.UNCERTAIN, (
                f"the side before is suspected to be at {suspicion.ratio:.3g} times its level"
                f" already, n = {suspicion.n}"
            )
    if test.q[index] <= settings.false_positives:
        return (Status.SLOWER if distance > 0 else Status.FASTER), ""
    if is_outside and test.p[index] > test.p_noise[index]:
        return Status.UNCERTAIN, "earlier values were as far off without a change"
    if is_outside:
        return (
            Status.UNCERTAIN,
            "outside the expected range, but not beyond chance in so many series",
        )
    reach = float(np.expm1(high[index] - test.prediction.levels[index]))
    if reach > settings.widest:
        return Status.UNCERTAIN, f"the series varies too much: up to +{reach:.0%} is expected"
    return Status.SAME, ""


def _reruns(test: _Test, settings: CompareSettings) -> npt.NDArray[np.int64]:
    """Return how many further values would settle each pair, if their median stays: from one to
    ``MAX_RERUNS``."""
    tests = sum(not pair.is_same_code for pair in test.pairs)
    limit = settings.false_positives / max(tests, 1)
    is_outside = test.p_noise <= 1 - settings.expected
    reruns = np.full(len(test.pairs), MAX_RERUNS)
    for further in range(MAX_RERUNS - 1, 0, -1):
        counts = test.counts + further
        p = test.prediction.p_values(test.logs, counts, settings.least_effect)
        p = np.maximum(
            p, test.prediction.repeat_chances(test.logs - test.prediction.levels, counts)
        )
        _, high = test.prediction.interval(counts, settings.expected)
        is_narrow = np.expm1(high - test.prediction.levels) <= settings.widest
        reruns[np.where(is_outside, p <= limit, is_narrow)] = further
    return reruns


def too_short(samples: str, history: History) -> str:
    """Return why neither samples nor the history can decide."""
    lacking = missing_values(history)
    points = "1 more point" if lacking == 1 else f"{lacking} more points"
    return (
        f"insufficient data: {samples}, at least {MIN_RATIO_SAMPLES} required; or {points}"
        f" before it ({history.values.size} of {MIN_HISTORY})"
    )
