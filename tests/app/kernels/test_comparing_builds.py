"""Two builds compared: a verdict in words, with its interval and n, or why there is none."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from codegen_app.graphs.models import Problem
from codegen_app.kernels.models import Build, KernelUse
from codegen_app.kernels.models.build import ELSEWHERE
from codegen_app.kernels.pages.compare.choices import choices_page
from codegen_app.kernels.pages.compare.explanation import explain
from codegen_app.kernels.pages.compare.query import compare_page
from codegen_app.kernels.pages.compare.verdict import ComparisonResult, TimeComparison
from codegen_app.kernels.queries.compared_figures import FigureGroup, FigureRow
from codegen_app.tuning.models import BenchmarkResult, Environment, Selection
from codegen_app.workers.models import State
from tests.support.pages_world import World, make_build
from tests.support.queries import queries_of

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
    assert found.headline in page


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


def test_a_side_without_a_time_is_named(pair: tuple[Build, Build]) -> None:
    timed(pair[0], 100.0)
    page = compare_page([build.pk for build in pair])
    (found,), label = page.verdicts, page.sides[1].label
    assert found.outcome is ComparisonResult.UNMEASURED
    assert found.words == f"Not measured yet: {label}. Measure both sides to compare them."


def test_two_targets_without_times_need_none(world: World) -> None:
    """Measured or not, times on two targets are not compared."""
    builds = [world.kernels[0].builds.get(target=name) for name in ("gfx942", "gfx1100")]
    (found,) = compare_page([build.pk for build in builds]).verdicts
    assert found.outcome is ComparisonResult.TARGET


def test_times_of_two_targets_are_not_compared(pair: tuple[Build, Build]) -> None:
    other = pair[0].kernel.builds.get(target="gfx1100")
    timed(pair[0], 100.0)
    timed(other, 50.0)
    verdict = verdict_of((pair[0], other))
    assert (verdict.outcome, verdict.ratio) == (ComparisonResult.TARGET, None)
    assert "different targets" in verdict.words
    assert "Differs most: " in verdict.why


def verdict(outcome: ComparisonResult) -> TimeComparison:
    return TimeComparison(1, outcome, "")


RESOURCES = FigureGroup(
    "Occupancy and resources",
    (
        FigureRow("Occupancy", "%", (25.0, 50.0), ("2 of 8 waves", "4 of 8 waves")),
        FigureRow("Limited by", "", (None, None), ("registers", "LDS")),
        FigureRow("vgpr_spills", "", (12, 0)),
        FigureRow("code_bytes", "", (100, 200)),
    ),
)
STALLS = FigureGroup("Stall reasons", (FigureRow("barriers", "%", (10.0, 30.0)),))
MIX = FigureGroup(
    "Instruction mix of the inner loop", (FigureRow("matrix", "", (4, 2), ("4 (20%)", "2 (10%)")),)
)


def test_a_faster_kernel_is_explained_by_figures_that_point_the_same_way() -> None:
    why = explain((RESOURCES, STALLS, MIX), 1, verdict(ComparisonResult.FASTER))
    assert why == (
        "Likely because: vgpr spills 12 \N{RIGHTWARDS ARROW} 0;"
        " Occupancy 2 of 8 waves \N{RIGHTWARDS ARROW} 4 of 8 waves (limited by LDS)."
        " Against it: stalls on barriers 10% \N{RIGHTWARDS ARROW} 30%;"
        " matrix 4 (20%) \N{RIGHTWARDS ARROW} 2 (10%) in the inner loop."
    )


def test_a_slower_kernel_without_a_figure_that_explains_it_is_unknown() -> None:
    why = explain((RESOURCES,), 1, verdict(ComparisonResult.SLOWER))
    assert why.startswith("Why is unknown. Differs most: vgpr spills")
    equal = FigureGroup("Occupancy and resources", (FigureRow("vgpr", "", (8, 8)),))
    assert explain((equal,), 1, verdict(ComparisonResult.FASTER)) == (
        "Why is unknown: no compared figure differs."
    )


def test_rows_that_differ_come_first_and_the_others_are_apart() -> None:
    assert [row.name for row in RESOURCES.changed] == [
        *("vgpr_spills", "Occupancy", "code_bytes", "Limited by")
    ]
    assert RESOURCES.equal == ()
    assert FigureRow("a", "", (0, 4)).ratios == (None, None)
    assert FigureRow("a", "", (2, None, 4)).ratios == (1.0, None, 2.0)


def test_sides_are_picked_on_the_page_that_has_none(reader: Client, pair: Any) -> None:
    timed(pair[0], 100.0)
    page = reader.get("/compare").content.decode()
    assert f'value="{pair[0].pk}"' in page
    assert "Recent builds" in page
    one = reader.get(f"/compare?build={pair[0].pk}").content.decode()
    assert f'type="hidden" name="build" value="{pair[0].pk}"' in " ".join(one.split())
    assert "on gfx1100" in one
    two = f"/compare?build={pair[0].pk}&build={pair[1].pk}"
    assert "Compare 2 builds" in reader.get(f"{two}&words=").content.decode()
    assert reader.get("/compare.json?words=nothing-has-this").json()["found"] == []


def test_builds_are_found_by_kernel_target_flags_and_parameters(pair: Any) -> None:
    name = pair[0].kernel.name
    (key, value), *_ = pair[0].kernel.config.items()
    found = choices_page(f"{name[-8:]} gfx942", ()).found
    assert {side.kernel for side in found} == {name}
    assert {side.target for side in found} == {"gfx942"}
    assert name in {side.kernel for side in choices_page(f"{key}={value}", ()).found}
    assert {side.target for side in choices_page("gfx1100", ()).found} == {"gfx1100"}
    assert choices_page("-O3", ()).found
    assert not choices_page("%", ()).found


def test_the_default_and_the_second_best_are_offered(pair: Any) -> None:
    timed(pair[0], 100.0)
    timed(pair[1], 120.0)
    is_default = KernelUse.objects.filter(is_default=True, kernel=pair[0].kernel).exists()
    second, first = pair if is_default else reversed(pair)
    titles = {choice.title: choice for choice in choices_page("", [first.pk]).choices}
    assert titles["the default"].build == second.pk
    assert titles["the default"].ratio == pytest.approx(100 / 120 if is_default else 120 / 100)
    titles = {choice.title: choice for choice in choices_page("", [second.pk]).choices}
    assert first.pk in {choice.build for choice in titles.values()}
    assert "on gfx1100" in titles


def test_selected_kernels_are_suggested_with_their_rivals(pair: Any, reader: Client) -> None:
    selection = Selection.objects.filter(until=None).first()
    assert selection is not None
    selection.result = timed(pair[0], 100.0)
    selection.kernel = pair[0].kernel
    selection.save()
    timed(pair[1], 120.0)
    (suggestion,) = choices_page("", ()).suggestions
    assert [choice.build for choice in suggestion.choices] == [pair[1].pk]
    address = f"/compare?build={pair[0].pk}&amp;build={pair[1].pk}"
    assert address in reader.get("/compare").content.decode()


def test_queries_of_the_choices_do_not_grow(pair: Any, world: World, code_cache: Any) -> None:
    timed(pair[0], 100.0)
    few = queries_of(choices_page, "", [pair[0].pk])
    for kernel in world.kernels:
        timed(make_build(kernel, "gfx90a", code_cache), 130.0)
    assert queries_of(choices_page, "", [pair[0].pk]) == few <= 10


def test_kernels_imported_with_their_times_are_compared(pair: Any) -> None:
    for build in pair:
        timed(build, 100.0)
    Build.objects.filter(pk__in=[build.pk for build in pair]).update(
        state=State.CANCELLED, reason=ELSEWHERE, listing=None
    )
    assert {side.build for side in choices_page("gfx942", ()).found} >= {one.pk for one in pair}
    page = compare_page([build.pk for build in pair])
    assert page.verdicts[0].outcome is ComparisonResult.SAME
    assert len(page.missing) == 2
