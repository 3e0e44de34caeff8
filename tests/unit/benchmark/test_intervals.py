"""Intervals of medians: covering, repeatable, and honest about few samples."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.stats.intervals import median_interval


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
