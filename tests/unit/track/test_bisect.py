"""Bisection: the right revision is named, by few measurements, whatever the noise."""

from __future__ import annotations

import random

import pytest

from scheduler.track.bisect import MAX_VALUES, Levels, Side, levels_of, side_of, suspects


def walk(culprit: int, revisions: int, levels: Levels, draw: random.Random) -> tuple[int, int]:
    """Bisect revisions 0 (good) to ``revisions`` (bad); return the culprit that is named, or -1,
    and how many values were measured."""
    values: list[list[float]] = [[] for _ in range(revisions + 1)]
    measured = 0
    while True:
        sides = [side_of(row, levels) if row else None for row in values]
        sides[0], sides[-1] = Side.BEFORE, Side.AFTER
        given_up = [
            side is Side.UNCLEAR and len(row) >= MAX_VALUES
            for side, row in zip(sides, values, strict=True)
        ]
        found = suspects(sides, given_up)
        if found.next is None:
            return (found.bad if found.bad - found.good == 1 else -1), measured
        level = levels.after if found.next >= culprit else levels.before
        values[found.next].append(level * draw.gauss(1, levels.noise))
        measured += 1


@pytest.mark.parametrize(
    ("step", "noise", "values"), [(0.25, 0.01, 6.5), (0.05, 0.01, 14), (0.05, 0.02, 50)]
)
def test_the_culprit_is_named(step: float, noise: float, values: float) -> None:
    draw, levels = random.Random(f"{step} {noise}"), Levels(100.0, 100.0 * (1 + step), noise)
    right, named_any, total = 0, 0, 0
    for _ in range(100):
        culprit = draw.randint(1, 64)
        named, measured = walk(culprit, 64, levels, draw)
        right += named == culprit
        named_any += named > 0
        total += measured
    assert named_any - right <= 2, "wrong ones"
    assert right >= 95
    assert total / 100 <= values


def test_a_value_in_the_middle_is_on_neither_side() -> None:
    levels = Levels(100.0, 121.0, 0.01)
    assert side_of([110.0], levels) is Side.UNCLEAR
    assert side_of([101.0], levels) is Side.BEFORE
    assert side_of([90.0], levels) is Side.BEFORE
    assert side_of([119.0], levels) is Side.AFTER


def test_an_improvement_is_bisected_as_a_regression_is() -> None:
    levels = Levels(121.0, 100.0, 0.01)
    assert (side_of([120.0], levels), side_of([101.0], levels)) == (Side.BEFORE, Side.AFTER)


def test_a_spike_in_a_level_is_not_its_noise() -> None:
    found = levels_of([100, 101, 99, 100, 300, 100.5], [120, 121, 119, 120])
    assert found.noise < 0.02
    assert (found.before, found.after) == (pytest.approx(100, rel=0.01), pytest.approx(120))


def test_a_clock_without_noise_has_some() -> None:
    assert levels_of([100.0] * 5, [110.0] * 5).noise == 0.002


def test_equal_or_empty_levels_are_refused() -> None:
    for sides in (([], [1.0]), ([1.0], []), ([1.0], [1.0])):
        with pytest.raises(ValueError, match=r"a side has no values|both levels are equal"):
            levels_of(*sides)


def test_what_was_measured_before_counts() -> None:
    sides = [Side.BEFORE, None, Side.BEFORE, None, None, Side.AFTER, None, Side.AFTER]
    found = suspects(sides, [False] * 8)
    assert (found.good, found.bad, found.next) == (2, 5, 3)
    skipped = [index in (3, 4) for index in range(8)]
    assert suspects(sides, skipped).next is None
