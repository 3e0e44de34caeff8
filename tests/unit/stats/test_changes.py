"""Changes of a series: what must hold of any, and what is said of some."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.stats.changes import Change, Level, Status, append_value, find_changes, resume_level
from scheduler.stats.dwell import is_lasting
from scheduler.stats.noise import NoiseFloor
from scheduler.stats.settings import Settings

FIXED: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "series.json").read_text())

STEPS = st.sampled_from([-0.1, -0.05, -0.02, 0.0, 0.02, 0.05, 0.1])
SEEDS = st.integers(0, 2**32 - 1)
few = settings(max_examples=25, deadline=None)


def series(seed: int, step: float, n: int = 90, at: int = 50) -> npt.NDArray[np.float64]:
    logs = np.random.default_rng(seed).normal(0, 0.01, n)
    logs[at:] += np.log1p(step)
    return 1e-3 * np.exp(logs)


def places(found: tuple[tuple[int, Change], ...]) -> list[tuple[int, int]]:
    return [(position, change.index) for position, change in found]


@few
@given(SEEDS, STEPS, st.floats(1e-9, 1e9))
def test_the_unit_does_not_matter(seed: int, step: float, unit: float) -> None:
    values = series(seed, step)
    assert places(find_changes(unit * values)) == places(find_changes(values))


@few
@given(SEEDS, STEPS)
def test_reciprocal_values_change_the_other_way(seed: int, step: float) -> None:
    """What is slower by its time is as much less by its throughput."""
    values = series(seed, step)
    found, mirrored = find_changes(values), find_changes(1 / values)
    assert places(found) == places(mirrored)
    assert [change.ratio for _, change in found] == pytest.approx(
        [1 / change.ratio for _, change in mirrored]
    )


@few
@given(SEEDS, STEPS, st.integers(1, 90))
def test_what_is_found_depends_on_the_past_alone(seed: int, step: float, n: int) -> None:
    values = series(seed, step)
    found = find_changes(values)
    assert find_changes(values[:n]) == tuple(each for each in found if each[0] < n)


@few
@given(SEEDS, STEPS, st.integers(1, 200))
def test_what_is_remembered_is_made_again_of_the_values_since_the_change(
    seed: int, step: float, n: int
) -> None:
    values, level, start = series(seed, step, n=200), Level(), 0
    for value in values[:n]:
        level, detection = append_value(level, value)
        if detection.change is not None:
            start = detection.change.index
    again = resume_level(values[start:n], appended=n, earlier=values[:start])
    assert again.earlier == pytest.approx(level.earlier, abs=1e-12)
    assert again.logs == pytest.approx(level.logs, abs=1e-12)
    assert (again.revisions, again.appended) == (level.revisions, level.appended)


@few
@given(st.floats(1e-9, 1e9), st.integers(1, 150))
def test_equal_values_never_change(value: float, n: int) -> None:
    assert find_changes([value] * n) == ()


@few
@given(st.integers(0, 89), st.floats(0.01, 100))
def test_a_single_spike_is_no_change(at: int, height: float) -> None:
    for values in (series(3, 0.0), np.full(90, 7.0)):
        values[at] *= height
        assert find_changes(values) == ()


@few
@given(SEEDS, st.integers(2, 5))
def test_values_of_one_revision_stay_together(seed: int, runs: int) -> None:
    values = series(seed, 0.1)
    revisions = [str(at // runs) for at in range(values.size)]
    found = find_changes(values, revisions)
    assert found
    assert all(change.index % runs == 0 for _, change in found)


def test_no_change_is_found_within_a_revision() -> None:
    values = series(0, 0.3)
    assert find_changes(values, ["a"] * values.size) == ()
    assert len(find_changes(values)) == 1


def test_few_values_are_insufficient_data() -> None:
    level = Level()
    least = Settings().min_before
    statuses = []
    for value in series(1, 0.0)[: least + 1]:
        level, detection = append_value(level, value)
        statuses.append(detection.status)
    assert statuses == [Status.INSUFFICIENT] * least + [Status.STEADY]


def test_after_a_change_data_are_insufficient_again() -> None:
    values = series(1, 0.1)
    level, statuses = Level(), []
    for value in values:
        level, detection = append_value(level, value)
        statuses.append(detection.status)
    changed = statuses.index(Status.CHANGED)
    assert statuses[changed + 1] == Status.INSUFFICIENT
    assert statuses[-1] == Status.STEADY


def test_what_is_remembered_does_not_grow_with_the_series() -> None:
    level = Level()
    for value in series(2, 0.0, n=500):
        level, _ = append_value(level, value)
    assert level.appended == 500
    assert len(level.logs) == len(level.revisions) == Settings().before + Settings().after


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_what_is_no_measurement_is_named(value: float) -> None:
    with pytest.raises(ValueError, match=f"{value} is not a measurement"):
        append_value(Level(), value)


def test_within_the_noise_floor_nothing_changes() -> None:
    values = series(4, 0.05)
    assert len(find_changes(values)) == 1
    assert find_changes(values[:60], floor=NoiseFloor(noise=0.05)) == ()
    assert find_changes(values, floor=NoiseFloor(shift=0.06)) == ()
    assert len(find_changes(values, floor=NoiseFloor(noise=0.01, shift=0.02))) == 1


@pytest.mark.parametrize("name", FIXED)
def test_fixed_series(name: str) -> None:
    """The detector's parameters are frozen: what it says of these does not change unseen."""
    fixed = FIXED[name]
    found = find_changes(fixed["values"], fixed.get("revisions", ()))
    assert [
        {"found_at": at, "index": change.index, "ratio": round(change.ratio, 3)}
        for at, change in found
    ] == fixed["changes"]


