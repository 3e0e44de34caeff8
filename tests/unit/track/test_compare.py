"""Two revisions over all series: what is said, how sure it is, and what is not said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.stats.intervals import median_interval
from scheduler.track.compare import Comparison, compare
from scheduler.track.compared_series import CompareSettings, MeasuredSeries, Status
from scheduler.track.ratios import adjust_p_values, medians, noise_floor, ratios
from scheduler.track.report import explain_difference, markdown, summary
from scheduler.track.sides import Point
from tests.support.tracked import edited, elsewhere, point

GOLDEN = Path(__file__).parent / "comparison.md"


def series(
    name: str, median: float, n: int = 20, noise: float = 0.005, of: Point | None = None
) -> MeasuredSeries:
    """Samples about a median; equal arguments give equal samples."""
    seed = [ord(char) for char in f"{name}{median}"]
    draws = np.random.default_rng(seed).normal(0, noise, n)
    samples = median * np.exp(draws - np.median(draws))
    return MeasuredSeries(name, name.split(maxsplit=1)[0], samples, of)


def status(found: Comparison, name: str) -> Status:
    (row,) = [row for row in found.rows if row.series == name]
    return row.status


def several() -> tuple[list[MeasuredSeries], list[MeasuredSeries]]:
    """One of each kind."""
    one = point(target="sm_90")
    other = edited(one, 130.0, registers=72, occupancy_warps_per_sm=24, occupancy_blocks_per_sm=3)
    before = [
        series("gemm slower", 100.0, of=one),
        series("gemm faster", 100.0, of=one),
        series("gemm same", 100.0, of=one),
        series("softmax same code", 100.0, of=one),
        series("softmax elsewhere", 100.0, of=one),
        series("softmax few", 100.0, n=3, of=one),
        series("softmax wide", 100.0, n=6, noise=0.1, of=one),
        series("softmax <b>|gone`", 100.0, of=one),
    ]
    after = [
        series("gemm slower", 130.0, of=other),
        series("gemm faster", 90.0, of=edited(one, 90.0)),
        series("gemm same", 100.2, of=edited(one, 100.2)),
        series("softmax same code", 140.0, of=one),
        series("softmax elsewhere", 100.0, of=elsewhere(one, driver="580.159")),
        series("softmax few", 100.0, of=edited(one, 100.0)),
        series("softmax wide", 104.0, n=6, noise=0.1, of=edited(one, 104.0)),
        series("softmax new", 100.0, of=one),
    ]
    return before, after


def test_each_status() -> None:
    found = compare(*several())
    assert {row.series: row.status for row in found.rows} == {
        "gemm slower": Status.SLOWER,
        "gemm faster": Status.FASTER,
        "gemm same": Status.SAME,
        "softmax same code": Status.SAME,
        "softmax elsewhere": Status.UNKNOWN,
        "softmax few": Status.UNKNOWN,
        "softmax wide": Status.UNKNOWN,
        "softmax <b>|gone`": Status.GONE,
        "softmax new": Status.NEW,
    }
    reasons = {row.series: row.reason for row in found.rows}
    assert reasons["softmax elsewhere"] == "different environment: driver 580.95 → 580.159"
    assert reasons["softmax few"] == "insufficient data: 3 samples, at least 5 required"
    assert reasons["softmax wide"] == "the interval is too wide"
    assert reasons["softmax same code"] == "same code, same environment"
    assert summary(found) == "1 slower, 1 faster, 3 unknown, 2 same, 1 new, 1 gone"


def test_the_text_for_a_pull_request() -> None:
    before, after = several()
    found = compare(before, after)
    old, new = ({one.series: one for one in side} for side in (before, after))

    def reasons(row: Any) -> str:
        moved = row.status in {Status.SLOWER, Status.FASTER}
        return explain_difference(old[row.series], new[row.series]) if moved else str(row.reason)

    assert markdown(found, ("main", "branch"), reasons) == GOLDEN.read_text()


def test_names_are_no_mentions_references_or_links_of_a_forge() -> None:
    name = r"@team #12 !3 ~bug 50% a\|b ![x](http://evil.example) www.evil.example ann@x.org"
    text = markdown(compare([series(name, 100)], [series(name, 150)]), (f"`{name}", "branch"))
    (row,) = [line for line in text.splitlines() if line.startswith("| ")][1:2]
    for link in ("@team", "#12", "!3", "~bug", "http://", " www.", "@x", "![x]"):
        assert link not in row
    assert "50% a\\\\\\|b" in row
    assert text.splitlines()[2] == f"`'{name}` → `branch`"


def test_the_same_code_is_never_slower_however_far_apart() -> None:
    found = compare(*several())
    (row,) = [row for row in found.rows if row.series == "softmax same code"]
    assert row.ratio == pytest.approx(1.4, rel=0.02)
    assert row.status is Status.SAME


def test_rows_are_sorted_by_effect() -> None:
    names = [f"k {n}" for n in range(5)]
    effects = (1.1, 1.3, 0.7, 0.9, 1.2)
    after = [series(name, 100 * e) for name, e in zip(names, effects, strict=True)]
    found = compare([series(name, 100.0) for name in names], after)
    assert [row.series for row in found.rows] == ["k 1", "k 4", "k 0", "k 2", "k 3"]


def test_exchanged_sides_give_the_inverse() -> None:
    before, after = several()
    there, back = compare(before, after), compare(after, before)
    inverse = {Status.SLOWER: Status.FASTER, Status.NEW: Status.GONE}
    inverse |= {value: key for key, value in inverse.items()}
    for row in there.rows:
        (other,) = [each for each in back.rows if each.series == row.series]
        assert other.status is inverse.get(row.status, row.status)
        if row.ratio and row.low and row.high and other.ratio and other.low:
            assert other.ratio == pytest.approx(1 / row.ratio)
            assert other.low == pytest.approx(1 / row.high)


@pytest.mark.parametrize("n", [5, 8, 20, 50])
@pytest.mark.parametrize("tails", [3, 100])
def test_intervals_hold_the_true_ratio(n: int, tails: int) -> None:
    """In at least 95% of 2,000 series, heavy tails or none, without the floor's help."""
    rng = np.random.default_rng([n, tails])
    truth = 1.05
    one = medians(list(np.exp(0.02 * rng.standard_t(tails, (2000, n)))))
    other = medians(list(truth * np.exp(0.02 * rng.standard_t(tails, (2000, n)))))
    low, high = ratios(one, other, 0.0).interval()
    assert ((low <= truth) & (truth <= high)).mean() >= 0.94


