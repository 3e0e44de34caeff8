"""The statistics over series of any kind (constant, of both signs, zero, short, huge), held against
their definitions and against SciPy."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.errors import UserError
from scheduler.results.points import importer
from scheduler.results.points.fields import MAX_MAGNITUDE, MIN_MAGNITUDE
from scheduler.results.points.model import ImportContext
from scheduler.stats import changes
from scheduler.stats.intervals import median_interval, rank_interval
from scheduler.stats.noise import noise_floor
from scheduler.stats.settings import Settings
from scheduler.track import ratios

QUICK = settings(max_examples=40, deadline=None)
SIZES = st.floats(MIN_MAGNITUDE, MAX_MAGNITUDE)
ANY_SIGN = st.one_of(st.just(0.0), SIZES, SIZES.map(lambda value: -value), st.floats(-10, 10))
# Ordinary times too: sizes alone are all of different magnitudes.
POSITIVE = st.one_of(SIZES, st.floats(0.5, 2.0), st.floats(95.0, 105.0))


def series(values: st.SearchStrategy[float], least: int = 1) -> st.SearchStrategy[list[float]]:
    """As they come, constant, or of few different values."""
    several = st.lists(values, min_size=least, max_size=60)
    constant = st.tuples(values, st.integers(least, 60)).map(lambda pair: [pair[0]] * pair[1])
    few = st.lists(values, min_size=1, max_size=3).flatmap(
        lambda among: st.lists(st.sampled_from(among), min_size=least, max_size=60)
    )
    return st.one_of(several, constant, few)


@st.composite
def levels(draw: st.DrawFn) -> list[float]:
    """A history of one to four levels with noise, at any magnitude."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale, noise = draw(st.sampled_from([1e-140, 1.0, 1e140])), draw(st.sampled_from([0, 0.01]))
    found: list[float] = []
    for _ in range(draw(st.integers(1, 4))):
        level = scale * draw(st.sampled_from([1.0, 1.02, 1.3, 40.0]))
        found += (level * np.exp(noise * rng.normal(size=draw(st.integers(1, 45))))).tolist()
    return found


# ── intervals of medians ────────────────────────────────────────────────────


