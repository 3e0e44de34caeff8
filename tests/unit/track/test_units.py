"""Figures as people read them: every unit means what it does in the SI, and nothing is lost but
digits behind the fourth."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.track.units import format_digits, format_ratio, format_value, scale_of

#: Nanoseconds, by the SI (BIPM, The International System of Units, tables 5 and 7).
NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "seconds": 1_000_000_000,
}
THIN = "\N{NARROW NO-BREAK SPACE}"


@pytest.mark.parametrize("given_in", NANOSECONDS)
@pytest.mark.parametrize(
    ("in_ns", "text"),
    [
        (1, "1 ns"),
        (20, "20 ns"),
        (300, "300 ns"),
        (1_500, "1.500 µs"),
        (20_000, "20 µs"),
        (2_500_000, "2.500 ms"),
        (750_000_000, "750 ms"),
        (1_250_000_000, "1.250 s"),
        (90_000_000_000, "90 s"),
    ],
)
def test_a_time_reads_the_same_in_whatever_unit_it_was_given(
    given_in: str, in_ns: int, text: str
) -> None:
    assert format_value(in_ns / NANOSECONDS[given_in], given_in) == text


@pytest.mark.parametrize(
    ("given_in", "shown_in"), list(product(NANOSECONDS, ("ns", "µs", "ms", "s")))
)
def test_one_of_each_unit_is_so_many_of_the_other(given_in: str, shown_in: str) -> None:
    """Figures about as large as one of ``shown_in``, given in any unit, are shown in it."""
    magnitude = NANOSECONDS[shown_in] / NANOSECONDS[given_in]
    scale = scale_of(given_in, magnitude)
    assert scale.unit == shown_in
    assert scale.factor == pytest.approx(NANOSECONDS[given_in] / NANOSECONDS[shown_in])
    assert scale.factor * magnitude == pytest.approx(1)


@given(st.sampled_from(sorted(NANOSECONDS)), st.floats(1e-3, 1e15))
def test_a_figure_is_the_same_time_as_what_it_was_given(given_in: str, value: float) -> None:
    scale = scale_of(given_in, value)
    in_ns = value * scale.factor * NANOSECONDS[scale.unit]
    assert in_ns == pytest.approx(value * NANOSECONDS[given_in])
    back = scale_of(scale.unit, value * scale.factor)
    assert back.unit == scale.unit
    assert back.factor == pytest.approx(1)


AT_UNITS = [end * (1 + by) for end in (1e3, 1e6, 1e9) for by in (-2e-5, -1e-9, 0.0, 1e-9, 2e-5)]


@given(st.floats(1, 1e14) | st.sampled_from(AT_UNITS))
def test_one_to_three_digits_stand_before_the_point(in_ns: float) -> None:
    """Of a second and more there is no larger unit, and of a nanosecond no smaller one."""
    text, unit = format_value(in_ns, "ns").split(" ")
    whole = text.replace(THIN, "").partition(".")[0]
    assert int(whole) >= 1
    assert unit == "s" or len(whole) <= 3


@pytest.mark.parametrize(
    ("below", "at", "units"),
    [(999.9, 999.97, ("ns", "µs")), (999_900, 1e6, ("µs", "ms")), (999_900_000, 1e9, ("ms", "s"))],
)
def test_a_unit_begins_where_its_first_digit_is_a_one(
    below: float, at: float, units: tuple[str, str]
) -> None:
    assert (scale_of("ns", below).unit, scale_of("ns", at).unit) == units
    assert (scale_of("ns", -below).unit, scale_of("ns", -at).unit) == units


def test_less_than_a_nanosecond_is_one_all_the_same() -> None:
    assert format_value(0.25, "ns") == "0.2500 ns"
    assert format_value(2.5e-7, "ms") == "0.2500 ns"


@pytest.mark.parametrize("unit", ["GB/s", "bytes", "iterations", "", "MS", "S", "m"])
def test_what_is_no_time_keeps_its_unit(unit: str) -> None:
    scale = scale_of(unit, 12_345.0)
    assert (scale.factor, scale.unit) == (1.0, unit)
    assert format_value(12_345.0, unit) == f"12{THIN}345 {unit}".rstrip()


@pytest.mark.parametrize("magnitude", [0.0, math.nan, math.inf, -math.inf])
def test_without_a_magnitude_a_time_keeps_its_unit(magnitude: float) -> None:
    scale = scale_of("ms", magnitude)
    assert (scale.factor, scale.unit) == (1.0, "ms")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1, "1"),
        (1.5, "1.500"),
        (-1.5, "-1.500"),
        (12.345, "12.35"),
        (123.45, "123.5"),
        (0.012345, "0.01235"),
        (1_234.5, f"1{THIN}234"),
        (1_234_567, f"1{THIN}234{THIN}567"),
        (-1_234_567, f"-1{THIN}234{THIN}567"),
        (100, "100"),
        (99.997, "100.0"),
        (1e-4, "0.0001000"),
        (9.99e-5, "9.99e-05"),
        (999_999_999, f"999{THIN}999{THIN}999"),
        (1e9, "1e+09"),
    ],
)
def test_a_figure_has_about_four_digits(value: float, text: str) -> None:
    assert format_digits(value) == text


def test_a_ratio_says_that_it_is_one() -> None:
    assert format_ratio(1.25) == "\N{MULTIPLICATION SIGN}1.250"
    assert format_ratio(0.5, decimals=1) == "\N{MULTIPLICATION SIGN}0.5"
