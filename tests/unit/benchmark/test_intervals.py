"""Intervals of medians: covering, repeatable, and honest about few samples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from scheduler.stats.intervals import Bounds, bounds_of, median_interval, rank_interval
from scheduler.track import ratios


def test_the_interval_covers_the_true_median_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    covered = 0
    for seed in range(200):
        found = median_interval(rng.lognormal(size=25), seed=seed, resamples=300)
        covered += found.low <= 1.0 <= found.high
    assert 175 <= covered <= 200  # 95% of 200 is 190; the percentile bootstrap is a bit narrow


def test_the_same_samples_give_the_same_interval() -> None:
    assert median_interval([3.0, 1.0, 2.0]) == median_interval([3.0, 1.0, 2.0])


def test_equal_samples_have_no_width() -> None:
    found = median_interval([5.0] * 7)
    assert (found.low, found.median, found.high, found.n) == (5.0, 5.0, 5.0, 7)


def test_no_samples_is_an_error() -> None:
    with pytest.raises(ValueError, match="no samples"):
        median_interval([])


@pytest.mark.parametrize(("confidence", "deviations"), [(0.5, 0.6745), (0.9, 1.645), (0.95, 1.96)])
def test_an_interval_is_as_wide_as_its_confidence_says(
    confidence: float, deviations: float
) -> None:
    """Half of what is left out lies on each side: of normal values medians lie so many standard
    deviations around the true one."""
    rng, n = np.random.default_rng(4), 101
    widths = []
    for seed in range(60):
        found = median_interval(rng.normal(size=n), confidence, seed=seed)
        assert found.low <= found.median <= found.high
        widths.append(found.high - found.low)
    of_medians = np.sqrt(np.pi / 2 / n)
    assert np.mean(widths) == pytest.approx(2 * deviations * of_medians, rel=0.08)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 25, 100])
def test_an_interval_by_ranks_leaves_as_many_samples_out_on_each_side(n: int) -> None:
    """Of few samples none."""
    shuffled = np.random.default_rng(n).permutation(n).astype(float)
    found = rank_interval(shuffled.tolist())
    assert (found.median, found.n) == ((n - 1) / 2, n)
    assert found.low + found.high == n - 1
    assert (found.low == 0) is (n <= 5)


def test_an_interval_by_ranks_covers_the_true_median_as_often_as_it_says() -> None:
    """By the binomial itself: a rank less on each side would cover too little."""
    for n in range(6, 400):
        found = rank_interval(range(1, n + 1))
        covered, narrower = (
            binom(n, 0.5).cdf(found.high - 1 - less) - binom(n, 0.5).cdf(found.low - 1 + less)
            for less in (0, 1)
        )
        assert covered >= 0.95, n
        assert narrower < 0.95, n


def test_bounds_are_an_interval_where_a_range_covers_the_median_often_enough() -> None:
    for n in range(2, 60):
        covered = binom(n, 0.5).cdf(n - 1) - binom(n, 0.5).cdf(0)
        assert (bounds_of(n) is Bounds.INTERVAL) is bool(covered >= 0.95), n
        assert bounds_of(n), n
    assert not bounds_of(1)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_of_few_samples_every_interval_is_the_range(n: int) -> None:
    samples = np.random.default_rng(n).lognormal(size=n).tolist()
    for found in (rank_interval(samples), median_interval(samples)):
        assert (found.low, found.high, found.n) == (min(samples), max(samples), n)
        assert found.median == pytest.approx(np.median(samples))


def test_a_range_is_compared_as_its_samples_would_be() -> None:
    """Five samples whose values were rolled up say as much as the five did."""
    samples = np.random.default_rng(5).lognormal(size=5)
    of_samples = ratios.medians([samples])
    of_range = ratios.medians_from_intervals([rank_interval(samples.tolist())])
    assert of_range.logs == pytest.approx(of_samples.logs)
    assert of_range.errors == pytest.approx(of_samples.errors)


def test_no_ranks_without_samples() -> None:
    with pytest.raises(ValueError, match="no samples"):
        rank_interval([])