def test_chance_alone_makes_next_to_nothing_slower() -> None:
    """3,000 series without any difference, five samples each: at most a false one."""
    rng = np.random.default_rng(5)

    def drawn() -> list[MeasuredSeries]:
        samples = np.exp(0.03 * rng.standard_t(4, (3000, 5)))
        return [MeasuredSeries(str(n), "g", row) for n, row in enumerate(samples)]

    found = compare(drawn(), drawn())
    assert len(found.select(Status.SLOWER)) + len(found.select(Status.FASTER)) <= 1


def test_of_many_true_differences_few_are_missed_and_few_false() -> None:
    rng = np.random.default_rng(6)
    truth = np.where(np.arange(1000) < 200, 1.05, 1.0)

    def drawn(scale: Any) -> list[MeasuredSeries]:
        samples = np.exp(0.01 * rng.normal(size=(1000, 20))) * np.reshape(scale, (-1, 1))
        return [MeasuredSeries(str(n), "g", row) for n, row in enumerate(samples)]

    slower = compare(drawn(np.ones(1000)), drawn(truth)).select(Status.SLOWER)
    true = sum(int(row.series) < 200 for row in slower)
    assert true >= 190
    assert len(slower) - true <= 10


def test_the_noise_floor_is_that_of_the_same_code() -> None:
    """Runs of the same code differ by 2% for reasons that no sample of one run shows."""
    rng = np.random.default_rng(7)
    one = point()

    def run(code: Point) -> list[MeasuredSeries]:
        return [
            MeasuredSeries(
                str(n), "g", 100 * np.exp(rng.normal(0, 0.02) + rng.normal(0, 0.001, 20)), code
            )
            for n in range(300)
        ]

    first, second = run(one), run(one)
    assert noise_floor(
        medians([each.samples for each in first]), medians([each.samples for each in second])
    ) == pytest.approx(0.02, rel=0.25)
    third = [
        replace(each, point=edited(one, 100.0)) if n % 2 else each for n, each in enumerate(second)
    ]
    found = compare(first, third)
    assert found.pairs == 150
    assert found.floor == pytest.approx(0.02, rel=0.3)
    assert len(found.select(Status.SLOWER)) + len(found.select(Status.FASTER)) <= 2


