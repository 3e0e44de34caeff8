"""When series say that a machine changed, since when it is back, and which of several it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from scheduler.track import causes, machines
from scheduler.track.machines import MeasuredSeries, Move
from scheduler.track.shared_series import host_shifts
from scheduler.track.telemetry import TelemetryDifference
from tests.support.tracked import elsewhere, point, repeated

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def hours(*numbers: float) -> tuple[datetime, ...]:
    return tuple(START + HOUR * number for number in numbers)


def move(series: int, begin: float, end: float, ratio: float = 1.3) -> Move:
    first, last = hours(begin, end)
    return Move(series, series, ratio, first, last, last)


def measured(values: list[float], before: float = 100.0, after: float = 130.0) -> MeasuredSeries:
    return MeasuredSeries(before, after, hours(*range(len(values))), tuple(values))


def test_moves_are_together_if_their_windows_share_a_moment() -> None:
    moves = [move(1, 0, 2), move(2, 1, 3), move(3, 2, 9), move(4, 5, 6), move(5, 7, 8)]
    assert [one.series for one in machines.moved_together(moves)] == [1, 2, 3]
    assert machines.moved_together([]) == ()


def test_a_series_that_moved_often_does_not_hide_others() -> None:
    """Values of old revisions that were measured again make windows of days."""
    often = [move(1, begin, 20) for begin in range(6)]
    moves = [*often, *(move(series, 30, 31) for series in range(2, 6))]
    assert [one.series for one in machines.moved_together(moves)] == [2, 3, 4, 5]


def test_a_series_counts_once_by_its_largest_move() -> None:
    moves = [move(1, 0, 2), move(1, 0, 2, ratio=0.5), move(2, 0, 2)]
    assert [one.ratio for one in machines.moved_together(moves)] == [0.5, 1.3]


@pytest.mark.parametrize(
    ("moved", "of", "expected"),
    [(4, 4, True), (3, 3, False), (4, 8, True), (4, 9, False), (12, 12, True), (500, 1001, False)],
)
def test_a_machine_is_four_series_and_half_of_them(moved: int, of: int, expected: bool) -> None:
    assert machines.is_machine(moved, of) is expected


def test_a_machine_is_back_since_most_of_its_series_are() -> None:
    back = [measured([130, 131, 101, 99]) for _ in range(5)]
    slow = measured([130, 131, 129, 130])
    assert machines.back_since([*back, slow]) == START + 2 * HOUR
    assert machines.back_since([*back[:2], *[slow] * 3]) is None


def test_one_value_of_few_series_does_not_show_that_a_machine_is_back() -> None:
    again = [measured([130, 131, 100]) for _ in range(5)]
    unmeasured = [measured([130, 131]) for _ in range(5)]
    assert machines.back_since(again) is None, "five values"
    assert machines.back_since([measured([130, 100, 100]) for _ in range(5)]) is not None
    assert machines.back_since([*again[:4], *unmeasured]) is None, "fewer than half of the series"
    assert machines.back_since([]) is None


def test_thousands_of_series_are_read_once() -> None:
    """Each is back at a moment of its own, and not enough of them."""

    class Counting(list[float]):
        sliced = 0

        def __getitem__(self, key: Any) -> Any:
            Counting.sliced += isinstance(key, slice)
            return super().__getitem__(key)

    series = []
    for n in range(400):
        values = (130.0,) * 9 + ((100.0,) * 11 if n % 5 < 2 else (130.0,) * 11)
        one = MeasuredSeries(100.0, 130.0, hours(*(at + n / 1000 for at in range(20))), values)
        one.__dict__["distances"] = Counting(one.distances)
        series.append(one)
    assert machines.back_since(series) is None
    assert Counting.sliced <= 400 * 20


def test_a_machine_that_became_faster_is_back_when_it_is_slow_again() -> None:
    series = [measured([70, 70, 98, 101], after=70.0) for _ in range(6)]
    assert machines.back_since(series) == START + 2 * HOUR


def test_the_mean_ratio_has_an_interval_over_the_series() -> None:
    ratio, low, high = machines.mean_ratio([move(n, 0, 1, 1.3 + n / 100) for n in range(5)])
    assert 1.30 < low < ratio < high < 1.34
    assert machines.mean_ratio([move(n, 0, 1) for n in range(4)]) == pytest.approx((1.3, 1.3, 1.3))


def test_readings_are_those_of_most_series_that_have_any() -> None:
    clock = TelemetryDifference("sm_clock_mhz", 1980, 1400, "SM clock 1,980 → 1,400 MHz")
    power = TelemetryDifference("power_w", 640, 400, "power 640 → 400 W")
    moved = machines.moved_readings([[clock, power], [clock], [clock], []])
    assert [(one.name, one.n_series, one.sentence) for one in moved] == [
        ("sm_clock_mhz", 3, "SM clock 1,980 → 1,400 MHz")
    ]


def test_the_same_code_may_be_the_machine_but_a_driver_or_a_commit_is_not() -> None:
    before, slow = repeated(point(), 20), point(130.0)
    same = causes.explain(before, repeated(slow, 5, seed=1))
    assert (same.may_be_machine, same.hosts) == (True, ("host 1",))
    assert same.cause is causes.Cause.NOISE, "of a single series"
    driver = causes.explain(before, repeated(elsewhere(slow, driver="590.10"), 5, seed=1))
    assert not driver.may_be_machine
    steady = causes.explain(before, repeated(point(), 5, seed=1))
    assert not steady.may_be_machine


def test_readings_of_power_temperature_and_ecc_are_told_and_decide_nothing() -> None:
    cool = {"power_w": 640.0, "temperature_c": 61.0, "ecc_corrected": 0.0}
    hot = {"power_w": 630.0, "temperature_c": 88.0, "ecc_corrected": 14.0}
    explanation = causes.explain(
        repeated(point(readings=cool), 20), repeated(point(130.0, readings=hot), 5, seed=1)
    )
    assert [one.sentence for one in explanation.readings] == [
        "temperature 61 → 88 °C",
        "corrected ECC errors 0 → 14",
    ]
    assert explanation.may_be_machine
    assert explanation.differences == ()


def fleet(hosts: int, slow: float = 1.0, all_slow: float = 1.0) -> tuple[np.ndarray, list[str]]:
    rng = np.random.default_rng(3)
    values = 100 * np.exp(rng.normal(0, 0.005, 120))
    names = [f"host {n % hosts}" for n in range(120)]
    values[90:] *= all_slow
    for n in range(90, 120):
        values[n] *= slow if names[n] == "host 1" else 1.0
    return values, names


@pytest.mark.parametrize("hosts", [2, 3, 4])
def test_the_host_that_moved_is_found_among_others(hosts: int) -> None:
    [shift] = host_shifts(*fleet(hosts, slow=1.3))
    assert shift.host == "host 1"
    assert 88 <= shift.places[shift.first] <= 94
    assert np.exp(shift.distance) == pytest.approx(1.3, abs=0.02)
    with_code = host_shifts(*fleet(hosts, slow=1.3, all_slow=0.9))
    assert [one.host for one in with_code] == (["host 1"] if hosts > 2 else [])


def test_hosts_that_move_together_or_are_always_slower_did_not_change() -> None:
    assert host_shifts(*fleet(4)) == ()
    assert host_shifts(*fleet(4, all_slow=1.4)) == ()
    values, names = fleet(4)
    values[[name == "host 2" for name in names]] *= 1.2
    assert host_shifts(values, names) == ()
    assert host_shifts(values, [""] * len(values)) == ()
