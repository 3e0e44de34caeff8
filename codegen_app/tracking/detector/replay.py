"""The detector over a window of one history: the same points, in order, give the same changes.

What is found at a point depends only on the points up to it, and on at most the last
``CONTEXT_POINTS`` of these. So points may arrive in any order and in any batches: a replay that
begins ``CONTEXT_POINTS`` points before the first new one, at the level there, finds what it would
have found with all points at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby

import numpy as np

from codegen_app.tracking.detector.points import PointColumns
from scheduler.stats import changes
from scheduler.stats.noise import NoiseFloor, noise_floor
from scheduler.stats.settings import Settings
from scheduler.track import ratios

DEFAULT_SETTINGS = Settings()

FLOOR_POINTS = 120
"""Maximum number of points, up to the current one, for the noise floor."""

_MAX_DOUBT = 3
"""Points by which noise may put a change too early or too late."""

CONTEXT_POINTS = max(FLOOR_POINTS, DEFAULT_SETTINGS.before + DEFAULT_SETTINGS.after)
"""Points before the first new one that suffice to continue."""


@dataclass(frozen=True)
class KnownChange:
    """A change that was found before and is independent of the new points. ``split`` is the index
    of its first point in the window, or None if it lies before the window."""

    split: int | None
    n_before: int
    n_after: int


@dataclass(frozen=True)
class ReplayWindow:
    """The window of a replay: ``points`` in order, new from ``first`` on.

    ``level`` is where the current level begins; ``baselines`` are times at which one begins again;
    ``same`` says which conditions differ only in telemetry (else each is distinct); ``groups``
    which have one code object in one environment (without it, no floor is computed).
    """

    points: PointColumns
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
    good_revision_id: int
    since: datetime
    bad_revision_id: int
    until: datetime
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


def has_change(window: ReplayWindow) -> bool:
    """Return whether anything is found without the noise floor: quick, since most find nothing."""
    return next(_change_points(window), None) is not None


def replay(
    window: ReplayWindow, *, is_moving: bool = True
) -> tuple[list[DetectedChange], DetectedChange | None]:
    """Return the changes that the new points show, in order; and the last known change with its
    figures from the points since, if these are other points than before. ``is_moving`` is the
    result of ``has_change``, if known."""
    splits = list(_change_points(window)) if is_moving else []
    ends = [split.at for split in splits]
    sides = [
        _sides(window, split.at, split.n_before, end)
        for split, end in zip(splits, [*ends[1:], None], strict=False)
    ]
    known = window.last
    if known is not None and known.split is not None and known.split >= known.n_before:
        updated = _sides(window, known.split, known.n_before, ends[0] if ends else None)
        has_new_points = window.first < known.split + known.n_after
        if has_new_points or updated.after.size != known.n_after:
            splits.append(_ChangePoint(known.split, known.split, known.n_before, 0.0))
            sides.append(updated)
    changes = [
        _detected_change(window, split, side, interval)
        for split, side, interval in zip(splits, sides, _intervals(sides), strict=True)
    ]
    return changes[: len(ends)], changes[-1] if len(changes) > len(ends) else None


def _change_points(window: ReplayWindow) -> Iterator[_ChangePoint]:
    """Yield the ends of levels, as the new points show them one after the other."""
    points, settings, same = window.points, window.settings, window.same
    # Points of one run of a revision share a key: the same code under the same conditions.
    run_keys = list(map(str, points.revisions.tolist()))
    if same:
        used = points.conditions.tolist()
        run_keys = [f"{key} {same.get(pk, '')}" for key, pk in zip(run_keys, used, strict=True)]
    begun = max(_last_reset(window, window.level, window.first), window.level)
    level = changes.resume_level(
        points.values[begun : window.first],  # type: ignore[arg-type]
        run_keys[begun : window.first],
        settings=settings,
        earlier=points.values[_last_reset(window, 0, begun + 1) : begun].tolist(),
    )
    for at in range(window.first, len(points)):
        if _is_reset(window, at):
            level, begun = changes.Level(), at
        before, value = level, float(points.values[at])
        level, detection = changes.append_value(before, value, run_keys[at], settings=settings)
        if detection.change is not None:
            floor = _noise_floor(window, run_keys, begun + detection.change.index, at)
            if floor is not None:  # most points change nothing and need no floor
                level, detection = changes.append_value(
                    before, value, run_keys[at], floor, settings
                )
        if detection.change is not None:
            change = detection.change
            yield _ChangePoint(begun + change.index, at, change.n_before, change.errors)


def _is_reset(window: ReplayWindow, at: int) -> bool:
    """Return whether a person set a baseline between an index and the one before it."""
    if not window.baselines:
        return False
    earlier = window.points[at - 1].at if at else None
    here = window.points[at].at
    return any((earlier is None or earlier < time) and time <= here for time in window.baselines)


def _last_reset(window: ReplayWindow, begin: int, end: int) -> int:
    """Return the last index in [begin, end) at which a baseline was set; else ``begin``."""
    if not window.baselines:
        return begin
    return next((at for at in range(end - 1, begin, -1) if _is_reset(window, at)), begin)


def _noise_floor(
    window: ReplayWindow, run_keys: Sequence[str], split: int, shown: int
) -> NoiseFloor | None:
    """Return the floor for a change that begins at one index and is shown by another: from the code
    object and environment of the point before it."""
    conditions = window.points.conditions.tolist()
    group = window.groups.get(conditions[split - 1])
    if not group:
        return None
    first = max(0, shown + 1 - FLOOR_POINTS)
    indices = [at for at in range(first, split) if window.groups.get(conditions[at]) == group]
    runs = [
        [float(window.points.values[at]) for at in run]
        for _, run in groupby(indices, key=run_keys.__getitem__)
    ]
    floor = noise_floor(runs)
    return floor if floor.noise or floor.shift else None


def _sides(window: ReplayWindow, split: int, n_before: int, end: int | None) -> SideValues:
    """Return the values for a change's figures: as many since the change as one of the sizes that
    the detector tries, so that the order of arrival does not matter."""
    stop = len(window.points) if end is None else end
    resets = (at for at in range(split + 1, stop) if window.baselines and _is_reset(window, at))
    available = next(resets, stop) - split
    after = max((size for size in window.settings.sizes if size <= available), default=available)
    values = window.points.values[split - n_before : split + after]
    return SideValues(values[:n_before], values[n_before:])


def _intervals(sides: Sequence[SideValues]) -> list[tuple[float, float] | None]:
    """Return the intervals of after / before, at 95%."""
    least = ratios.MIN_RATIO_SAMPLES
    places = [n for n, side in enumerate(sides) if min(side.before.size, side.after.size) >= least]
    result: list[tuple[float, float] | None] = [None] * len(sides)
    if places:
        before = ratios.medians([sides[n].before for n in places])
        after = ratios.medians([sides[n].after for n in places])
        with np.errstate(divide="ignore", invalid="ignore"):  # all values may be equal
            estimates = ratios.ratios(before, after, floor=0.0)
            lows, highs = estimates.interval()
        middle = np.exp(estimates.logs)
        alike = estimates.errors == 0
        lows, highs = np.where(alike, middle, lows), np.where(alike, middle, highs)
        for n, low, high in zip(places, lows, highs, strict=True):
            result[n] = float(low), float(high)
    return result


def _detected_change(
    window: ReplayWindow,
    split: _ChangePoint,
    sides: SideValues,
    interval: tuple[float, float] | None,
) -> DetectedChange:
    first = window.points[split.at]
    before, after = (
        float(np.exp(np.median(np.log(values)))) for values in (sides.before, sides.after)
    )
    low, high = interval or (None, None)
    good, bad = (
        window.points[at] for at in _certain_window(window, split.at, sides, before, after)
    )
    return DetectedChange(
        datum_id=first.pk,
        at=first.at,
        shown_at=window.points[split.shown].at,
        revision_id=first.revision,
        previous_id=window.points[split.at - 1].revision,
        good_revision_id=good.revision,
        since=good.at,
        bad_revision_id=bad.revision,
        until=bad.at,
        before=before,
        after=after,
        low=low,
        high=high,
        n_before=sides.before.size,
        n_after=sides.after.size,
        errors=split.errors,
        worse=(after < before) is window.higher_is_better,
    )


def _certain_window(
    window: ReplayWindow, split: int, sides: SideValues, before: float, after: float
) -> tuple[int, int]:
    """Return the indices of the nearest points on both sides of a change whose values lie on the
    proper side of the middle between the levels."""
    middle, values = (before * after) ** 0.5, window.points.values
    good, bad = split - 1, split
    while good > split - min(_MAX_DOUBT, sides.before.size) and _is_beyond(
        float(values[good]), middle, after
    ):
        good -= 1
    while bad < split + min(_MAX_DOUBT, sides.after.size) - 1 and _is_beyond(
        float(values[bad]), middle, before
    ):
        bad += 1
    return good, bad


def _is_beyond(value: float, middle: float, level: float) -> bool:
    """Return whether a value lies on the same side of the middle as a level."""
    return (value > middle) == (level > middle)