@QUICK
@given(series(ANY_SIGN))
def test_bounds_are_order_statistics_that_hold_the_median_as_often_as_they_say(
    samples: list[float],
) -> None:
    found, ordered, n = rank_interval(samples), sorted(samples), len(samples)
    assert found.median == pytest.approx(np.median(samples), rel=1e-12, abs=0)
    assert found.low <= found.median <= found.high
    ends = found.low, found.high
    left_out = [k for k in range(n // 2 + 1) if (ordered[k], ordered[n - 1 - k]) == ends]
    assert left_out, "as many samples lie beyond each end"
    if n < 6:
        assert ends == (ordered[0], ordered[-1])
    elif len(left_out) == 1:  # no others are equal to these
        assert 1 - 2 * scipy.stats.binom.cdf(left_out[0], n, 0.5) >= 0.95


@QUICK
@given(series(ANY_SIGN, least=6))
def test_bounds_by_ranks_are_those_of_a_test_of_quantiles(samples: list[float]) -> None:
    """SciPy's, which is Conover's too: no narrower, and wider by a sample at most."""
    oracle = scipy.stats.quantile_test(samples, q=0, p=0.5).confidence_interval(0.95)
    found = rank_interval(samples)
    assert (found.low, found.high) == (oracle.low, oracle.high)


@QUICK
@given(series(ANY_SIGN), st.integers(-40, 40))
def test_a_median_of_other_units_or_of_the_other_sign_has_the_same_bounds(
    samples: list[float], power: int
) -> None:
    scaled = [math.ldexp(value, power) for value in samples]
    for interval in (rank_interval, median_interval):
        found, other = interval(samples), interval(scaled)
        assert (other.low, other.median, other.high) == pytest.approx(
            tuple(math.ldexp(value, power) for value in (found.low, found.median, found.high)),
            rel=1e-9,
            abs=0,
        )
    plain, mirrored = rank_interval(samples), rank_interval([-value for value in samples])
    assert (mirrored.low, mirrored.high) == (-plain.high, -plain.low)


# ── ratios of medians ───────────────────────────────────────────────────────

SIDE = st.lists(POSITIVE, min_size=ratios.MIN_RATIO_SAMPLES, max_size=40)


def price_and_bonett(samples: Sequence[float]) -> float:
    """The standard error of the median's logarithm, by the paper: of n ordered values the distance
    of the c-th from each end, by the normal quantile of as much as lies beyond them."""
    ordered, n = np.sort(np.log(samples)), len(samples)
    c = max(1, round_half_up((n + 1) / 2 - math.sqrt(n)))
    z = scipy.stats.norm.isf(scipy.stats.binom.cdf(c - 1, n, 0.5))
    return float((ordered[n - c] - ordered[c - 1]) / (2 * z))


def round_half_up(value: float) -> int:
    return math.floor(value + 0.5)


@QUICK
@given(SIDE, SIDE)
def test_a_ratio_is_that_of_welchs_test_on_the_medians(
    before: list[float], after: list[float]
) -> None:
    sides = [ratios.medians([np.array(side)]) for side in (before, after)]
    for side, samples in zip(sides, (before, after), strict=True):
        assert side.logs[0] == pytest.approx(np.median(np.log(samples)), abs=1e-12)
        assert side.errors[0] == pytest.approx(price_and_bonett(samples), rel=1e-9, abs=1e-15)
    if sides[0].errors[0] < 1e-12 or sides[1].errors[0] < 1e-12:
        return  # all alike: nothing says how far the median may be off
    found = ratios.ratios(*sides, floor=0.0)
    oracle = scipy.stats.ttest_ind_from_stats(
        *(sides[1].logs[0], sides[1].errors[0] * math.sqrt(len(after)), len(after)),
        *(sides[0].logs[0], sides[0].errors[0] * math.sqrt(len(before)), len(before)),
        equal_var=False,
    )
    assert found.p_values(0.0)[0] == pytest.approx(oracle.pvalue, rel=1e-6, abs=1e-12)
    low, high = found.interval()
    assert bool(low[0] <= 1 <= high[0]) is bool(oracle.pvalue >= 0.05)
    assert low[0] < math.exp(found.logs[0]) < high[0] or found.errors[0] < 1e-9
    other_way = ratios.ratios(sides[1], sides[0], floor=0.0).interval()
    assert (1 / other_way[1][0], 1 / other_way[0][0]) == pytest.approx((low[0], high[0]))


@pytest.mark.parametrize("n", [5, 6, 10, 30])
def test_the_interval_of_a_ratio_holds_it_as_often_as_it_says(n: int) -> None:
    rng = np.random.default_rng(n)
    before, after = (list(rng.lognormal(sigma=0.05, size=(4000, n))) for _ in range(2))
    low, high = ratios.ratios(ratios.medians(before), ratios.medians(after), 0.0).interval()
    assert np.mean((low <= 1) & (high >= 1)) >= 0.94


@QUICK
@given(st.lists(st.floats(0, 1), min_size=1, max_size=50))
def test_p_values_are_corrected_as_benjamini_and_hochberg_do(p: list[float]) -> None:
    assert ratios.adjust_p_values(np.array(p)) == pytest.approx(
        scipy.stats.false_discovery_control(p)
    )


@QUICK
@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=50))
def test_the_mean_of_ratios_is_the_geometric_one(given_ratios: list[float]) -> None:
    logs = np.log(given_ratios)
    found = ratios.Ratios(logs, np.full(logs.size, 0.01), np.full(logs.size, 9.0))
    mean, low, high = ratios.geometric_mean(found, np.arange(logs.size))
    assert mean == pytest.approx(scipy.stats.gmean(given_ratios))
    assert math.log(high / low) == pytest.approx(2 * 1.96 * 0.01 / math.sqrt(logs.size))


# ── levels that change ──────────────────────────────────────────────────────


@QUICK
@given(levels())
def test_a_change_has_the_medians_of_the_values_on_both_sides(values: list[float]) -> None:
    kept, begun = Settings(), 0
    for shown, change in changes.find_changes(values):
        assert begun < change.index <= shown
        before = values[max(begun, change.index - kept.before) : change.index]
        after = values[change.index : shown + 1]
        assert (change.n_before, change.n_after) == (len(before), len(after))
        assert change.before == pytest.approx(geometric_median(before))
        assert change.after == pytest.approx(geometric_median(after))
        assert abs(math.log(change.ratio)) >= kept.least_effect
        begun = change.index


