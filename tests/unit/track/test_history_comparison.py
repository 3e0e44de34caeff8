"""Single values of many series against their histories."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scheduler.stats.prediction import History
from scheduler.track.compare import Comparison, compare
from scheduler.track.compared_series import MeasuredSeries, Method, SeriesRow, SideName, Status
from scheduler.track.sides import Point
from tests.support.tracked import edited, elsewhere, point

BEFORE = point(target="sm_90")


def history(name: str, noise: float = 0.02, n: int = 30, level: float = 100.0) -> History:
    rng = np.random.default_rng([ord(char) for char in name])
    return History(level * np.exp(noise * rng.normal(size=n)))


def measured(name: str, *values: float, of: Point | None = None) -> MeasuredSeries:
    return MeasuredSeries(name, "all", np.array(values), of, values=values)


def compared(
    *values: float, past: History | None = None, others: int = 0, of: Point | None = None
) -> SeriesRow:
    """The row of a series with these new values, among others without a difference."""
    old = BEFORE if of else None
    before, after = [measured("s", 100.0, of=old)], [measured("s", *values, of=of)]
    histories = {"s": past or history("s")}
    for number in range(others):
        name = f"other {number}"
        histories[name] = history(name)
        before.append(measured(name, float(histories[name].values[-1])))
        after.append(measured(name, float(histories[name].values[-2])))
    return row(compare(before, after, histories=histories), "s")


def row(found: Comparison, name: str) -> SeriesRow:
    (result,) = [result for result in found.rows if result.series == name]
    return result


@pytest.mark.parametrize("others", [0, 20, 200])
def test_half_as_slow_again_is_slower_at_one_value(others: int) -> None:
    found = compared(150.0, others=others)
    assert (found.status, found.method, found.reason) == (Status.SLOWER, Method.HISTORY, "")
    assert found.ratio == pytest.approx(1.5, rel=0.02)
    assert (found.n_before, found.n_after, found.rerun) == (30, 1, 0)
    assert found.q is not None
    assert found.q <= 0.01
    assert found.low is not None
    assert found.low > 1.3
    assert found.expected_high is not None
    assert 1 < found.expected_high < 1.15
    assert compared(66.0, others=others).status is Status.FASTER


def test_a_value_of_the_noise_is_the_same() -> None:
    found = compared(103.0, others=20)
    assert (found.status, found.rerun) == (Status.SAME, 0)
    assert found.expected_low is not None
    assert found.expected_high is not None
    assert found.expected_low < 1.03 < found.expected_high


def test_what_may_be_chance_among_so_many_series_is_uncertain_until_it_is_repeated() -> None:
    few, many = (compared(112.0, others=count) for count in (0, 500))
    assert few.status is Status.SLOWER
    assert many.status is Status.UNCERTAIN
    assert many.reason.startswith("outside the expected range")
    assert many.rerun_side is SideName.AFTER
    repeated = compared(*[112.0] * (1 + many.rerun), others=500)
    assert (many.rerun >= 1, repeated.status) == (True, Status.SLOWER)
    assert compared(112.0, 100.0, 101.0, others=500).status is Status.SAME


def test_a_spike_like_an_earlier_one_is_uncertain() -> None:
    past = history("s")
    past.values[12] *= 1.5
    found = compared(150.0, past=past)
    assert found.status is Status.UNCERTAIN
    assert found.reason == "earlier values were as far off without a change"
    assert compared(*[150.0] * (1 + found.rerun), past=past).status is Status.SLOWER
    assert compared(220.0, past=past).status is Status.SLOWER


def test_a_range_that_is_too_wide_is_uncertain() -> None:
    found = compared(100.0, past=history("s", 0.16))
    assert found.status is Status.UNCERTAIN
    assert found.reason.startswith("the series varies too much: up to +")
    assert compared(*[100.0] * (1 + found.rerun), past=history("s", 0.16)).status is Status.SAME


def test_a_history_that_just_moved_does_not_blame_the_next_commit() -> None:
    """The last value of the trunk is half as slow again: a branch that left it there is too."""
    past = history("s")
    past.values[-1] = 150.0
    found = compared(151.0, past=past)
    assert (found.status, found.rerun_side) == (Status.UNCERTAIN, SideName.BEFORE)
    assert found.reason == (
        "the side before is suspected to be at 1.5 times its level already, n = 1"
    )
    # Back at the level, nothing is faster: the suspected value is left out.
    assert compared(101.0, past=past).status is Status.SAME
    assert compared(320.0, past=past).status is Status.SLOWER
    assert compared(50.0, past=past).status is Status.FASTER


def test_the_level_since_the_last_change_counts() -> None:
    past = history("s")
    past.values[24:] *= 1.5
    past = replace(past, level_starts=(0, 24))
    assert compared(150.0, past=past).status is Status.SAME
    assert compared(100.0, past=past).status is Status.FASTER


def test_a_short_history_says_what_it_lacks() -> None:
    found = compared(150.0, past=history("s", n=5))
    assert (found.status, found.method) == (Status.UNKNOWN, Method.NONE)
    assert found.reason == (
        "insufficient data: 1 sample, at least 5 required; or 3 more points before it (5 of 8)"
    )


def test_same_code_and_other_environments_are_as_with_samples() -> None:
    assert compared(150.0, of=BEFORE).reason == "same code, same environment"
    moved = compared(150.0, of=elsewhere(BEFORE, driver="580.159"))
    assert (moved.status, moved.reason) == (
        Status.UNKNOWN,
        "different environment: driver 580.95 → 580.159",
    )
    assert compared(150.0, of=edited(BEFORE, 150.0)).status is Status.SLOWER


def test_series_with_samples_are_compared_by_them() -> None:
    """A history decides only where samples cannot."""
    rng = np.random.default_rng(1)
    before = MeasuredSeries("s", "all", 100 * np.exp(0.01 * rng.normal(size=20)))
    after = MeasuredSeries("s", "all", 104 * np.exp(0.01 * rng.normal(size=20)))
    found = row(compare([before], [after], histories={"s": history("s", 0.1)}), "s")
    assert (found.status, found.method) == (Status.SLOWER, Method.SAMPLES)
    # One run of twenty samples against a single value: the run is one value.
    found = row(compare([measured("s", 100.0)], [after], histories={"s": history("s", 0.005)}), "s")
    assert (found.status, found.method, found.n_after) == (Status.SLOWER, Method.HISTORY, 1)


def test_a_comparison_without_differences_reports_one_as_often_as_stated() -> None:
    """200 comparisons of 25 series, noise with a long tail: about two may be wrong."""
    rng = np.random.default_rng(7)
    wrong = 0
    for _ in range(200):
        values = 100 * (1 + 0.02 * rng.gamma(3, size=(25, 31)))
        found = compare(
            [measured(f"s{n}", series[-2]) for n, series in enumerate(values)],
            [measured(f"s{n}", series[-1]) for n, series in enumerate(values)],
            histories={f"s{n}": History(series[:-1]) for n, series in enumerate(values)},
        )
        wrong += bool(found.select(Status.SLOWER) or found.select(Status.FASTER))
    assert wrong <= 6


def test_means_include_series_compared_with_their_history() -> None:
    names = [f"s{n}" for n in range(10)]
    histories = {name: history(name) for name in names}
    found = compare(
        [measured(name, 100.0) for name in names],
        [measured(name, 130.0) for name in names],
        histories=histories,
    )
    (mean,) = found.groups
    assert (mean.n, found.compared) == (10, 10)
    assert mean.low < mean.ratio < mean.high
    assert mean.ratio == pytest.approx(1.3, rel=0.02)
