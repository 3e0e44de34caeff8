"""What measurements of the same code vary by."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.stats.changes import find_changes
from scheduler.stats.noise import NoiseFloor, noise_floor


def stretches(shift: float, runs: int = 40, n: int = 15) -> list[list[float]]:
    rng = np.random.default_rng(0)
    levels = rng.normal(0, shift, (runs, 1))
    return np.exp(levels + rng.normal(0, 0.01, (runs, n))).tolist()


def test_noise_within_runs_is_found() -> None:
    floor = noise_floor(stretches(0.0))
    assert floor.noise == pytest.approx(0.01, rel=0.1)
    assert floor.shift < 0.004
    assert floor.n == 600


def test_runs_that_move_together_are_a_shift_and_not_noise() -> None:
    floor = noise_floor(stretches(0.03, runs=200))
    assert floor.noise == pytest.approx(0.01, rel=0.1)
    assert floor.shift == pytest.approx(1.645 * np.sqrt(2) * 0.03, rel=0.15)


def test_of_single_values_all_is_noise() -> None:
    values = np.exp(np.random.default_rng(1).normal(0, 0.02, 200))
    assert noise_floor([[value] for value in values]).noise == pytest.approx(0.02, rel=0.15)


def test_the_unit_does_not_matter() -> None:
    floor = noise_floor(stretches(0.02))
    again = noise_floor([[1e6 * value for value in run] for run in stretches(0.02)])
    assert (again.noise, again.shift) == pytest.approx((floor.noise, floor.shift))


def test_two_modes_raise_the_floor() -> None:
    """Half of the distances of such values say little of the other mode; nine of ten do."""
    values = [1.0, 1.001, 0.999, 1.0, 1.05] * 8
    assert noise_floor([values]).noise > 0.02


@pytest.mark.parametrize("known", [[], [[]], [[1.0]], [[1.0, 1.1], [1.2]]])
def test_of_a_few_values_nothing_is_known(known: list[list[float]]) -> None:
    floor = noise_floor(known)
    assert (floor.noise, floor.shift) == (0.0, 0.0)


def test_what_is_no_measurement_is_named() -> None:
    with pytest.raises(ValueError, match=r"0\.0 is not a measurement"):
        noise_floor([[1.0, 0.0]])


def test_moves_of_the_same_code_are_no_change_of_other_code() -> None:
    """Runs of one code object move by 3%: a step of 2% between others says nothing."""
    rng = np.random.default_rng(5)
    values = np.exp(rng.normal(0, 0.002, 80) + np.where(np.arange(80) < 40, 0, 0.02))
    assert find_changes(values) != ()
    assert find_changes(values, floor=noise_floor(stretches(0.03))) == ()
    assert noise_floor([]) == NoiseFloor()