@pytest.mark.parametrize(("before", "values"), [(9, 5), (16, 4), (45, 4)])
@pytest.mark.parametrize("noise", [0.002, 0.01])
def test_a_step_of_many_times_the_noise_is_raised_in_a_few_values(
    before: int, values: int, noise: float
) -> None:
    waited = []
    for seed in range(15):
        logs = np.random.default_rng(seed).normal(0, noise, before + 20)
        logs[before:] += np.log(1.2)
        (shown, change), *others = find_changes(np.exp(logs))
        assert others == []
        assert (change.index, change.ratio) == (before, pytest.approx(1.2, rel=3 * noise))
        waited.append(shown - before + 1)
    assert np.median(waited) <= values


def test_a_step_after_a_short_history_is_raised_once_many_values_follow() -> None:
    found = [find_changes(series(seed, 0.05, n=46, at=16)) for seed in range(10)]
    assert sum(bool(one) for one in found) >= 8


def modes(visits: int, stay: int = 10) -> npt.NDArray[np.float64]:
    """A second mode, a tenth slower, kept for some values each time."""
    logs = np.random.default_rng(9).normal(0, 0.005, 45 + 2 * visits * stay)
    for visit in range(visits):
        start = 45 + 2 * visit * stay
        logs[start : start + stay] += 0.1
    return np.exp(logs)


def test_a_level_that_was_seen_and_left_must_last_longer_than_it_did() -> None:
    assert [change.index for _, change in find_changes(modes(1))] == [45, 55]
    assert [change.index for _, change in find_changes(modes(4))] == [45, 55]


@pytest.mark.parametrize(("stays", "enough"), [([], 4), ([5], 6), ([20], 13), ([8, 18], 19)])
def test_how_long_a_level_must_last_that_was_seen_and_left(stays: list[int], enough: int) -> None:
    there = [np.repeat([0.0, 0.1], [9, stay]) for stay in stays]
    earlier, before = np.concatenate([np.zeros(12), *there]), np.zeros(9)
    last = [n for n in range(4, 30) if is_lasting(earlier, before, np.full(n, 0.1), Settings())]
    assert last == list(range(enough, 30))
    assert not is_lasting(earlier, before, np.repeat([0.1, 0.0], [25, 4]), Settings())
