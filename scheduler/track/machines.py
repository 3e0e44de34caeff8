"""Tells a machine that changed from code that changed, by all series that it measures.

One series of the same code in the same environment that moves is noise (``causes``). Many of one
machine that move together are not: they have nothing in common but the machine.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from statistics import fmean, median, stdev

from scheduler.track.telemetry import TelemetryDifference

MIN_SERIES = 4
"""The fewest series that show a machine's change."""

MIN_SHARE = 0.5
"""The least fraction of the series measured on the machine that must have moved."""

MIN_RETURN_VALUES = 8
"""The fewest values, of all series together, that show that a machine is back."""

HALFWAY = 0.5
"""A value nearer to the earlier level than this fraction of the way, in logarithms, is back."""


@dataclass(frozen=True)
class Move:
    """A change of one series, of the same code on one machine: ``first`` is when its first value at
    the new level was measured. The level moved between ``begin`` and ``end``."""

    change: int
    series: int
    ratio: float
    begin: datetime
    first: datetime
    end: datetime


def moved_together(moves: Iterable[Move]) -> tuple[Move, ...]:
    """Return the largest set of moves that share a moment, the earliest of equal ones; each series
    once. The moves are of one machine and in one direction."""
    by_series: dict[int, list[Move]] = {}
    for move in moves:
        by_series.setdefault(move.series, []).append(move)
    spans = [span for series in by_series.values() for span in _spans(series)]
    begins, ends = sorted(begin for begin, _ in spans), sorted(end for _, end in spans)
    counts = ((bisect_right(begins, at) - bisect_left(ends, at), at) for at in begins)
    _, moment = max(counts, key=lambda count: (count[0], -count[1].timestamp()), default=(0, None))
    if moment is None:
        return ()
    shared = (
        [move for move in series if move.begin <= moment <= move.end]
        for series in by_series.values()
    )
    return tuple(
        max(series, key=lambda move: abs(math.log(move.ratio))) for series in shared if series
    )


def _spans(moves: Iterable[Move]) -> list[tuple[datetime, datetime]]:
    """Return the times that moves of one series cover, without overlaps."""
    spans: list[tuple[datetime, datetime]] = []
    for move in sorted(moves, key=lambda move: move.begin):
        if spans and move.begin <= spans[-1][1]:
            begin, end = spans.pop()
            spans.append((begin, max(end, move.end)))
        else:
            spans.append((move.begin, move.end))
    return spans


def is_machine(moved: int, measured: int) -> bool:
    """Return whether so many series that moved together, of those measured on the machine since,
    show that the machine changed.

    On runs of the same commit the detector finds 0.26 false changes in 1,000 values. Within the
    four or five values in which changes count as together, a series has one in a given direction
    with a probability below 0.001. Four of eight at once have one by chance with a probability of
    some 10⁻¹⁰, if their noise is independent. Noise that many series of a machine share is not
    independent: it is what this rule is for. The share keeps a few related series (one library, one
    kernel in many sizes) from standing for a machine whose other series did not move.
    """
    return moved >= MIN_SERIES and moved >= MIN_SHARE * measured


def mean_ratio(moves: Sequence[Move]) -> tuple[float, float, float]:
    """Return the geometric mean of the series' ratios, with its 95% interval: by Student's t, over
    the series, at least two."""
    from scipy import special  # noqa: PLC0415 - a second of each worker's start

    logs = [math.log(move.ratio) for move in moves]
    centre = fmean(logs)
    reach = float(special.stdtrit(len(logs) - 1, 0.975)) * stdev(logs) / math.sqrt(len(logs))
    return math.exp(centre), math.exp(centre - reach), math.exp(centre + reach)


@dataclass(frozen=True)
class MeasuredSeries:
    """A series of a machine that changed: its levels, and the values measured on the machine since,
    with their times, in order."""

    before: float
    after: float
    times: tuple[datetime, ...]
    values: tuple[float, ...]

    @cached_property
    def distances(self) -> list[float]:
        """The distances of the values from the earlier level, as fractions of the way to the later
        level: 0 is back, 1 is not."""
        way = math.log(self.after / self.before)
        return [math.log(value / self.before) / way for value in self.values]

    @property
    def back_since(self) -> datetime | None:
        """The time of the first of its latest values that are all back; None if the last is
        not."""
        since = None
        for time, distance in zip(reversed(self.times), reversed(self.distances), strict=True):
            if distance > HALFWAY:
                break
            since = time
        return since

    def is_back(self, first: int) -> bool:
        """Return whether the values from an index on are back, by their median."""
        distances = self.distances[first:]
        return bool(distances) and median(distances) <= HALFWAY


def back_since(series: Sequence[MeasuredSeries]) -> datetime | None:
    """Return since when a machine is back at its earlier levels; None if it is not.

    Since then at least half of its series, and four unless it has fewer, were measured again, with
    ``MIN_RETURN_VALUES`` values together, and most of these are back by the median of their values.
    A machine that is back for one run only has another change later.
    """
    required = max(min(MIN_SERIES, len(series)), math.ceil(len(series) / 2))
    moments = {since for one in series if (since := one.back_since) is not None}
    # One pass over all values: a machine may have thousands of series, each back at its own moment.
    times = sorted((time, number) for number, one in enumerate(series) for time in one.times)
    firsts = [0] * len(series)
    is_back = [one.is_back(0) for one in series]
    n_measured, n_passed = sum(bool(one.times) for one in series), 0
    for moment in sorted(moments):
        passed = set()
        while times[n_passed][0] < moment:
            number = times[n_passed][1]
            firsts[number] += 1
            passed.add(number)
            n_passed += 1
        for number in passed:
            is_back[number] = series[number].is_back(firsts[number])
            n_measured -= firsts[number] == len(series[number].times)
        if n_measured < required or len(times) - n_passed < MIN_RETURN_VALUES:
            return None
        if sum(is_back) > n_measured / 2:
            return moment
    return None


@dataclass(frozen=True)
class MovedReading:
    """A reading that differs in ``n_series`` of the series: the medians of its values on both
    sides, and the sentence of the series nearest to them."""

    name: str
    before: float
    after: float
    n_series: int
    sentence: str


def moved_readings(by_series: Sequence[Sequence[TelemetryDifference]]) -> tuple[MovedReading, ...]:
    """Return the readings that differ in most of the series in which any does, most series
    first."""
    counts = Counter(reading.name for readings in by_series for reading in set(readings))
    moved = []
    for name, count in counts.most_common():
        if count <= sum(map(bool, by_series)) / 2:
            continue
        readings = [one for series in by_series for one in series if one.name == name]
        before = float(median(one.before for one in readings))
        after = float(median(one.after for one in readings))
        nearest = min(readings, key=lambda one: abs(one.before - before) + abs(one.after - after))
        moved.append(MovedReading(name, before, after, count, nearest.sentence))
    return tuple(moved)