def test_geometric_means_of_groups() -> None:
    before = [series("a 1", 100.0), series("a 2", 100.0), series("b 1", 100.0)]
    after = [series("a 1", 121.0), series("a 2", 100.0), series("b 1", 90.0)]
    a, b = compare(before, after).groups
    assert (a.name, a.n, b.name, b.n) == ("a", 2, "b", 1)
    assert a.ratio == pytest.approx(1.1, rel=1e-6)
    assert a.low < 1.1 < a.high
    assert b.high < 1


def test_corrected_p_values_are_benjamini_and_hochbergs() -> None:
    """The example of their paper (J. R. Statist. Soc. B 57, 1995, section 3): at 5%, four."""
    p = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240]
    p += [0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    order = np.random.default_rng(0).permutation(15)
    q = adjust_p_values(np.array(p)[order])
    assert sorted(order[q <= 0.05]) == [0, 1, 2, 3]


def test_sides_without_a_common_series() -> None:
    found = compare([series("a 1", 1.0)], [series("b 1", 1.0)])
    assert (found.groups, found.compared) == ((), 0)
    assert summary(compare([], [])) == "no series"


def test_what_cannot_be_compared_is_an_error() -> None:
    twice = [series("a 1", 1.0), series("a 1", 2.0)]
    with pytest.raises(ValueError, match="duplicate series"):
        compare(twice, [])
    with pytest.raises(ValueError, match="a 1: samples must be above 0"):
        compare([], [MeasuredSeries("a 1", "a", np.array([1.0, 0.0]))])


def test_a_least_effect_of_ones_own() -> None:
    before, after = [series("a 1", 100.0)], [series("a 1", 104.0)]
    assert status(compare(before, after), "a 1") is Status.SLOWER
    strict = CompareSettings(least_effect=0.05, equivalence=0.1)
    assert status(compare(before, after, strict), "a 1") is Status.SAME


def test_an_interval_stands_for_samples_that_are_not_there() -> None:
    """As wide as theirs: what it says is what they said."""
    before, after = series("gemm", 100.0), series("gemm", 104.0)
    (whole,) = compare([before], [after]).rows

    def rolled(one: MeasuredSeries) -> MeasuredSeries:
        return replace(one, samples=np.empty(0), interval=median_interval(list(one.samples)))

    for sides in ((rolled(before), rolled(after)), (before, rolled(after))):
        (row,) = compare([sides[0]], [sides[1]]).rows
        assert (row.status, row.n_before, row.n_after) == (Status.SLOWER, 20, 20)
        assert row.ratio == pytest.approx(whole.ratio)
        assert row.low == pytest.approx(whole.low, rel=0.01)
        assert row.high == pytest.approx(whole.high, rel=0.01)


def test_a_series_that_is_unusable_says_why_and_one_of_several_groups_counts_in_each() -> None:
    bad = replace(series("gemm bad", 100.0), samples=np.array([0.0] * 9), unusable="it is 0")
    good = replace(series("gemm good", 100.0), groups=("softmax", "gemm"))
    found = compare([bad, good], [series("gemm bad", 100.0), good])
    assert [row.reason for row in found.select(Status.UNKNOWN)] == ["it is 0"]
    assert [(group.name, group.n) for group in found.groups] == [("gemm", 1), ("softmax", 1)]
