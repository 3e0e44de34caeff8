"""Budgets: what a text means, and which limit ends what."""

from __future__ import annotations

import pytest

from scheduler.outcome import UserError
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
