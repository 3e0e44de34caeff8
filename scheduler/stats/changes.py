"""Where a series of measurements changes: found while it grows, one value at a time.

``append`` takes what is remembered of a series and one more value, and says whether the series has
changed, is steady, or is too short to say. No more is remembered than the last values, those of the
present level and the ones before it, so that a value costs the same however long the series is, and
what is said of it depends on the values up to it alone. Nothing need be stored for that: ``resume``
makes it again of them. How two levels are told from each other: ``steps.py``; how long a level has
to last that was there before: ``dwell.py``; what decides: ``settings.py``.
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
_OF_DIFFERENCES = 1.4826 / 2**0.5  # the standard deviation, by the median of normal differences


class Status(StrEnum):
    INSUFFICIENT = "insufficient data"
    STEADY = "steady"
    CHANGED = "changed"


@dataclass(frozen=True)
class Change:
    """``index`` is the first value of the new level, counted from the first that was appended;
    ``before`` and ``after`` are the medians of the ``n_before`` values before it and the
    ``n_after`` since; ``errors`` standard errors lie between their means, values far off cut."""

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
    """What is remembered of a series: the present level's last values, oldest first."""

    logs: tuple[float, ...] = ()
    revisions: tuple[str, ...] = ()
    appended: int = 0
    """Values that the series has had."""
    earlier: tuple[float, ...] = ()
    """Logarithms of the values before this level, oldest first, as far as there is room."""


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
    """One more value, above 0, in any unit. A revision that was not measured is not appended.

    Values of one ``revision`` that follow each other belong to one level; each value without a
    revision may be the first of a new one. Raises ``ValueError`` for a value that is not a
    positive number.
    """
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{value} is no measurement: it must be above 0")
    kept = settings.before + settings.after
    logs = np.asarray((*level.logs, float(np.log(value)))[-kept:])
    level = Level(
        tuple(logs.tolist()),
        (*level.revisions, revision)[-kept:],
        level.appended + 1,
        _last(level.earlier, kept - logs.size),
    )
    short = len(level.logs) <= settings.least_before
    unchanged = Detection(Status.INSUFFICIENT if short else Status.STEADY)
    enough = settings.least_after_change if level.earlier else settings.least_before
    if len(level.logs) <= enough:
        return level, unchanged
    noise = max(settings.least_noise, floor.noise)
    if len(level.logs) < settings.least_before + settings.after:
        noise = max(noise, _noise(level.earlier, settings))
    least = DetectionFloor(noise=noise, effect=max(settings.least_effect, floor.shift))
    found = _clearest_split(logs, _boundaries(level.revisions, enough, settings), least, settings)
    if found is None:
        return level, unchanged
    split, errors = found
    if not is_lasting(np.asarray(level.earlier), logs[:split], logs[split:], settings):
        return level, unchanged
    change = _change(level, split, errors, settings)
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
    """What is remembered of a series after ``values``: those since its last change (its first
    where it has had none), oldest first; ``appended`` values in all, if it had more than these.
    ``earlier`` are the values before them, as many as there are."""
    kept = settings.before + settings.after
    return Level(
        logs=_logs(values[-kept:]),
        revisions=tuple((revisions or ("",) * len(values))[-kept:]),
        appended=len(values) if appended is None else appended,
        earlier=_logs(_last(earlier, kept - len(values))),
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
    """Every change of a whole series, each with the index of the value that showed it."""
    level, found = Level(), []
    for position, value in enumerate(values):
        revision = revisions[position] if revisions else ""
        level, detection = append_value(level, value, revision, floor, settings)
        if detection.change is not None:
            found.append((position, detection.change))
    return tuple(found)


def _noise(earlier: Sequence[float], settings: Settings) -> float:
    """The noise of the levels before, from what neighbours differ by; 0 where they are too few. A
    level that lasted for one revision hardly shows its own."""
    if len(earlier) < settings.least_before:
        return 0.0
    differences = np.abs(np.diff(np.asarray(earlier)))
    return float(np.median(differences)) * _OF_DIFFERENCES


def _clearest_split(
    logs: Array, boundaries: list[int], least: DetectionFloor, settings: Settings
) -> tuple[int, float] | None:
    """Where the change begins that is clearest beyond its threshold, and its standard errors."""
    best = (0.0, 0.0, 0)
    tried = _tested_boundaries(boundaries, logs.size, settings)
    for split in candidate_splits(logs, tried, settings.before, least.effect):
        before = logs[max(0, split - settings.before) : split]
        best = max(best, (*measure_shift(before, logs[split:], least, settings), split))
    passed, errors, split = best
    if passed < 1:
        return None
    place = _locate_split(logs, boundaries, split, least, settings)
    # The last few values move it there, which may be spikes or the first of another level: wait.
    if logs.size - place < settings.sizes[0]:
        return None
    if place != split:
        if not candidate_splits(logs, [place], settings.before, least.effect):
            return None
        before = logs[max(0, place - settings.before) : place]
        passed, errors = measure_shift(before, logs[place:], least, settings)
    return (place, errors) if passed >= settings.at_place else None


def _boundaries(revisions: Sequence[str], enough: int, settings: Settings) -> list[int]:
    """Where a level may begin: at the first value of a revision, ``enough`` values after the level
    before it began."""
    n = len(revisions)
    first = max(enough, n - settings.after)
    return [at for at in range(first, n) if not revisions[at] or revisions[at] != revisions[at - 1]]


def _tested_boundaries(boundaries: list[int], n: int, settings: Settings) -> list[int]:
    """For each of the sizes the last boundary that leaves as many values."""
    found = (bisect_right(boundaries, n - size) for size in settings.sizes)
    return list(dict.fromkeys(boundaries[after - 1] for after in found if after))


def _locate_split(
    logs: Array, boundaries: list[int], split: int, least: DetectionFloor, settings: Settings
) -> int:
    """The boundary at which two levels describe the values best: least squares, spikes cut off."""
    start = max(0, split - settings.before)
    level = fit_reference(logs[start:split], least.noise, settings)
    far = 2 * settings.cut  # a small step and a large one differ
    cut = clip((logs[start:] - level.centre) / level.noise, far)
    cut -= cut.mean()
    before = np.asarray(boundaries) - start
    explained = np.cumsum(cut)[before - 1] ** 2 / (before * (cut.size - before))
    return boundaries[int(np.argmax(explained))]


def _change(level: Level, split: int, errors: float, settings: Settings) -> Change:
    before = level.logs[max(0, split - settings.before) : split]
    after = level.logs[split:]
    return Change(
        index=level.appended - len(after),
        before=float(np.exp(np.median(before))),
        after=float(np.exp(np.median(after))),
        n_before=len(before),
        n_after=len(after),
        errors=errors,
    )
