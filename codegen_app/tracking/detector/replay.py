"""The detector over a window of one history: the same points, in order, give the same changes.

What is found at a point depends only on the points up to it, and on at most the last
``CONTEXT_POINTS`` of these. So points may arrive in any order and in any batches: a replay that
begins ``CONTEXT_POINTS`` points before the first new one, at the level there, finds what it would
have found with all points at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from codegen_app.tracking.detector.points import PointColumns
from scheduler.stats import changes
from scheduler.stats.noise import NoiseFloor, noise_floor
from scheduler.stats.settings import Settings
from scheduler.track import ratios

DEFAULT_SETTINGS = Settings()

FLOOR_POINTS = 120
"""Maximum number of points, up to the current one, for the noise floor."""

CONTEXT_POINTS = max(FLOOR_POINTS, DEFAULT_SETTINGS.before + DEFAULT_SETTINGS.after)
"""Points before the first new one that suffice to continue."""


@dataclass(frozen=True)
class KnownChange:
    """A change that was found before and is independent of the new points. ``split`` is the index
    of its first point in the window, or None if it lies before the window."""

    pk: int
    split: int | None
    n_before: int
    n_after: int


@dataclass(frozen=True)
class ReplayWindow:
    """The window of a replay: ``places`` in order, new from ``first`` on.

    ``level`` is where the current level begins; ``baselines`` are times at which one begins again;
    ``same`` says which conditions differ only in telemetry (else each is distinct); ``groups``
    which have one code object in one environment (without it, no floor is computed).
    """

    places: PointColumns
    first: int
    level: int
    higher_is_better: bool
    settings: Settings
    baselines: Sequence[datetime]
    same: Mapping[int, str]
    groups: Mapping[int, str]
    last: KnownChange | None = None


@dataclass(frozen=True)
class DetectedChange:
    """A change: ``low`` and ``high`` bound ``after / before`` at 95%, None if a side has fewer than
    five values. ``shown_at`` is the place of the point that showed it."""

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
class _ChangePoint:
    """The end of a level: ``at`` is the first index of the next, ``shown`` the index that showed
    it."""

    at: int
    shown: int
    n_before: int
    errors: float


@dataclass(frozen=True)
class SideValues:
    """The values on both sides of a change that its figures are computed from."""

    before: np.ndarray[tuple[int], np.dtype[np.float64]]
    after: np.ndarray[tuple[int], np.dtype[np.float64]]


def settings_of(least_effect: float | None) -> Settings:
    """Return the default settings with the series' own threshold."""
    return (
        DEFAULT_SETTINGS
        if least_effect is None
        else replace(DEFAULT_SETTINGS, least_effect=least_effect)
    )


def has_change(stretch: ReplayWindow) -> bool:
    """Return whether anything is found without the noise floor: quick, since most find nothing."""
    return next(_change_points(stretch), None) is not None


def replay(
    stretch: ReplayWindow, *, is_moving: bool = True
) -> tuple[list[DetectedChange], tuple[KnownChange, DetectedChange] | None]:
    """Return the changes that the new points show, in order; and the last known change with its
    figures from the points since, if there are more points than before. ``is_moving`` is the result
    of ``has_change``, if known."""
    splits = list(_change_points(stretch)) if is_moving else []
    ends = [split.at for split in splits]
    sides = [
        _sides(stretch, split.at, split.n_before, end)
        for split, end in zip(splits, [*ends[1:], None], strict=False)
    ]
    again = _updated_sides(stretch, ends[0] if ends else None)
    intervals = _intervals([*sides, *([again] if again else [])])
    found = [
        _detected_change(stretch, split.at, one, interval, split.shown, split.errors)
        for split, one, interval in zip(splits, sides, intervals, strict=False)
    ]
    known = stretch.last
    if again is None or known is None or known.split is None:
        return found, None
    return found, (
        known,
        _detected_change(stretch, known.split, again, intervals[-1], known.split, 0.0),
    )


def _change_points(stretch: ReplayWindow) -> Iterator[_ChangePoint]:
    """Yield the ends of levels, as the new points show them one after the other."""
    places, settings = stretch.places, stretch.settings
    texts = _run_keys(stretch)
    floor_of = _floor_lookup(stretch, texts)
    begun = max(_last_reset(stretch, stretch.level, stretch.first), stretch.level)
    level = changes.resume_level(
        places.values[begun : stretch.first],  # type: ignore[arg-type]
        texts[begun : stretch.first],
        settings=settings,
        earlier=places.values[_last_reset(stretch, 0, begun + 1) : begun].tolist(),
    )
    for at in range(stretch.first, len(places)):
        if _is_reset(stretch, at):
            level, begun = changes.Level(), at
        before, value = level, float(places.values[at])
        level, detection = changes.append_value(before, value, texts[at], settings=settings)
        if detection.change is not None:
            floor = floor_of(begun + detection.change.index, at)
            if floor is not None:  # most points change nothing and need no floor
                level, detection = changes.append_value(before, value, texts[at], floor, settings)
        if detection.change is not None:
            change = detection.change
            yield _ChangePoint(begun + change.index, at, change.n_before, change.errors)


