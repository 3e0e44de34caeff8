"""Strategies: never twice, everything in the end, the same again, and better than chance."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.errors import UserError
from scheduler.tuning.space import Space, Value
from scheduler.tuning.strategies.guided import GuidedSearch, expected_improvement
from scheduler.tuning.strategies.registry import STRATEGIES, find_strategy
from scheduler.tuning.strategies.simple import RandomSearch
from scheduler.tuning.strategies.strategy import History, Strategy
from tests.support.replay import performance_curve, replay
from tests.unit.tuning.spaces import tiled

VALUES: list[list[Value]] = [[1, 2, 3, 8], [0, 1], ["a", "b", "c"], [True, False], [-1.5, 0.0, 7.0]]


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    """Any legal part of a product of parameters of any kind, some of which never vary."""
    chosen = draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=3))
    every = [dict(enumerate_names(point)) for point in product(*chosen, [5])]
    kept = draw(st.lists(st.sampled_from(every), min_size=1, max_size=24, unique_by=repr))
    return Space(tuple(kept))


def enumerate_names(point: tuple[Value, ...]) -> list[tuple[str, Value]]:
    """Parameters p0, p1, ..."""
    return [(f"p{number}", value) for number, value in enumerate(point)]


@pytest.mark.parametrize("name", STRATEGIES)
@settings(max_examples=15, deadline=None)
@given(space=spaces(), seed=st.integers(0, 99), fails=st.floats(0.0, 1.0))
def test_all_is_tried_once_and_the_same_seed_tries_the_same(
    name: str, space: Space, seed: int, fails: float
) -> None:
    rng = np.random.default_rng(seed)
    times = np.where(rng.random(len(space)) < fails, np.nan, rng.lognormal(size=len(space)))

    def tried() -> list[int]:
        strategy = STRATEGIES[name].make(space, np.random.default_rng(seed), None)
        history = History(len(space))
        while (index := strategy.propose(history)) is not None:
            history.add(index, float(times[index]))  # raises when it was tried before
        return history.tried

    first = tried()
    assert sorted(first) == list(range(len(space)))
    assert first == tried()


def test_a_parameter_that_only_some_name_is_a_coordinate() -> None:
    """Not to name it is a value of its own, next to the others."""
    space = Space(({"m": 1}, {"m": 2}, {"m": 1, "size": 32}, {"m": 2, "size": 32}))
    assert space.parameters == ("m", "size")
    assert space.coordinates.tolist() == [[0, 0], [1, 0], [0, 1], [1, 1]]
    assert space.neighbours(0).tolist() == [1, 2]


def test_a_proposal_does_not_depend_on_the_order_of_pending_results() -> None:
    recorded = tiled(0)
    strategy = GuidedSearch(recorded.space, np.random.default_rng(0))
    history = History(len(recorded.space))
    for _ in range(20):
        index = strategy.propose(history)
        assert index is not None
        history.add(index, float(recorded.times[index]))
    again = History(len(recorded.space))  # the same results, told in another order
    for index, time in reversed(list(history)):
        again.add(index, time)
    proposed = strategy.propose(again)
    assert proposed is not None
    assert proposed not in history


@pytest.mark.long(but=4)
@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_the_default_needs_half_of_what_random_search_needs(seed: int) -> None:
    recorded = tiled(seed)
    good = recorded.best / 0.98

    def needed(maker: Callable[[Space, np.random.Generator], Strategy], seeds: int) -> float:
        counts = [
            len(
                replay(
                    recorded,
                    maker(recorded.space, np.random.default_rng(number)),
                    len(recorded.space),
                    lambda time: time <= good,
                )
            )
            for number in range(seeds)
        ]
        return float(np.mean(counts))

    assert needed(GuidedSearch, 3) <= needed(RandomSearch, 60) / 2


@pytest.mark.full
def test_a_model_of_the_costs_shows_the_way_and_a_wrong_one_does_not_mislead_for_long() -> None:
    recorded = tiled(5)
    right = np.nan_to_num(recorded.times, nan=1e3)
    wrong = 1.0 / right
    for expected, budget in ((right, 4), (wrong, 150)):
        strategy = GuidedSearch(recorded.space, np.random.default_rng(0), expected)
        history = replay(recorded, strategy, budget, lambda _: False)
        assert performance_curve(history, recorded.best)[-1] > 0.95


def test_expected_improvement_is_that_of_a_normal_variable() -> None:
    rng = np.random.default_rng(0)
    mean, deviation, best = np.array([0.0, 1.0, -2.0]), np.array([1.0, 0.5, 0.1]), 0.3
    drawn = rng.normal(mean, deviation, (400_000, 3))
    expected = np.maximum(best - drawn, 0.0).mean(axis=0)
    assert expected_improvement(mean, deviation, best) == pytest.approx(expected, rel=0.02)


@pytest.mark.full
def test_a_large_space_is_searched_in_bounded_steps() -> None:
    names = [f"p{number}" for number in range(5)]
    configs = [dict(zip(names, point, strict=True)) for point in product(range(1, 8), repeat=5)]
    space = Space(tuple(configs))
    times = np.array([1.0 + sum((c[n] - 4) ** 2 for n in names) for c in configs])
    strategy, history = GuidedSearch(space, np.random.default_rng(0)), History(len(space))
    while len(history) < 60:
        index = strategy.propose(history)
        assert index is not None
        history.add(index, float(times[index]))
    assert history.best is not None
    assert history.best[1] <= 2.0  # one of the best 11 of 16,807


def test_a_name_that_no_strategy_has_is_a_mistake_that_lists_those_there_are() -> None:
    with pytest.raises(UserError, match=re.escape(f"'fastest'; known: {', '.join(STRATEGIES)}")):
        find_strategy("fastest")
