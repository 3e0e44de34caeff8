"""Detects changes in a growing series of measurements, one value at a time.

``append_value`` takes the state of a series and one more value, and reports whether the series has
changed, is steady, or is too short to tell. The state holds only the last values of the present
level and of the ones before it, so a value costs the same however long the series is, and a result
depends only on the values up to it. No state has to be stored: ``resume_level`` rebuilds it from
the values. ``level_shift.py`` tells two levels apart, ``dwell.py`` decides how long a level must
last that was there before, ``settings.py`` has the parameters.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from scheduler.stats.candidate_splits import candidate_splits
from scheduler.stats.dwell import is_lasting
from scheduler.stats.level_shift import DetectionFloor, measure_shift
from scheduler.stats.noise import NoiseFloor
from scheduler.stats.reference import Array, clip, fit_reference, median
from scheduler.stats.settings import Settings

_NO_FLOOR = NoiseFloor()
_DEFAULTS = Settings()
_NOISE_PER_DIFFERENCE = (
    1.4826 / 2**0.5
)  # standard deviation from the median difference of normal values


class Status(StrEnum):
    INSUFFICIENT = "insufficient data"
    STEADY = "steady"
    CHANGED = "changed"


@dataclass(frozen=True)
class Change:
    """``index`` is the first value of the new level, counted from the first one appended;
    ``before`` and ``after`` are the medians of the ``n_before`` values before it and the
    ``n_after`` since; ``errors`` is the distance of their means in standard errors, with outliers
    clipped."""

    index: int
    before: float
    after: float
    n_before: int
    n_after: int
    errors: float

    @property
    def ratio(self) -> float:
        return self.after / self.before


@dataclass(frozen=True)
class Level:
    """The state of a series: the present level's last values, oldest first."""

    logs: tuple[float, ...] = ()
    revisions: tuple[str, ...] = ()
    appended: int = 0
    """The number of values that the series has had."""
    earlier: tuple[float, ...] = ()
    """Logarithms of the values before this level, oldest first, up to the limit."""


@dataclass(frozen=True)
class Detection:
    status: Status
    change: Change | None = None


def append_value(
    level: Level,
    value: float,
    revision: str = "",
    floor: NoiseFloor = _NO_FLOOR,
    settings: Settings = _DEFAULTS,
) -> tuple[Level, Detection]:
    """Append one value, above 0, in any unit. Do not append a revision that was not measured.

    Consecutive values of one ``revision`` belong to one level; each value without a revision may
    start a new one. Raises ``ValueError`` for a value that is not a positive number.
    """
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{value} is not a measurement: must be above 0")
    max_values = settings.before + settings.after
    logs = np.asarray((*level.logs, float(np.log(value)))[-max_values:])
    level = Level(
        tuple(logs.tolist()),
        (*level.revisions, revision)[-max_values:],
        level.appended + 1,
        _last(level.earlier, max_values - logs.size),
    )
    is_short = len(level.logs) <= settings.min_before
    no_change = Detection(Status.INSUFFICIENT if is_short else Status.STEADY)
    min_level_values = settings.min_after_change if level.earlier else settings.min_before
    if len(level.logs) <= min_level_values:
        return level, no_change
    noise = max(settings.min_noise, floor.noise)
    is_young = len(level.logs) < settings.min_before + settings.after
    if is_young and len(level.earlier) >= settings.min_before:
        # A level that lasted for one revision hardly shows its own noise: the differences of
        # neighbours show that of the levels before.
        noise = max(noise, _noise_of_neighbours(np.asarray(level.earlier)))
    if logs.size > settings.recent:
        # Values that vary more than before are no other level.
        recent = _noise_of_neighbours(logs[-settings.recent - 1 :])
        noise = max(noise, settings.grown * recent)
    floors = DetectionFloor(noise=noise, effect=max(settings.least_effect, floor.shift))
    # A level may begin at the first value of a revision.
    names = level.revisions
    first = max(min_level_values, len(names) - settings.after)
    starts = [
        index
        for index in range(first, len(names))
        if not names[index] or names[index] != names[index - 1]
    ]
    clearest_split = _clearest_split(logs, starts, floors, settings)
    if clearest_split is None:
        return level, no_change
    split, errors = clearest_split
    if not is_lasting(np.asarray(level.earlier), logs[:split], logs[split:], settings):
        return level, no_change
    before = logs[max(0, split - settings.before) : split]
    change = Change(
        index=level.appended - (logs.size - split),
        before=float(np.exp(np.median(before))),
        after=float(np.exp(np.median(logs[split:]))),
        n_before=before.size,
        n_after=logs.size - split,
        errors=errors,
    )
    new_level = replace(
        level,
        logs=level.logs[split:],
        revisions=level.revisions[split:],
        earlier=(*level.earlier, *level.logs[:split]),
    )
    return new_level, Detection(Status.CHANGED, change)


