"""The comparison of the times of two builds: a ratio with its interval, and a verdict in words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np

from codegen_app.kernels.modelled.comparison import SideView
from codegen_app.kernels.models import Build
from codegen_app.tuning.models import BenchmarkResult
from codegen_app.tuning.models.benchmark_result import WITH_ORIGIN
from scheduler.ir.bindings import format_bindings
from scheduler.track.compare import compare
from scheduler.track.compared_series import CompareSettings, MeasuredSeries, Status
from scheduler.track.ratios import MIN_RATIO_SAMPLES

_SETTINGS = CompareSettings()
Key: TypeAlias = tuple[Any, ...]


class ComparisonResult(StrEnum):
    """The result for a side relative to the first."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "the same"
    UNKNOWN = "unknown"
    INSUFFICIENT = "insufficient data"
    ENVIRONMENT = "different environment"
    PROBLEM = "different problem"
    TARGET = "different target"
    UNMEASURED = "not measured"


@dataclass(frozen=True)
class TimeComparison:
    """A side relative to the first. ``ratio`` is its median over the first's, above 1 for slower,
    with its 95% interval; None if the two times cannot be compared. ``n`` are both sides' samples,
    ``words`` the result in a sentence, ``why`` the figures that explain it. ``modelled`` is the
    ratio of modelled times if these alone say which side is faster."""

    build: int
    outcome: ComparisonResult
    words: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    n: tuple[int, int] = (0, 0)
    why: str = ""
    modelled: float | None = None

    @property
    def headline(self) -> str:
        """The factor in words, ``1.24x faster``; else the outcome."""
        if self.modelled is not None:
            return f"modelled {_factor(self.modelled)}"
        if self.ratio is not None and self.decides:
            return _factor(self.ratio)
        return self.outcome.value

    @property
    def decides(self) -> bool:
        """Whether one of the two is faster."""
        return self.outcome in (ComparisonResult.FASTER, ComparisonResult.SLOWER)

    @property
    def glyph(self) -> str:
        """The CSS class of its colour and glyph."""
        classes = {ComparisonResult.SLOWER: "bad", ComparisonResult.FASTER: "ok"}
        return classes.get(self.outcome, "off")


def _factor(ratio: float) -> str:
    word, factor = ("slower", ratio) if ratio > 1 else ("faster", 1 / ratio)
    return f"{factor:.3g}\N{MULTIPLICATION SIGN} {word}"


def add_modelled(
    row: TimeComparison, labels: tuple[str, str], pair: tuple[SideView, SideView]
) -> TimeComparison:
    """Return an unmeasured comparison with the modelled times of both sides on one board."""
    first, second = (view.time_us for view in pair)
    ratio = second.mid / first.mid
    are_disjoint = first.high < second.low or second.high < first.low
    words = (
        f"{row.words} Modelled on {pair[0].board}, {labels[1]} takes {ratio:.3f} times as long as"
        f" {labels[0]}; the bands {'do not overlap' if are_disjoint else 'overlap'}."
    )
    return replace(row, words=words, modelled=ratio if are_disjoint else None)


def comparable_times(builds: Sequence[Build]) -> dict[int, BenchmarkResult]:
    """Return a time of each measured build (1 query): the latest for the problem, sizes and
    environment in which most of these builds were measured, else its own latest."""
    rows = (
        BenchmarkResult.objects.filter(build__in=builds)
        .select_related("environment", WITH_ORIGIN)
        .defer("rejected_samples", "check_detail", "readings")
        .order_by("created_at", "pk")
    )
    by_build: dict[int, dict[Key, BenchmarkResult]] = defaultdict(dict)
    for row in rows:
        by_build[row.build_id].pop(_key(row), None)  # keeps the latest last
        by_build[row.build_id][_key(row)] = row
    counts = Counter(key for results in by_build.values() for key in results)
    latest = {key: row.created_at for results in by_build.values() for key, row in results.items()}
    ranked = sorted(counts, key=lambda key: (counts[key], latest[key]), reverse=True)
    return {
        build: next(
            (results[key] for key in ranked if counts[key] > 1 and key in results),
            list(results.values())[-1],
        )
        for build, results in by_build.items()
    }