def geometric_median(values: Sequence[float]) -> float:
    """Of the two middle values the geometric mean, as of any even number of them."""
    ordered, n = sorted(values), len(values)
    return math.sqrt(ordered[(n - 1) // 2]) * math.sqrt(ordered[n // 2])


@QUICK
@given(levels(), st.integers(-40, 40))
def test_a_change_is_the_same_in_any_unit_and_whatever_comes_later(
    values: list[float], power: int
) -> None:
    found = changes.find_changes(values)
    scaled = changes.find_changes([math.ldexp(value, power) for value in values])
    assert [(at, one.index) for at, one in scaled] == [(at, one.index) for at, one in found]
    assert [one.ratio for _, one in scaled] == pytest.approx([one.ratio for _, one in found])
    shorter = values[: len(values) * 2 // 3]
    assert changes.find_changes(shorter) == tuple(one for one in found if one[0] < len(shorter))


@QUICK
@given(POSITIVE, st.integers(1, 200))
def test_what_is_constant_never_changes(value: float, n: int) -> None:
    level = changes.Level()
    for place in range(n):
        level, found = changes.append_value(level, value)
        is_short = place < Settings().min_before
        expected = changes.Status.INSUFFICIENT if is_short else changes.Status.STEADY
        assert (found.status, found.change) == (expected, None)


@pytest.mark.parametrize("value", [0.0, -0.0, -1.0, math.nan, math.inf, -math.inf])
def test_what_no_ratio_is_taken_of_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        changes.append_value(changes.Level(), value)
    with pytest.raises(ValueError, match="must be above 0"):
        noise_floor([[1.0, value]])


@QUICK
@given(st.lists(POSITIVE, min_size=8, max_size=60))
def test_the_noise_of_one_stretch_is_its_deviation_from_the_median(values: list[float]) -> None:
    logs, n = np.log(values), len(values)
    few = math.sqrt(n / (n - 1))
    by_half = 1.4826 * scipy.stats.median_abs_deviation(logs) * few
    by_most = np.quantile(np.abs(logs - np.median(logs)), 0.9) * few / scipy.stats.norm.isf(0.05)
    found = noise_floor([values])
    assert found.noise == pytest.approx(max(by_half, by_most), rel=1e-3, abs=1e-12)
    assert (found.shift, found.n) == (0.0, n)


# ── the door ────────────────────────────────────────────────────────────────

HEAD = {"device": "H200", "metric": "time", "revision": "abc", "problem": "mm"}
NOW = ImportContext(now=datetime(2026, 11, 22, tzinfo=UTC))
ANY_FLOAT = st.one_of(st.floats(), ANY_SIGN, st.integers(-(10**400), 10**400))


def fits(value: float) -> bool:
    """By the documentation: 0, or of a size from 1e-150 to 1e150."""
    return value == 0 or 1e-150 <= abs(value) <= 1e150


@QUICK
@given(ANY_FLOAT, st.lists(ANY_FLOAT, max_size=4))
def test_the_door_takes_numbers_that_ratios_are_taken_of_and_0(
    value: float, samples: list[float]
) -> None:
    body = {"kind": "kiln points", "schema": 1, "defaults": HEAD}
    sent = json.dumps(body | {"points": [{"value": value, "samples": samples}]}).encode()
    if all(map(fits, (value, *samples))):
        (point,) = importer.read(sent, NOW).points
        assert (point.value, point.samples) == (value, tuple(samples))
    else:
        with pytest.raises(UserError) as refused:
            importer.read(sent, NOW)
        named = ("points[0].value: ", "points[0].samples[", "invalid JSON: ")
        assert str(refused.value).startswith(named)


def test_a_ratio_of_any_two_numbers_that_are_taken_is_a_number() -> None:
    ends: npt.NDArray[np.float64] = np.array([MIN_MAGNITUDE, MAX_MAGNITUDE])
    found = np.divide.outer(ends, ends)
    assert np.isfinite(found).all()
    assert (found > 0).all()
