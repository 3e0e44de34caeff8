"""Two builds compared: a verdict in words, with its interval and n, or why there is none."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from codegen_app.graphs.models import Problem
from codegen_app.kernels.models import Build
from codegen_app.kernels.pages.compare.query import compare_page
from codegen_app.kernels.pages.compare.verdict import ComparisonResult, TimeComparison
from codegen_app.tuning.models import BenchmarkResult, Environment
from tests.support.pages_world import World, make_build

pytestmark = pytest.mark.django_db
NOISE = (0.998, 0.999, 1.0, 1.0, 1.001, 1.002, 1.0, 0.999, 1.001)


@pytest.fixture
def pair(world: World, code_cache: Any) -> tuple[Build, Build]:
    builds = tuple(make_build(kernel, "gfx942", code_cache) for kernel in world.kernels)
    BenchmarkResult.objects.all().update(task=None)
    return builds


def timed(build: Build, median: float, **changes: Any) -> BenchmarkResult:
    like = BenchmarkResult.objects.select_related("environment", "problem").first()
    assert like is not None
    noise = changes.pop("noise", NOISE)
    fields = {
        "kernel": build.kernel,
        "problem": like.problem,
        "environment": like.environment,
        "bindings": {"s0": 32},
        "samples_ns": [median * one for one in noise],
        "batch": 1,
        "median_ns": median,
        "low_ns": median * min(noise),
        "high_ns": median * max(noise),
        "check_max_error": 0.0,
        "check_bound": 1.0,
        "check_ratio": 0.0,
        "emulated": False,
    }
    return BenchmarkResult.objects.create(build=build, **{**fields, **changes})


def verdict_of(pair: tuple[Build, Build]) -> TimeComparison:
    (found,) = compare_page([build.pk for build in pair]).verdicts
    return found


@pytest.mark.parametrize(
    ("after", "outcome", "said"),
    [
        (110.0, ComparisonResult.SLOWER, "10.0% slower"),
        (80.0, ComparisonResult.FASTER, "20.0% faster"),
        (100.1, ComparisonResult.SAME, "the same within 3%"),
    ],
)
def test_a_ratio_has_its_interval_n_and_words(
    pair: tuple[Build, Build], after: float, outcome: ComparisonResult, said: str, reader: Client
) -> None:
    timed(pair[0], 100.0)
    timed(pair[1], after)
    found = verdict_of(pair)
    assert found.outcome is outcome
    assert found.low is not None
    assert found.high is not None
    assert found.ratio == pytest.approx(after / 100, rel=1e-6)
    assert found.low < after / 100 < found.high
    assert found.n == (9, 9)
    assert said in found.words
    assert f"({found.low:.3f} to {found.high:.3f}) times as long as" in found.words
    assert "n = 9 and 9, on CPU emulation, s0=32." in found.words
    page = reader.get(f"/compare?build={pair[0].pk}&build={pair[1].pk}").content.decode()
    assert found.words in page
    assert f"{found.ratio:.3f}\N{MULTIPLICATION SIGN}" in page


def test_a_wide_interval_is_no_verdict(pair: tuple[Build, Build]) -> None:
    wide = (0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3)
    timed(pair[0], 100.0, noise=wide)
    timed(pair[1], 104.0, noise=wide)
    found = verdict_of(pair)
    assert found.outcome is ComparisonResult.UNKNOWN
    assert "unknown, the interval is too wide" in found.words


def test_few_samples_are_no_verdict(pair: tuple[Build, Build]) -> None:
    timed(pair[0], 100.0, noise=(1.0,))
    timed(pair[1], 200.0, noise=(1.0,))
    found = verdict_of(pair)
    assert (found.outcome, found.ratio) == (ComparisonResult.INSUFFICIENT, None)
    assert "n = 1 and 1" in found.words


def test_other_sizes_and_other_problems_are_not_compared(pair: tuple[Build, Build]) -> None:
    BenchmarkResult.objects.filter(build=pair[0]).update(build=Build.objects.first())
    timed(pair[0], 100.0)
    timed(pair[1], 100.0, bindings={"s0": 64})
    found = verdict_of(pair)
    assert (found.outcome, found.ratio) == (ComparisonResult.PROBLEM, None)
    assert "s0=32 and s0=64" in found.words
    other = Problem.objects.create(digest="d" * 64, kind="gemm", op="mm", summary="s", text="{}")
    BenchmarkResult.objects.filter(build=pair[1]).update(problem=other)
    assert "Different problems were measured" in verdict_of(pair).words


def test_what_both_were_measured_in_is_compared_and_shown(pair: tuple[Build, Build]) -> None:
    """The latest time of one side is at other sizes: the earlier one is what is compared."""
    timed(pair[0], 100.0)
    timed(pair[1], 120.0)
    timed(pair[1], 7.0, bindings={"s0": 1})
    page = compare_page([build.pk for build in pair])
    assert page.verdicts[0].outcome is ComparisonResult.SLOWER
    assert [side.median_ns for side in page.sides] == [100.0, 120.0]
    assert {side.bindings["s0"] for side in page.sides} == {32}


def test_another_environment_is_said(pair: tuple[Build, Build]) -> None:
    here = timed(pair[0], 100.0).environment
    elsewhere = Environment.objects.get(pk=here.pk)
    elsewhere.pk, elsewhere.digest, elsewhere.device_name = None, "e" * 64, "MI300X"
    elsewhere.save()
    timed(pair[1], 50.0, environment=elsewhere)
    BenchmarkResult.objects.exclude(bindings={"s0": 32}).update(bindings={"s0": 32, "s1": 1})
    found = verdict_of(pair)
    assert found.outcome is ComparisonResult.ENVIRONMENT
    assert "on MI300X, the other on CPU emulation: the ratio includes" in found.words


def test_a_side_without_a_time_is_named(world: World) -> None:
    builds = [world.kernels[0].builds.get(target=name) for name in ("gfx942", "gfx1100")]
    found = compare_page([build.pk for build in builds]).verdicts[0]
    assert found.outcome is ComparisonResult.UNMEASURED
    assert found.words == "Not measured yet: gfx1100. Measure both sides to compare them."