def _run_keys(stretch: ReplayWindow) -> list[str]:
    """Return the keys that runs of one revision share: the same code under the same conditions."""
    revisions = stretch.places.revisions.tolist()
    if not stretch.same:
        return list(map(str, revisions))
    same = stretch.same.get
    conditions = stretch.places.conditions.tolist()
    return [f"{one} {same(under, '')}" for one, under in zip(revisions, conditions, strict=True)]


def _is_reset(stretch: ReplayWindow, at: int) -> bool:
    """Return whether a person set a baseline between an index and the one before it."""
    earlier = stretch.places[at - 1].at if at else None
    here = stretch.places[at].at
    return any((earlier is None or earlier < one) and one <= here for one in stretch.baselines)


def _last_reset(stretch: ReplayWindow, begin: int, end: int) -> int:
    """Return the last index in [begin, end) at which a baseline was set; else ``begin``."""
    if not stretch.baselines:
        return begin
    return next((at for at in range(end - 1, begin, -1) if _is_reset(stretch, at)), begin)


def _floor_lookup(
    stretch: ReplayWindow, texts: Sequence[str]
) -> Callable[[int, int], NoiseFloor | None]:
    """Return the function that computes the floor for a change that begins at one index and is
    shown by another: from the code object and environment of the point before it."""

    def floor(split: int, shown: int) -> NoiseFloor | None:
        conditions = stretch.places.conditions.tolist()
        group = stretch.groups.get(conditions[split - 1])
        if not group:
            return None
        runs: list[list[float]] = []
        text = None
        for at in range(max(0, shown + 1 - FLOOR_POINTS), split):
            if stretch.groups.get(conditions[at]) != group:
                continue
            if texts[at] != text:
                runs.append([])
                text = texts[at]
            runs[-1].append(float(stretch.places.values[at]))
        found = noise_floor(runs)
        return found if found.noise or found.shift else None

    return floor


def _sides(stretch: ReplayWindow, split: int, n_before: int, end: int | None) -> SideValues:
    """Return the values for a change's figures: as many since the change as one of the sizes that
    the detector tries, so that the order of arrival does not matter."""
    stop = len(stretch.places) if end is None else end
    resets = (at for at in range(split + 1, stop) if stretch.baselines and _is_reset(stretch, at))
    available = next(resets, stop) - split
    after = max((size for size in stretch.settings.sizes if size <= available), default=available)
    values = stretch.places.values[split - n_before : split + after]
    return SideValues(values[:n_before], values[n_before:])


def _updated_sides(stretch: ReplayWindow, end: int | None) -> SideValues | None:
    """Return the sides of the last known change if its figures come from other points now."""
    known = stretch.last
    if known is None or known.split is None or known.split < known.n_before:
        return None
    sides = _sides(stretch, known.split, known.n_before, end)
    among = stretch.first < known.split + known.n_after
    return sides if among or sides.after.size != known.n_after else None


def _intervals(sides: Sequence[SideValues]) -> list[tuple[float, float] | None]:
    """Return the intervals of after / before, at 95%."""
    least = ratios.MIN_RATIO_SAMPLES
    which = [n for n, one in enumerate(sides) if min(one.before.size, one.after.size) >= least]
    result: list[tuple[float, float] | None] = [None] * len(sides)
    if which:
        before = ratios.medians([sides[n].before for n in which])
        after = ratios.medians([sides[n].after for n in which])
        with np.errstate(divide="ignore", invalid="ignore"):  # all values may be equal
            found = ratios.ratios(before, after, floor=0.0)
            lows, highs = found.interval()
        middle = np.exp(found.logs)
        alike = found.errors == 0
        lows, highs = np.where(alike, middle, lows), np.where(alike, middle, highs)
        for n, low, high in zip(which, lows, highs, strict=True):
            result[n] = float(low), float(high)
    return result


def _detected_change(
    stretch: ReplayWindow,
    split: int,
    sides: SideValues,
    interval: tuple[float, float] | None,
    shown: int,
    errors: float,
) -> DetectedChange:
    first = stretch.places[split]
    before, after = (float(np.exp(np.median(np.log(one)))) for one in (sides.before, sides.after))
    low, high = interval or (None, None)
    return DetectedChange(
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