def resume_level(
    values: Sequence[float],
    revisions: Sequence[str] = (),
    appended: int | None = None,
    settings: Settings = _DEFAULTS,
    earlier: Sequence[float] = (),
) -> Level:
    """Rebuild the state of a series after ``values``: those since its last change (or since its
    first value, without a change), oldest first. ``appended`` is the total number of values if
    there were more; ``earlier`` are the values before, as many as there are."""
    max_values = settings.before + settings.after
    return Level(
        logs=_logs(values[-max_values:]),
        revisions=tuple((revisions or ("",) * len(values))[-max_values:]),
        appended=len(values) if appended is None else appended,
        earlier=_logs(_last(earlier, max_values - len(values))),
    )


def _noise_of_neighbours(logs: Array) -> float:
    """Return the noise that the differences of neighbours show, on any levels."""
    return median(np.abs(logs[1:] - logs[:-1])) * _NOISE_PER_DIFFERENCE


def _last(values: Sequence[float], n: int) -> tuple[float, ...]:
    return tuple(values[-n:]) if n > 0 else ()


def _logs(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(np.log(np.asarray(values, dtype=np.float64)).tolist())


def find_changes(
    values: Sequence[float],
    revisions: Sequence[str] = (),
    floor: NoiseFloor = _NO_FLOOR,
    settings: Settings = _DEFAULTS,
) -> tuple[tuple[int, Change], ...]:
    """Return every change of a whole series, each with the index of the value that showed it."""
    level, changes = Level(), []
    for position, value in enumerate(values):
        revision = revisions[position] if revisions else ""
        level, detection = append_value(level, value, revision, floor, settings)
        if detection.change is not None:
            changes.append((position, detection.change))
    return tuple(changes)


def _clearest_split(
    logs: Array, boundaries: list[int], floors: DetectionFloor, settings: Settings
) -> tuple[int, float] | None:
    """Return the split that is clearest beyond its threshold, and its standard errors."""
    best = (0.0, 0.0, 0)
    # For each of the sizes, the last boundary that leaves as many values.
    counts = (bisect_right(boundaries, logs.size - size) for size in settings.sizes)
    tested_splits = list(dict.fromkeys(boundaries[count - 1] for count in counts if count))
    for split in candidate_splits(logs, tested_splits, settings.before, floors.effect):
        before = logs[max(0, split - settings.before) : split]
        after, runs = logs[split:], _runs_of_a_revision(boundaries, split, logs.size)
        best = max(best, (*measure_shift(before, after, floors, settings, runs), split))
    strength, errors, split = best
    if strength < 1:
        return None
    location = _locate_split(logs, boundaries, split, floors, settings)
    # The last few values moved it there; they may be spikes or start another level: wait.
    if logs.size - location < settings.sizes[0]:
        return None
    if location != split:
        if not candidate_splits(logs, [location], settings.before, floors.effect):
            return None
        before = logs[max(0, location - settings.before) : location]
        runs = _runs_of_a_revision(boundaries, location, logs.size)
        strength, errors = measure_shift(before, logs[location:], floors, settings, runs)
    return (location, errors) if strength >= settings.at_place else None


def _runs_of_a_revision(boundaries: list[int], split: int, n: int) -> float:
    """Return the mean number of values from a split on between boundaries."""
    return (n - split) / (len(boundaries) - bisect_left(boundaries, split))


def _locate_split(
    logs: Array, boundaries: list[int], split: int, floors: DetectionFloor, settings: Settings
) -> int:
    """Return the boundary at which two levels fit the values best: least squares, spikes
    clipped."""
    start = max(0, split - settings.before)
    level = fit_reference(logs[start:split], floors.noise, settings)
    clip_limit = 2 * settings.cut  # must tell a small step from a large one
    clipped = clip((logs[start:] - level.centre) / level.noise, clip_limit)
    clipped -= clipped.mean()
    left_counts = np.asarray(boundaries) - start
    explained = np.cumsum(clipped)[left_counts - 1] ** 2 / (
        left_counts * (clipped.size - left_counts)
    )
    return boundaries[int(np.argmax(explained))]
