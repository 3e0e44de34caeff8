"""Detects changes in a growing series of measurements, one value at a time.

``append_value`` takes the state of a series and one more value, and reports whether the series has
changed, is steady, or is too short to tell. The state holds only the last values of the present
level and of the ones before it, so a value costs the same however long the series is, and a result
depends only on the values up to it. No state has to be stored: ``resume_level`` rebuilds it from
the values. ``level_shift.py`` tells two levels apart, ``dwell.py`` decides how long a level must
last that was there before, ``settings.py`` has the parameters.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from scheduler.stats.candidate_splits import candidate_splits
from scheduler.stats.dwell import is_lasting
from scheduler.stats.level_shift import DetectionFloor, measure_shift
from scheduler.stats.noise import NoiseFloor
from scheduler.stats.reference import Array, clip, fit_reference
from scheduler.stats.settings import Settings

_NO_FLOOR = NoiseFloor()
_DEFAULTS = Settings()
_OF_DIFFERENCES = 1.4826 / 2**0.5  # standard deviation from the median difference of normal values


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
    most_values = settings.before + settings.after
    logs = np.asarray((*level.logs, float(np.log(value)))[-most_values:])
    level = Level(
        tuple(logs.tolist()),
        (*level.revisions, revision)[-most_values:],
        level.appended + 1,
        _last(level.earlier, most_values - logs.size),
    )
    short = len(level.logs) <= settings.least_before
    unchanged = Detection(Status.INSUFFICIENT if short else Status.STEADY)
    enough = settings.least_after_change if level.earlier else settings.least_before
    if len(level.logs) <= enough:
        return level, unchanged
    noise = max(settings.least_noise, floor.noise)
    is_young = len(level.logs) < settings.least_before + settings.after
    if is_young and len(level.earlier) >= settings.least_before:
        # A level that lasted for one revision hardly shows its own noise: the differences of
        # neighbours show that of the levels before.
        differences = np.abs(np.diff(np.asarray(level.earlier)))
        noise = max(noise, float(np.median(differences)) * _OF_DIFFERENCES)
    least = DetectionFloor(noise=noise, effect=max(settings.least_effect, floor.shift))
    # A level may begin at the first value of a revision.
    names = level.revisions
    first = max(enough, len(names) - settings.after)
    starts = [at for at in range(first, len(names)) if not names[at] or names[at] != names[at - 1]]
    clearest = _clearest_split(logs, starts, least, settings)
    if clearest is None:
        return level, unchanged
    split, errors = clearest
    if not is_lasting(np.asarray(level.earlier), logs[:split], logs[split:], settings):
        return level, unchanged
    before = logs[max(0, split - settings.before) : split]
    change = Change(
        index=level.appended - (logs.size - split),
        before=float(np.exp(np.median(before))),
        after=float(np.exp(np.median(logs[split:]))),
        n_before=before.size,
        n_after=logs.size - split,
        errors=errors,
    )
    rest = replace(
        level,
        logs=level.logs[split:],
        revisions=level.revisions[split:],
        earlier=(*level.earlier, *level.logs[:split]),
    )
    return rest, Detection(Status.CHANGED, change)


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
    most_values = settings.before + settings.after
    return Level(
        logs=_logs(values[-most_values:]),
        revisions=tuple((revisions or ("",) * len(values))[-most_values:]),
        appended=len(values) if appended is None else appended,
        earlier=_logs(_last(earlier, most_values - len(values))),
    )


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
    logs: Array, boundaries: list[int], least: DetectionFloor, settings: Settings
) -> tuple[int, float] | None:
    """Return the split that is clearest beyond its threshold, and its standard errors."""
    best = (0.0, 0.0, 0)
    # For each of the sizes, the last boundary that leaves as many values.
    counts = (bisect_right(boundaries, logs.size - size) for size in settings.sizes)
    tried = list(dict.fromkeys(boundaries[count - 1] for count in counts if count))
    for split in candidate_splits(logs, tried, settings.before, least.effect):
        before = logs[max(0, split - settings.before) : split]
        best = max(best, (*measure_shift(before, logs[split:], least, settings), split))
    passed, errors, split = best
    if passed < 1:
        return None
    located = _locate_split(logs, boundaries, split, least, settings)
    # The last few values moved it there; they may be spikes or start another level: wait.
    if logs.size - located < settings.sizes[0]:
        return None
    if located != split:
        if not candidate_splits(logs, [located], settings.before, least.effect):
            return None
        before = logs[max(0, located - settings.before) : located]
        passed, errors = measure_shift(before, logs[located:], least, settings)
    return (located, errors) if passed >= settings.at_place else None


def _locate_split(
    logs: Array, boundaries: list[int], split: int, least: DetectionFloor, settings: Settings
) -> int:
    """Return the boundary at which two levels fit the values best: least squares, spikes
    clipped."""
    start = max(0, split - settings.before)
    level = fit_reference(logs[start:split], least.noise, settings)
    far = 2 * settings.cut  # must tell a small step from a large one
    cut = clip((logs[start:] - level.centre) / level.noise, far)
    cut -= cut.mean()
    before = np.asarray(boundaries) - start
    explained = np.cumsum(cut)[before - 1] ** 2 / (before * (cut.size - before))
    return boundaries[int(np.argmax(explained))]
