"""Budgets: what a text means, and which limit ends what."""

from __future__ import annotations

import pytest

from scheduler.errors import UserError
from scheduler.tuning.budget import Budget, Meter, parse_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("60s", 60), ("60", 60), ("5m", 300), ("2min", 120), ("1.5h", 5400), ("250ms", 0.25)],
)
def test_times_are_read(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "0s", "-5s", "soon", "5 d", "1e9", "s", "nan"])
def test_what_is_no_time_is_a_users_mistake(text: str) -> None:
    with pytest.raises(UserError, match="write a time"):
        parse_seconds(text)


def test_each_limit_ends_its_own_kind() -> None:
    now = [0.0]
    meter = Meter(Budget(100.0, compiles=2, measurements=3), clock=lambda: now[0])
    assert not meter.no_more_compiles()
    meter.compiles = 2
    assert "2 compiles" in meter.no_more_compiles()
    assert not meter.no_more_measurements()
    meter.measurements = 3
    assert "3 measurements" in meter.no_more_measurements()
    now[0] = 99.0
    assert meter.exploring_left_s < 0 < meter.left_s
    now[0] = 200.0
    assert meter.left_s == 0


def test_no_limit_never_ends() -> None:
    meter = Meter(Budget(), clock=lambda: 1e9)
    meter.compiles = meter.measurements = 10**9
    assert not meter.no_more_compiles()
    assert not meter.no_more_measurements()


@pytest.mark.parametrize(
    ("takes", "said"),
    [
        (0.0000005, "0.0005 ms"),
        (0.00025, "0.25 ms"),
        (0.0042, "4.2 ms"),
        (0.046, "46 ms"),
        (0.9994, "999 ms"),
        (1.34, "1.3 s"),
        (40.2, "40 s"),
    ],
)
def test_why_nothing_more_is_tried_is_said_in_figures_that_can_be_read(
    takes: float, said: str
) -> None:
    """Candidates of a GPU take milliseconds: not "0.0 s, more than is left"."""
    meter = Meter(Budget(60.0), clock=iter([0.0, 45.0 - takes / 2]).__next__)
    assert meter.no_time_for(takes, "another candidate takes") == (
        f"another candidate takes about {said}, more than the remaining exploration time"
        " (45 of 60 s; the rest is for the final rounds)"
    )


def test_what_fits_is_tried_and_time_that_was_spent_is_called_spent() -> None:
    now = [0.0]
    meter = Meter(Budget(60.0), clock=lambda: now[0])
    now[0] = 44.0
    assert meter.no_time_for(1.0, "another candidate takes") == ""
    now[0] = 45.0
    spent = "the exploration time was spent (45 of 60 s; the rest is for the final rounds)"
    for takes in (0.0, 0.001):
        assert meter.no_time_for(takes, "two candidates would take") == spent
    assert meter.no_more_measurements() == meter.no_more_compiles() == spent


@pytest.mark.parametrize(
    ("budget_s", "said"),
    [(0.08, "0.06 of 0.08"), (21.4286, "16.1 of 21.4"), (3600.0, "2700 of 3600")],
)
def test_the_time_for_trying_is_said_in_plain_figures(budget_s: float, said: str) -> None:
    meter = Meter(Budget(budget_s), clock=iter([0.0, budget_s]).__next__)
    assert f"({said} s;" in meter.no_more_measurements()


@pytest.mark.parametrize(("counts", "seconds"), [(True, 7.0), (False, 3.0)])
def test_waiting_for_builds_counts_where_the_builds_are_of_this_machine(
    counts: bool, seconds: float
) -> None:
    now = [0.0]
    meter = Meter(Budget(10.0), clock=lambda: now[0], waiting_counts=counts)
    now[0] += 1.0
    with meter.waiting():
        now[0] += 4.0
    now[0] += 2.0
    assert (meter.seconds, meter.left_s) == (seconds, 10.0 - seconds)