def _key(row: BenchmarkResult) -> Key:
    return row.problem_id, row.environment_id, tuple(sorted(row.bindings.items()))


def verdicts(
    builds: Sequence[Build], labels: Sequence[str], times: Mapping[int, BenchmarkResult]
) -> tuple[TimeComparison, ...]:
    """Compare each side but the first with the first."""
    first = builds[0]
    return tuple(
        _comparison(build, first, (labels[0], label), times)
        for build, label in zip(builds[1:], labels[1:], strict=True)
    )


def _comparison(
    build: Build,
    first_build: Build,
    labels: tuple[str, str],
    times: Mapping[int, BenchmarkResult],
) -> TimeComparison:
    first, second = times.get(first_build.pk), times.get(build.pk)
    if build.target != first_build.target:
        words = f"{labels[1]} and {labels[0]} are different targets: compare how they use them."
        return TimeComparison(build.pk, ComparisonResult.TARGET, words)
    if first is None or second is None:
        without = [name for name, row in zip(labels, (first, second), strict=True) if row is None]
        words = f"Not measured yet: {' and '.join(without)}. Measure both sides to compare them."
        return TimeComparison(build.pk, ComparisonResult.UNMEASURED, words)
    n = len(first.samples_ns), len(second.samples_ns)
    if first.problem_id != second.problem_id or first.bindings != second.bindings:
        sizes = [format_bindings(row.bindings) or "no sizes" for row in (first, second)]
        what = "problems" if first.problem_id != second.problem_id else "sizes"
        return TimeComparison(
            build.pk,
            ComparisonResult.PROBLEM,
            f"Different {what} were measured ({sizes[0]} and {sizes[1]}): not compared.",
            n=n,
        )
    if min(n) < MIN_RATIO_SAMPLES:
        return TimeComparison(
            build.pk,
            ComparisonResult.INSUFFICIENT,
            f"{labels[1]} and {labels[0]} have n = {n[1]} and {n[0]} samples;"
            f" at least {MIN_RATIO_SAMPLES} of each are required.",
            n=n,
        )
    before, after = (MeasuredSeries("", "", np.asarray(row.samples_ns)) for row in (first, second))
    (result,) = compare([before], [after], _SETTINGS).rows
    ratio, low, high = result.ratio, result.low, result.high
    assert ratio is not None, "there are enough samples of both"
    figures = f"{ratio:.3f} ({low:.3f} to {high:.3f}) times as long as {labels[0]}"
    samples = f"n = {n[1]} and {n[0]}"
    if first.environment_id != second.environment_id:
        names = [row.environment.device_name for row in (second, first)]
        where = (
            f"on {names[0]}, the other on {names[1]}"
            if names[0] != names[1]
            else f"on {names[0]} with another driver, runtime or compiler"
        )
        outcome = ComparisonResult.ENVIRONMENT
        words = (
            f"{labels[1]} takes {figures}, measured {where}: the ratio includes the difference in"
            f" environment. {samples}."
        )
    else:
        if result.status in (Status.SLOWER, Status.FASTER):
            outcome = ComparisonResult(result.status.value)
            why = f"{abs(ratio - 1) * 100:.1f}% {outcome}"
        elif result.status is Status.SAME:
            outcome = ComparisonResult.SAME
            why = f"the same within {100 * _SETTINGS.equivalence:g}%"
        else:
            outcome = ComparisonResult.UNKNOWN
            why = "which is faster is unknown, the interval is too wide"
        bindings = format_bindings(first.bindings)
        words = (
            f"{labels[1]} takes {figures}: {why}. {samples}, on {first.environment.device_name}"
            f"{f', {bindings}' if bindings else ''}."
        )
    return TimeComparison(build.pk, outcome, words, ratio, low, high, n)
