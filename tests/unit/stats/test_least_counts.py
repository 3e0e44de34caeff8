"""How many values it takes to say something of a series: one fewer is not enough, and so many are.

The numbers are written out here, not taken from the settings, so that none of them changes unseen.
"""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.stats.changes import Level, Status, append_value, find_changes
from scheduler.stats.dwell import is_lasting
from scheduler.stats.level_shift import DetectionFloor, measure_shift
from scheduler.stats.noise import noise_floor
from scheduler.stats.reference import Array, detrend, fit_reference
from scheduler.stats.settings import Settings

LEAST = DetectionFloor(noise=0.001, effect=0.005)


def noisy(n: int, seed: int = 0, noise: float = 0.01) -> Array:
    """Logarithms that vary by a hundredth."""
    return np.random.default_rng(seed).normal(0, noise, n)


def levels(*parts: tuple[int, float], seed: int = 0, noise: float = 0.002) -> Array:
    """So many values about each level, one after the other."""
    logs = np.concatenate([np.full(n, np.log(level)) for n, level in parts])
    return np.exp(logs + noisy(logs.size, seed, noise))


def statuses(values: Array) -> list[Status]:
    level, found = Level(), []
    for value in values:
        level, detection = append_value(level, value)
        found.append(detection.status)
    return found


def test_eight_values_are_insufficient_data_and_nine_are_not() -> None:
    assert statuses(levels((9, 1.0))) == [Status.INSUFFICIENT] * 8 + [Status.STEADY]


@pytest.mark.parametrize("seed", range(5))
def test_eight_values_are_a_level_before_a_change_and_seven_are_none(seed: int) -> None:
    eight = find_changes(levels((8, 1.0), (40, 2.0), seed=seed))
    assert [(change.index, change.n_before) for _, change in eight] == [(8, 8)]
    seven = find_changes(levels((7, 1.0), (40, 2.0), seed=seed))
    assert all(change.index >= 8 and change.n_before >= 8 for _, change in seven)


@pytest.mark.parametrize("seed", range(5))
def test_a_clear_step_is_raised_with_its_fourth_value(seed: int) -> None:
    values = levels((45, 1.0), (4, 1.5), seed=seed)
    assert find_changes(values[:48]) == ()
    ((shown, change),) = find_changes(values)
    assert (shown, change.index, change.n_after) == (48, 45, 4)


@pytest.mark.parametrize("seed", range(5))
def test_after_a_change_four_values_are_a_level_and_three_are_spikes(seed: int) -> None:
    """A commit that is backed out by the next one has only its own runs."""
    four = find_changes(levels((45, 1.0), (4, 1.5), (20, 1.0), seed=seed))
    assert [change.index for _, change in four] == [45, 49]
    assert find_changes(levels((45, 1.0), (3, 1.5), (20, 1.0), seed=seed)) == ()


def test_of_fewer_than_eight_distances_no_noise_is_known() -> None:
    values = levels((8, 1.0))
    assert noise_floor([values[:7]]).noise == 0
    assert noise_floor([values]).noise > 0
    assert noise_floor([[value] for value in values[:7]]).noise == 0
    assert noise_floor([[value] for value in values]).noise > 0


def test_of_fewer_than_eight_runs_no_moves_are_known() -> None:
    runs = [levels((10, 1.0 + 0.1 * (run % 2)), seed=run) for run in range(8)]
    assert noise_floor(runs[:7]).shift == 0
    assert noise_floor(runs).shift > 0.05
    assert noise_floor(runs[:7]).noise > 0


@pytest.mark.parametrize(("n", "is_known"), [(7, False), (8, True)])
def test_of_fewer_than_eight_values_before_a_level_its_noise_is_not_taken(
    n: int, is_known: bool
) -> None:
    """Values that vary by 10% before: a step of 15% is within that, if it is known."""
    earlier = tuple((np.log([1.0, 1.1] * 4))[:n].tolist())
    level = Level(earlier=earlier)
    found = []
    for value in levels((8, 1.0), (8, 1.15), noise=0.0005):
        level, detection = append_value(level, value)
        found.append(detection.change is not None)
    assert any(found) is not is_known


def test_of_fewer_than_ten_values_the_ranks_say_nothing() -> None:
    """Values that lie above most, and two far below: their mean is that of the values before."""
    before = np.tile([0.01, -0.01, 0.005, -0.005], 10)
    level = fit_reference(before, LEAST.noise, Settings())
    far = -Settings().cut * level.noise
    nine = np.array([far, far, *[-2 * far / 7] * 7])
    ten = np.array([far, far, *[-2 * far / 8] * 8])
    assert measure_shift(before, nine, LEAST, Settings())[1] < 0.1
    assert measure_shift(before, ten, LEAST, Settings())[1] > 0.9


@pytest.mark.parametrize(("n", "is_shown"), [(15, False), (16, True), (17, True)])
def test_of_fewer_than_sixteen_values_no_drift_is_shown(n: int, is_shown: bool) -> None:
    logs = 0.004 * np.arange(n) + 0.001 * (-1.0) ** np.arange(n)
    level = fit_reference(logs, LEAST.noise, Settings())
    assert (detrend(level, Settings()) is not None) is is_shown


def test_one_value_on_a_level_is_a_spike_and_two_are_a_visit() -> None:
    """Visits make the next one wait: it has to last longer than they did."""
    before = np.zeros(9)
    for stay, enough in ((1, 1), (2, 3), (4, 5), (6, 7)):
        earlier = np.repeat([0.0, 0.1, 0.0], [12, stay, 12])
        last = [n for n in range(1, 20) if is_lasting(earlier, before, np.full(n, 0.1), Settings())]
        assert last == list(range(enough, 20))


@pytest.mark.parametrize(("visits", "enough"), [(1, 13), (2, 25)])
def test_so_many_values_are_always_enough(visits: int, enough: int) -> None:
    """However long a level was visited before: 12 values after one visit, 24 after more."""
    earlier = np.repeat([0.0, *[0.1, 0.0] * visits], [12, *[29, 12] * visits])
    last = [
        n for n in range(4, 31) if is_lasting(earlier, np.zeros(9), np.full(n, 0.1), Settings())
    ]
    assert last == list(range(enough, 31))
