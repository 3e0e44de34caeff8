"""The detector over a stretch of one history: the same points, in order, give the same changes.

What is found at a point depends on the points up to it alone, and on no more than the last
``KEPT`` of them. So points may arrive in any order and in any batches: whoever begins ``KEPT``
points before the first new one, from the level that was there, finds what would have been found of
all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from codegen_app.services.detecting.places import Places
from scheduler.stats import changes
from scheduler.stats.noise import NoiseFloor, noise_floor
from scheduler.stats.settings import Settings
from scheduler.track import ratios

DEFAULTS = Settings()

FLOOR = 120
"""Points up to the present one of which the noise floor is learnt, at most."""

KEPT = max(FLOOR, DEFAULTS.before + DEFAULTS.after)
"""Points before the first new one that are enough to go on."""


@dataclass(frozen=True)
class Known:
    """A change that was found before and that the new points have no part in. ``split`` is its
    first point, as a place in the stretch, or None where that lies before it."""

    pk: int
    split: int | None
    n_before: int
    n_after: int


@dataclass(frozen=True)
class Stretch:
    """What a replay looks at: ``places`` in order, of which those from ``first`` on are new.

    ``level`` is where the present level begins; ``baselines`` are moments at which one begins anew;
    ``same`` says which conditions differ in readings alone (else each is another); ``groups``
    which are of one code object in one environment (without: no floor is learnt).
    """

    places: Places
    first: int
    level: int
    higher_is_better: bool
    settings: Settings
    baselines: Sequence[datetime]
    same: Mapping[int, str]
    groups: Mapping[int, str]
    last: Known | None = None


@dataclass(frozen=True)
class Found:
    """A change: ``low`` and ``high`` bound ``after / before`` at 95%, None where fewer than five
    values on a side cannot say it. ``shown_at`` is where the point stands that showed it."""

    datum_id: int
    at: datetime
    shown_at: datetime
    revision_id: int
    previous_id: int
    before: float
    after: float
    low: float | None
    high: float | None
    n_before: int
    n_after: int
    errors: float
    worse: bool

    @property
    def ratio(self) -> float:
        return self.after / self.before


@dataclass(frozen=True)
class _Split:
    """Where a level ends: ``at`` is the first place of the next, ``shown`` the place that showed
    it."""

    at: int
    shown: int
    n_before: int
    errors: float


@dataclass(frozen=True)
class Sides:
    """The values on both sides of a change, as many as its figures are of."""

    before: np.ndarray[tuple[int], np.dtype[np.float64]]
    after: np.ndarray[tuple[int], np.dtype[np.float64]]


def settings_of(least_effect: float | None) -> Settings:
    """The frozen ones, with what was set for the series."""
    return DEFAULTS if least_effect is None else replace(DEFAULTS, least_effect=least_effect)


def moves(stretch: Stretch) -> bool:
    """Whether anything is found before the noise floor is asked: quick, for most find nothing."""
    return next(_splits(stretch), None) is not None


def replay(
    stretch: Stretch, *, is_moving: bool = True
) -> tuple[list[Found], tuple[Known, Found] | None]:
    """The changes that the new points show, in order; and the last known one with what points since
    make of its figures, where that is more than before. ``is_moving`` is what ``moves`` says, where
    that was asked already."""
    splits = list(_splits(stretch)) if is_moving else []
    ends = [split.at for split in splits]
    sides = [
        _sides(stretch, split.at, split.n_before, end)
        for split, end in zip(splits, [*ends[1:], None], strict=False)
    ]
    again = _known_again(stretch, ends[0] if ends else None)
    intervals = _intervals([*sides, *([again] if again else [])])
    found = [
        _found(stretch, split.at, one, interval, split.shown, split.errors)
        for split, one, interval in zip(splits, sides, intervals, strict=False)
    ]
    known = stretch.last
    if again is None or known is None or known.split is None:
        return found, None
    return found, (known, _found(stretch, known.split, again, intervals[-1], known.split, 0.0))


def _splits(stretch: Stretch) -> Iterator[_Split]:
    """Where levels end, as the new points show it one after the other."""
    places, settings = stretch.places, stretch.settings
    texts = _texts(stretch)
    floor_of = _floors(stretch, texts)
    begun = max(_reset(stretch, stretch.level, stretch.first), stretch.level)
    level = changes.resume_level(
        places.values[begun : stretch.first],  # type: ignore[arg-type]
        texts[begun : stretch.first],
        settings=settings,
        earlier=places.values[_reset(stretch, 0, begun + 1) : begun].tolist(),
    )
    for at in range(stretch.first, len(places)):
        if _is_reset(stretch, at):
            level, begun = changes.Level(), at
        before, value = level, float(places.values[at])
        level, detection = changes.append_value(before, value, texts[at], settings=settings)
        if detection.change is not None:
            floor = floor_of(begun + detection.change.index, at)
            if floor is not None:  # most points change nothing, and need none
                level, detection = changes.append_value(before, value, texts[at], floor, settings)
        if detection.change is not None:
            change = detection.change
            yield _Split(begun + change.index, at, change.n_before, change.errors)


def _texts(stretch: Stretch) -> list[str]:
    """What runs of one revision share: the same code under the same conditions."""
    revisions = stretch.places.revisions.tolist()
    if not stretch.same:
        return list(map(str, revisions))
    same = stretch.same.get
    conditions = stretch.places.conditions.tolist()
    return [f"{one} {same(under, '')}" for one, under in zip(revisions, conditions, strict=True)]


def _is_reset(stretch: Stretch, at: int) -> bool:
    """Whether somebody said that the level begins anew between a place and the one before it."""
    earlier = stretch.places[at - 1].at if at else None
    here = stretch.places[at].at
    return any((earlier is None or earlier < one) and one <= here for one in stretch.baselines)


def _reset(stretch: Stretch, begin: int, end: int) -> int:
    """The last place in [begin, end) at which a level was said to begin anew; else ``begin``."""
    if not stretch.baselines:
        return begin
    return next((at for at in range(end - 1, begin, -1) if _is_reset(stretch, at)), begin)


def _floors(stretch: Stretch, texts: Sequence[str]) -> Callable[[int, int], NoiseFloor | None]:
    """What gives the floor for a change that begins at one place and is shown by another: learnt of
    the code object, in the environment, that the point before it is of."""

    def floor(split: int, shown: int) -> NoiseFloor | None:
        conditions = stretch.places.conditions.tolist()
        group = stretch.groups.get(conditions[split - 1])
        if not group:
            return None
        runs: list[list[float]] = []
        text = None
        for at in range(max(0, shown + 1 - FLOOR), split):
            if stretch.groups.get(conditions[at]) != group:
                continue
            if texts[at] != text:
                runs.append([])
                text = texts[at]
            runs[-1].append(float(stretch.places.values[at]))
        found = noise_floor(runs)
        return found if found.noise or found.shift else None

    return floor


def _sides(stretch: Stretch, split: int, n_before: int, end: int | None) -> Sides:
    """The values that a change's figures are of: how many of those since, is one of the sizes that
    the detector tries, so that it is the same however they arrived."""
    stop = len(stretch.places) if end is None else end
    resets = (at for at in range(split + 1, stop) if stretch.baselines and _is_reset(stretch, at))
    available = next(resets, stop) - split
    after = max((size for size in stretch.settings.sizes if size <= available), default=available)
    values = stretch.places.values[split - n_before : split + after]
    return Sides(values[:n_before], values[n_before:])


def _known_again(stretch: Stretch, end: int | None) -> Sides | None:
    """The sides of the last known change, where its figures are of other points than before."""
    known = stretch.last
    if known is None or known.split is None or known.split < known.n_before:
        return None
    sides = _sides(stretch, known.split, known.n_before, end)
    among = stretch.first < known.split + known.n_after
    return sides if among or sides.after.size != known.n_after else None


def _intervals(sides: Sequence[Sides]) -> list[tuple[float, float] | None]:
    """Of after / before, at 95%."""
    least = ratios.MIN_RATIO_SAMPLES
    which = [n for n, one in enumerate(sides) if min(one.before.size, one.after.size) >= least]
    result: list[tuple[float, float] | None] = [None] * len(sides)
    if which:
        before = ratios.medians([sides[n].before for n in which])
        after = ratios.medians([sides[n].after for n in which])
        with np.errstate(divide="ignore", invalid="ignore"):  # values that are all alike
            found = ratios.ratios(before, after, floor=0.0)
            lows, highs = found.interval()
        middle = np.exp(found.logs)
        alike = found.errors == 0
        lows, highs = np.where(alike, middle, lows), np.where(alike, middle, highs)
        for n, low, high in zip(which, lows, highs, strict=True):
            result[n] = float(low), float(high)
    return result


def _found(
    stretch: Stretch,
    split: int,
    sides: Sides,
    interval: tuple[float, float] | None,
    shown: int,
    errors: float,
) -> Found:
    first = stretch.places[split]
    before, after = (float(np.exp(np.median(np.log(one)))) for one in (sides.before, sides.after))
    low, high = interval or (None, None)
    return Found(
        datum_id=first.pk,
        at=first.at,
        shown_at=stretch.places[shown].at,
        revision_id=first.revision,
        previous_id=stretch.places[split - 1].revision,
        before=before,
        after=after,
        low=low,
        high=high,
        n_before=sides.before.size,
        n_after=sides.after.size,
        errors=errors,
        worse=(after < before) is stretch.higher_is_better,
    )
