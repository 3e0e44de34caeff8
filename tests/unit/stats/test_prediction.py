"""The stated rates of prediction intervals, and what a suspicion is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from scheduler.stats.prediction import MIN_HISTORY, Floats, History, predict
from scheduler.stats.suspicion import MAX_SUSPECTED, suspected_steps
from scheduler.track.ratios import adjust_p_values

RUNS, FAMILY = 4_000, 20


def autocorrelated(rng: np.random.Generator, shape: tuple[int, int], rho: float) -> Floats:
    draws = rng.normal(size=shape)
    for place in range(1, shape[1]):
        draws[:, place] = rho * draws[:, place - 1] + (1 - rho**2) ** 0.5 * draws[:, place]
    return np.exp(0.02 * draws)


NOISE: Mapping[str, Callable[[np.random.Generator, tuple[int, int]], Floats]] = {
    "normal": lambda rng, shape: np.exp(0.02 * rng.normal(size=shape)),
    "log-normal": lambda rng, shape: 1 + 0.02 * np.exp(0.5 * rng.normal(size=shape)),
    "exponential": lambda rng, shape: 1 + 0.02 * rng.exponential(size=shape),
    "gamma": lambda rng, shape: 1 + 0.02 * rng.gamma(3, size=shape),
    "uniform": lambda rng, shape: 1 + 0.02 * rng.uniform(size=shape),
    "autocorrelated": lambda rng, shape: autocorrelated(rng, shape, 0.5),
    "strongly autocorrelated": lambda rng, shape: autocorrelated(rng, shape, 0.8),
    "ticks": lambda rng, shape: np.round(100 * np.exp(0.01 * rng.normal(size=shape))),
}


@pytest.mark.parametrize("kind", NOISE)
@pytest.mark.parametrize("size", [8, 12, 30])
def test_noise_lies_outside_no_more_often_than_stated(kind: str, size: int) -> None:
    """One new value: 1% for a series by itself, and 1% for 20 series together."""
    values = NOISE[kind](np.random.default_rng(size), (RUNS, size + 1))
    prediction = predict([History(row) for row in values[:, :size]], 0.002)
    counts = np.ones(RUNS, np.int64)
    logs = np.log(values[:, size])
    p = prediction.p_values(logs, counts, 0.0)
    assert (p <= 0.01).mean() <= 0.015  # three standard errors of 1% in 4,000
    low, high = prediction.interval(counts, 0.99)
    np.testing.assert_array_equal((logs < low) | (logs > high), p < 0.01)
    chances = np.maximum(p, prediction.repeat_chances(logs - prediction.levels, counts))
    families = [adjust_p_values(family).min() <= 0.01 for family in chances.reshape(-1, FAMILY)]
    assert np.mean(families) <= 0.03


@pytest.mark.parametrize(("size", "least"), [(12, 0.5), (20, 0.9), (30, 0.98)])
def test_a_large_step_is_found_at_one_value(size: int, least: float) -> None:
    """+50% in noise of 2%, one in a thousand."""
    values = NOISE["normal"](np.random.default_rng(1), (500, size + 1))
    prediction = predict([History(row) for row in values[:, :size]], 0.002)
    p = prediction.p_values(np.log(1.5 * values[:, size]), np.ones(500, np.int64), 0.01)
    assert (p <= 0.001).mean() >= least


def test_an_outlier_of_the_history_hides_only_what_is_like_it() -> None:
    values = NOISE["normal"](np.random.default_rng(2), (1, 30))[0]
    values[11] *= 1.3
    prediction = predict([History(values)], 0.002)
    one = np.ones(1, np.int64)
    for step, is_likely in ((1.3, True), (2.0, False), (0.7, False)):
        logs = prediction.levels + np.log(step)
        assert (prediction.repeat_chances(logs - prediction.levels, one)[0] > 0.05) == is_likely
        assert prediction.p_values(logs, one, 0.01)[0] < 0.002
    # Repeated, it is less and less likely to be another spike.
    chances = [
        prediction.repeat_chances(np.log([1.3]), np.array([count]))[0] for count in (1, 2, 4)
    ]
    assert chances == sorted(chances, reverse=True)
    assert chances[-1] < 0.001


def test_the_present_level_counts_and_the_noise_of_the_levels_before() -> None:
    values = NOISE["normal"](np.random.default_rng(3), (1, 24))[0]
    values[20:] *= 1.4
    prediction = predict([History(values, (0, 20))], 0.002)
    assert np.exp(prediction.levels[0]) == pytest.approx(1.4, rel=0.03)
    assert prediction.n[0] == 24
    assert prediction.noise[1][0] == pytest.approx(0.02, rel=0.5)
    # Without the change the two levels are noise.
    assert predict([History(values)], 0.002).noise[1][0] > 0.1


def test_too_few_values_are_refused() -> None:
    with pytest.raises(ValueError, match="7 values are too few"):
        predict([History(np.ones(MIN_HISTORY - 1))], 0.002)


def test_equal_values_have_the_least_noise() -> None:
    prediction = predict([History(np.full(20, 5.0))], 0.002)
    assert (prediction.noise[0][0], prediction.noise[1][0]) == (0.002, 0.002)
    assert prediction.p_values(np.log([5.0]), np.ones(1, np.int64), 0.01)[0] == 1.0


# ── suspicion ────────────────────────────────────────────────────────────────────────────────────


def steps(*factors: float, before: int = 30, seed: int = 4) -> History:
    values = NOISE["normal"](np.random.default_rng(seed), (1, before + len(factors)))[0]
    values[before:] *= factors
    return History(values)


def suspected(history: History) -> tuple[int, float] | None:
    (step,) = suspected_steps([history], np.array([0.005]), 0.001)
    return (step.n, round(step.ratio, 1)) if step else None


def test_a_large_step_is_suspected_from_its_first_value_on() -> None:
    assert suspected(steps()) is None
    for n in range(1, MAX_SUSPECTED + 1):
        assert suspected(steps(*[1.5] * n)) == (n, 1.5)
        assert suspected(steps(*[0.6] * n)) == (n, 0.6)
    # More values are a level of their own.
    assert suspected(steps(*[1.5] * (MAX_SUSPECTED + 1))) is None


def test_a_spike_is_suspected_and_cleared_by_the_next_value() -> None:
    assert suspected(steps(1.5)) == (1, 1.5)
    assert suspected(steps(1.5, 1.0)) is None
    # The next spike is one that was seen before.
    assert suspected(steps(1.5, 1.0, 1.0, 1.5)) is None
    # Values on both sides of the level are no step.
    assert suspected(steps(1.5, 0.6)) == (1, 0.6)


def test_noise_is_suspected_rarely_and_short_histories_never() -> None:
    values = NOISE["normal"](np.random.default_rng(5), (3_000, 38))
    found = suspected_steps(list(map(History, values)), np.full(3_000, 0.005), 0.001)
    assert sum(step is not None for step in found) <= 3
    assert suspected(History(np.array([1.0] * 7 + [3.0]))) is None
    assert suspected(History(np.array([1.0] * 8 + [3.0]))) == (1, 3.0)
    # The level before must have four values.
    assert suspected(History(np.array([1.0] * 20 + [2.0] * 3 + [3.0]), (0, 20))) is None
    assert suspected(History(np.array([1.0] * 20 + [2.0] * 4 + [3.0]), (0, 20))) == (1, 1.5)
