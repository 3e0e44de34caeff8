"""Perfherder's detector, as the benchmark has it from its description."""

from __future__ import annotations

import numpy as np

from tests.benchmarks.changes.perfherder import AFTER, changes


def test_a_step_is_found_when_twelve_values_follow_it() -> None:
    values = 100 * np.exp(np.random.default_rng(0).normal(0, 0.01, 60))
    values[40:] *= 1.1
    assert changes(values[: 40 + AFTER]) == [40]
    assert changes(values[: 40 + AFTER - 2]) == []


def test_noise_is_no_change() -> None:
    assert changes(100 * np.exp(np.random.default_rng(1).normal(0, 0.01, 200))) == []


def test_equal_values_are_no_change_and_a_clean_step_is_one() -> None:
    assert changes(np.full(60, 5.0)) == []
    assert changes(np.repeat([5.0, 6.0], [30, 12])) == [30]
