"""Where a series of measurements changes: found while it grows, one point at a time.

``append`` takes what is remembered of a series and one more value, and says whether the series has
changed, is steady, or is too short to say. It keeps no more than the last ``Settings.before +
Settings.after`` values of the present level, so that a point costs the same however long the series
is.

The test compares what was measured since a possible change with what was measured before it, on
logarithms (a change is a ratio). Values are taken as distances from the median in units of the
noise and cut off at ``Settings.cut`` (Huber's way with outliers): one spike, however high, weighs as
much as any point that is clearly off. What the cut values do before the change (their spread, with
its two modes where it has two; how alike neighbours are; a drift) says how much a mean of them
may differ by chance. The threshold is high where few points speak and lower where many do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

_Array: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """What decides. The defaults are those that the benchmark (tests/benchmarks/changes) holds
    beside other detectors; a change of them is a change of every verdict."""

    before: int = 60
    """Values before a possible change that are looked at, at most."""

    after: int = 30
    """Values since a possible change, at most: a change is found within as many, or not."""

    least_before: int = 8
    """Fewer values than that are no level: the verdict is that there are too few."""

    cut: float = 3.5
    """Distances from the median are cut off here, in units of the noise."""

    thresholds: tuple[tuple[int, float], ...] = ((1, 99.0), (3, 5.6), (6, 5.2), (10, 4.8), (16, 4.4))
    """From that many values since the change on, how many standard errors are enough."""

    least_effect: float = 0.005
    """Changes of less than that are of no interest: as a part of the level before."""

    least_noise: float = 0.001
    """Noise is never taken as less: as a part of the level."""


class Status(StrEnum):
    INSUFFICIENT = "insufficient data"
    STEADY = "steady"
    CHANGED = "changed"


@dataclass(frozen=True)
class Change:
    """``index`` is the first value of the new level, counted from the first that was appended;
    ``before`` and ``after`` are the medians, ``errors`` how many standard errors lie between."""

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


@dataclass(frozen=True)
class Verdict:
    status: Status
    change: Change | None = None


def append(
    level: Level, value: float, revision: str = "", settings: Settings = Settings()
) -> tuple[Level, Verdict]:
    """One more value, above 0, in any unit. Values of one ``revision`` are never told apart.

    Raises ``ValueError`` for a value that is not a positive number.
    """
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{value} is no measurement: it must be above 0")
    kept = settings.before + settings.after
    level = Level(
        (*level.logs, float(np.log(value)))[-kept:],
        (*level.revisions, revision)[-kept:],
        level.appended + 1,
    )
    if len(level.logs) < settings.least_before + 1:
        return level, Verdict(Status.INSUFFICIENT)
    best = _best_split(np.asarray(level.logs), level.revisions, settings)
    if best is None:
        return level, Verdict(Status.STEADY)
    split, errors = best
    change = _change(level, split, errors)
    rest = replace(level, logs=level.logs[split:], revisions=level.revisions[split:])
    return rest, Verdict(Status.CHANGED, change)


def changes(
    values: Sequence[float], revisions: Sequence[str] = (), settings: Settings = Settings()
) -> tuple[tuple[int, Change], ...]:
    """Every change of a whole series, each with the index of the value that showed it."""
    level, found = Level(), []
    for position, value in enumerate(values):
        revision = revisions[position] if revisions else str(position)
        level, verdict = append(level, value, revision, settings)
        if verdict.change is not None:
            found.append((position, verdict.change))
    return tuple(found)


def _change(level: Level, split: int, errors: float) -> Change:
    before, after = level.logs[:split], level.logs[split:]
    return Change(
        index=level.appended - len(after),
        before=float(np.exp(np.median(before))),
        after=float(np.exp(np.median(after))),
        n_before=len(before),
        n_after=len(after),
        errors=errors,
    )


def _best_split(
    logs: _Array, revisions: Sequence[str], settings: Settings
) -> tuple[int, float] | None:
    """Where the change is clearest beyond its threshold, and by how many standard errors."""
    best: tuple[float, int, float] | None = None
    for split in _splits(revisions, settings):
        n = logs.size - split
        needed = next(t for least, t in reversed(settings.thresholds) if n >= least)
        errors = _errors(logs[max(0, split - settings.before) : split], logs[split:], settings)
        if errors >= needed and (best is None or errors > best[0]):
            best = (errors, split, errors)
    return None if best is None else (best[1], best[2])


def _splits(revisions: Sequence[str], settings: Settings) -> list[int]:
    n = len(revisions)
    first = max(settings.least_before, n - settings.after)
    return [
        at for at in range(first, n) if not revisions[at] or revisions[at] != revisions[at - 1]
    ]


def _errors(before: _Array, after: _Array, settings: Settings) -> float:
    """By how many standard errors the two differ; 0 where it is too little to matter."""
    centre = float(np.median(before))
    shift = float(np.median(after)) - centre
    if abs(shift) < settings.least_effect:
        return 0.0
    noise = _noise(before, settings)
    cut_before = np.clip((before - centre) / noise, -settings.cut, settings.cut)
    cut_after = np.clip((after - centre) / noise, -settings.cut, settings.cut)
    spread = max(float(cut_before.std(ddof=1)), 0.8)
    own = float(cut_after.std(ddof=1)) if after.size > 2 else spread
    variance = spread**2 * _alike(cut_before) / before.size + max(spread, own) ** 2 * _alike(cut_before) / after.size
    student = abs(float(cut_after.mean() - cut_before.mean())) / np.sqrt(variance)
    return _as_normal(float(student), before.size - 1)


def _noise(before: _Array, settings: Settings) -> float:
    """The values' own spread: by the median distance from the median, and by neighbours."""
    distance = 1.4826 * float(np.median(np.abs(before - np.median(before))))
    return max(distance, settings.least_noise)


def _alike(values: _Array) -> float:
    """What likeness of neighbours makes of the variance of a mean: 1 where there is none."""
    centred = values - values.mean()
    total = float(centred @ centred)
    if total == 0:
        return 1.0
    rho = float(centred[1:] @ centred[:-1]) / total + 1.0 / values.size
    rho = min(max(rho, 0.0), 0.8)
    return (1 + rho) / (1 - rho)


def _as_normal(student: float, freedom: int) -> float:
    """The normal deviate of the same probability (Wallace's approximation)."""
    scale = (8 * freedom + 1) / (8 * freedom + 3)
    return float(scale * np.sqrt(freedom * np.log1p(student**2 / freedom)))
