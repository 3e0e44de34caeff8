"""What many trials show: importance, slices and grids, on trials whose times the test makes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.tuning.trials.importance import MIN_TRIALS, importance
from scheduler.tuning.trials.parameters import UNNAMED, varying_parameters
from scheduler.tuning.trials.slices import TrialOutcome, grid_of, slice_of, summarize_group


def levels(n: int, values: int, seed: int) -> list[int]:
    """Each value about as often as the others, in an order of its own."""
    return [int(one) for one in np.random.default_rng(seed).permutation(np.arange(n) % values)]


def noise(n: int, size: float, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, size, n)


def test_a_parameter_that_decides_the_time_has_nearly_all_of_the_variance() -> None:
    block, idle = levels(240, 4, 1), levels(240, 3, 2)
    times = [10.0 * 2.0**code for code in block] * np.exp(noise(240, 0.05))
    found = importance({"idle": idle, "block": block}, list(times))
    assert [one.name for one in found.shares] == ["block", "idle"]
    assert found.shares[0].share == pytest.approx(1.0, abs=0.02)
    assert found.shares[0].beyond_chance
    assert found.shares[1].share == pytest.approx(0.0, abs=0.03)
    assert not found.shares[1].beyond_chance
    assert found.interactions == () and found.ties == ()
    assert found.together == pytest.approx(1.0, abs=0.02)


def test_two_parameters_share_the_variance_as_their_effects_do() -> None:
    """Log 2 and 2 log 2 between two equally frequent values: variances of 1 to 4."""
    one, other = levels(4000, 2, 3), levels(4000, 2, 4)
    times = [5.0 * 2.0**a * 4.0**b for a, b in zip(one, other, strict=True)]
    found = importance({"one": one, "other": other}, times)
    shares = {each.name: each.share for each in found.shares}
    assert shares["other"] == pytest.approx(0.8, abs=0.03)
    assert shares["one"] == pytest.approx(0.2, abs=0.03)
    assert found.together == pytest.approx(1.0)


def test_an_interaction_is_found_where_neither_parameter_shows_anything() -> None:
    one, other = levels(400, 2, 5), levels(400, 2, 6)
    times = [20.0 if a == b else 10.0 for a, b in zip(one, other, strict=True)]
    found = importance({"one": one, "other": other, "idle": levels(400, 3, 9)}, times)
    assert all((each.share or 0.0) < 0.05 for each in found.shares)
    assert [each.names for each in found.interactions] == [("one", "other")]
    assert found.interactions[0].share == pytest.approx(1.0, abs=0.1)


def test_an_interaction_is_found_beside_effects_that_are_larger() -> None:
    one, other, third = levels(60, 3, 5), levels(60, 2, 6), levels(60, 2, 8)
    times = [4.0**a * (1.5 if (a, b) == (2, 1) else 1.0) for a, b in zip(one, other, strict=True)]
    noisy = list(np.asarray(times) * np.exp(noise(60, 0.02)))
    found = importance({"one": one, "other": other, "third": third}, noisy)
    assert found.shares[0].name == "one" and found.shares[0].beyond_chance
    assert [each.names for each in found.interactions] == [("one", "other")]
    additive = importance(
        {"one": one, "other": other, "third": third},
        [4.0**a * 1.5**b for a, b in zip(one, other, strict=True)],
    )
    assert additive.interactions == ()


def test_parameters_that_never_vary_without_each_other_are_named() -> None:
    block = levels(60, 3, 1)
    times = [10.0 + code for code in block]
    found = importance({"block": block, "warps": [2 * code for code in block]}, times)
    assert [(tie.names, tie.association) for tie in found.ties] == [
        (("block", "warps"), pytest.approx(1.0))
    ]
    assert found.shares[0].share == pytest.approx(found.shares[1].share or 0.0)


def test_too_few_trials_have_no_importance_but_a_reason() -> None:
    found = importance({"block": [0, 1] * 5}, [10.0, 20.0] * 5)
    assert found.shares == () and str(MIN_TRIALS) in found.missing and found.n == 10
    same = importance({"block": [0, 1] * 10}, [10.0] * 20)
    assert same.missing == "all trials took the same time"
    alike = importance({"block": [1] * 20}, [float(n + 1) for n in range(20)])
    assert alike.missing == "no parameter varies among the timed trials"
    many = importance({"block": list(range(14))}, [float(n + 1) for n in range(14)])
    assert many.missing == "" and many.shares[0].share is None


@given(st.integers(min_value=0, max_value=10_000))
def test_shuffled_times_are_rarely_called_more_than_chance(seed: int) -> None:
    """Nothing is behind these times: no share is large, whatever the noise."""
    times = list(np.exp(noise(80, 0.4, seed)))
    found = importance({"one": levels(80, 2, 1), "other": levels(80, 4, 2)}, times)
    assert all((each.share or 0.0) < 0.35 for each in found.shares)


def test_chance_is_met_about_as_often_as_stated() -> None:
    codes = {"one": levels(60, 2, 1), "other": levels(60, 4, 2), "third": levels(60, 3, 3)}
    hits = 0
    for seed in range(100):
        found = importance(codes, list(np.exp(noise(60, 0.3, seed))))
        hits += any(one.beyond_chance for one in found.shares)
    assert 1 <= hits <= 14  # of 100, 5 are expected


TIMES = st.floats(min_value=0.1, max_value=1e6)
TRIALS = st.lists(
    st.tuples(
        st.sampled_from([32, 64, 128]),
        st.sampled_from(["row", "column"]),
        st.one_of(st.none(), TIMES),
    ),
    min_size=MIN_TRIALS,
    max_size=60,
)


@given(TRIALS, st.floats(min_value=0.01, max_value=100.0), st.randoms(use_true_random=False))
def test_importance_needs_neither_a_unit_nor_the_names_of_values(
    trials: list[tuple[int, str, float | None]], factor: float, order: object
) -> None:
    timed = [(block, layout, time) for block, layout, time in trials if time is not None]
    codes = {
        "block": [one[0] for one in timed],
        "layout": [int(one[1] == "row") for one in timed],
    }
    found = importance(codes, [one[2] for one in timed])
    renamed = {"block": [-7 * code for code in codes["block"]], "layout": codes["layout"]}
    again = importance(renamed, [factor * one[2] for one in timed])
    assert found.missing == again.missing
    for one, other in zip(found.shares, again.shares, strict=True):
        if one.share is not None and one.name == other.name:
            assert 0.0 <= one.share <= 1.0
            assert one.share == pytest.approx(other.share, abs=1e-6)


@given(TRIALS)
def test_every_trial_is_in_one_value_of_each_slice_and_in_one_cell(
    trials: list[tuple[int, str, float | None]],
) -> None:
    configs = [{"block": block, "layout": layout} for block, layout, _ in trials]
    outcomes = [
        TrialOutcome(place, time, "measured" if time is not None else "crash")
        for place, (_, _, time) in enumerate(trials)
    ]
    whole = summarize_group(outcomes)
    assert whole.n == sum(time is not None for *_, time in trials)
    found = varying_parameters(configs)
    for parameter in found:
        groups = [value.group for value in slice_of(parameter, outcomes).values]
        assert sum(one.n for one in groups) == whole.n
        assert sum(sum(one.others.values()) for one in groups) == len(trials) - whole.n
        assert min((one.best for one in groups if one.best is not None), default=None) == whole.best
        for one in groups:
            if one.n:
                assert one.best is not None and one.median is not None and one.worst is not None
                assert one.lower is not None and one.upper is not None
                assert one.best <= one.lower <= one.median <= one.upper <= one.worst
                assert one.best_trial is not None and trials[one.best_trial][2] == one.best
    if len(found) == 2:
        grid = grid_of(*found, outcomes)
        cells = [cell for row in grid.cells for cell in row if cell is not None]
        assert sum(cell.n for cell in cells) == whole.n
        assert sum(cell.n + sum(cell.others.values()) for cell in cells) == len(trials)


def test_values_are_in_their_order_and_not_to_name_one_is_one() -> None:
    configs = [{"block": 128, "swizzle": True}, {"block": 64}, {"block": 64, "swizzle": False}]
    block, swizzle = varying_parameters(configs, others=[{"block": 1024}])
    assert (block.values, block.codes, block.is_number) == (("64", "128", "1024"), (1, 0, 0), True)
    assert swizzle.values == ("False", "True", UNNAMED) and not swizzle.is_number
    assert varying_parameters([{"block": 64}, {"block": 64}]) == ()
