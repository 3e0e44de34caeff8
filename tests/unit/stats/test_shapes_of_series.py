"""A drift, another spread and a second mode are found, and none in series that only vary."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.stats.changes import find_changes
from scheduler.stats.modes import find_second_mode
from scheduler.stats.reference import Array
from scheduler.stats.spread import find_spread_change
from scheduler.stats.trend import find_drift
from tests.benchmarks.changes.series import KINDS

FLAT = [kind for kind in KINDS if kind != "drift"]


def noise(kind: str, seed: int, n: int = 200) -> Array:
    return KINDS[kind](np.random.default_rng([seed, *kind.encode()]), n)


@pytest.mark.parametrize("kind", ["normal", "heavy_tails", "spikes", "alike", "sessions"])
@pytest.mark.parametrize("change", [0.3, -0.2])
def test_a_drift_over_100_values_is_found_with_its_size_and_start(kind: str, change: float) -> None:
    for seed in range(10):
        logs = noise(kind, seed)
        logs[100:] += np.log1p(change * np.arange(1, 101) / 100)
        drift = find_drift(50 * np.exp(logs))
        assert drift is not None, seed
        assert drift.change == pytest.approx(change, abs=0.05), seed
        assert drift.low < drift.change < drift.high
        assert 80 <= drift.start <= 120
        assert drift.start + drift.n == 200
        assert drift.level == pytest.approx(50, rel=0.03)


@pytest.mark.parametrize("kind", FLAT)
def test_no_drift_is_found_where_nothing_drifts(kind: str) -> None:
    for seed in range(5):
        values = np.exp(noise(kind, seed, 400))
        assert all(find_drift(values[:end]) is None for end in range(60, 401, 20)), seed


@pytest.mark.parametrize("steps", [(0.05,), (0.05, 0.05), (0.04, 0.04, 0.04), (0.1, -0.1)])
def test_steps_are_no_drift(steps: tuple[float, ...]) -> None:
    for seed in range(5):
        logs = noise("normal", seed)
        for place, step in enumerate(steps, 1):
            logs[40 * place :] += step
        assert find_drift(np.exp(logs)) is None, seed


def test_a_drift_that_ended_is_none() -> None:
    logs = noise("normal", 1, 260)
    logs += 0.2 * np.minimum(np.arange(260), 150) / 150
    assert find_drift(np.exp(logs[:150])) is not None
    assert find_drift(np.exp(logs)) is None


@pytest.mark.parametrize("factor", [3.0, 1 / 3])
def test_another_spread_is_found_around_the_same_level(factor: float) -> None:
    covered = 0
    for seed in range(10):
        logs = noise("normal", seed)
        logs[110:] *= factor
        spread = find_spread_change(12 * np.exp(logs))
        assert spread is not None, seed
        covered += spread.low < factor < spread.high
        assert abs(spread.start - 110) < 25
        assert spread.n_before == spread.start
        assert spread.n_before + spread.n_after == 200
    assert covered >= 8


def test_six_times_the_variance_is_a_spread_and_no_level() -> None:
    levels = reported = 0
    for seed in range(20):
        logs = noise("normal", seed, 180)
        logs[100:] *= 6**0.5
        levels += len(find_changes(np.exp(logs)))
        reported += find_spread_change(np.exp(logs)) is not None
    assert reported >= 15
    assert levels <= 4


@pytest.mark.parametrize("change", [0.2, -0.15])
def test_a_step_or_a_drift_is_no_other_spread(change: float) -> None:
    for seed in range(5):
        step = noise("normal", seed)
        step[100:] += np.log1p(change)
        assert find_spread_change(np.exp(step)) is None
        drift = noise("normal", seed) + np.linspace(0, np.log1p(change), 200)
        assert find_spread_change(np.exp(drift)) is None


def test_a_second_mode_that_hides_a_step_is_found_with_its_start() -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        logs = noise("normal", seed, 180)
        logs[100:] += 0.05 * (rng.random(80) < 0.4) * 1.2
        mode = find_second_mode(8 * np.exp(logs))
        assert mode is not None, seed
        assert mode.ratio == pytest.approx(1.06, abs=0.01)
        assert mode.low < mode.ratio < mode.high
        assert 95 <= mode.start <= 115
        assert mode.main == pytest.approx(8, rel=0.01)
        assert 0.2 < mode.share < 0.6


@pytest.mark.parametrize("kind", ["normal", "heavy_tails", "spikes", "alike", "quantized", "drift"])
def test_no_second_mode_is_found_in_one(kind: str) -> None:
    for seed in range(5):
        values = np.exp(noise(kind, seed, 400))
        assert all(find_second_mode(values[:end]) is None for end in range(60, 401, 20)), seed


def test_a_step_and_its_return_are_no_second_mode() -> None:
    logs = noise("normal", 2)
    logs[150:175] += 0.1
    assert find_second_mode(np.exp(logs)) is None
    assert find_second_mode(np.exp(logs[:172])) is None


@pytest.mark.parametrize("find", [find_drift, find_spread_change, find_second_mode])
def test_few_and_equal_values_show_nothing(find: object) -> None:
    assert callable(find)
    for n in (0, 1, 59, 60, 69, 70, 200, 300):
        assert find(np.full(n, 3.5)) is None


def test_a_step_of_two_and_a_half_times_the_noise_is_found_in_a_few_values() -> None:
    """5% in noise of 2%: a test that knows both levels and the noise finds 98% in 6 values."""
    delays = []
    for seed in range(40):
        logs = 2 * noise("normal", seed, 80)
        logs[60:] += np.log1p(0.05)
        shown = [at for at, change in find_changes(np.exp(logs)) if change.index > 54]
        delays.append(shown[0] - 59 if shown else 99)
    assert np.mean(np.array(delays) <= 6) >= 0.65
    assert np.mean(np.array(delays) <= 20) >= 0.9


def test_three_values_that_are_off_and_back_are_no_change() -> None:
    for seed in range(40):
        logs = noise("normal", seed, 70)
        logs[50:53] += np.log(1.2)
        changes = find_changes(np.exp(logs[:60]))
        assert not [change for _, change in changes if change.index >= 45], seed
