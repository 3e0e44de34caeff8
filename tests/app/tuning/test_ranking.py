"""The ranking of a graph's kernels: calls, shares of one sum, and lower bounds by the roofline."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen_app.graphs.models import Problem, TemplateNode
from codegen_app.kernels.models import KernelUse, ProblemWork
from codegen_app.tuning.models import BenchmarkResult, Environment, Selection
from codegen_app.tuning.queries.ranking import KernelRanking, kernel_ranking
from scheduler import targets
from scheduler.tuning import roofline
from scheduler.tuning.work import Work
from tests.app import factories
from tests.support.pages_world import World, make_world
from tests.support.queries import assert_steady, queries_of

pytestmark = pytest.mark.django_db


def add_node(world: World, name: str, *works: Work, median_ns: float | None = None) -> TemplateNode:
    """A node of a problem of its own, whose default kernel was measured on the world's device."""
    digest = factories.digest()
    problem = Problem.objects.create(digest=digest, kind="gemm", op="mm", summary=name, text=digest)
    node = TemplateNode.objects.create(
        graph=world.graph,
        problem=problem,
        position=world.graph.template_nodes.count(),
        name=name,
        kind="gemm",
        op="mm",
    )
    kernel = factories.kernel()
    KernelUse.objects.create(kernel=kernel, template_node=node, position=0, is_default=True)
    for work in works:
        ProblemWork.objects.create(problem=problem, **vars(work))
    if median_ns is not None:
        first = BenchmarkResult.objects.select_related("build").latest("pk")
        build = factories.done_build(
            kernel=kernel,
            target=first.build.target,
            toolchain=first.build.toolchain,
            toolchain_version=first.build.toolchain_version,
        )
        factories.result(
            build,
            median_ns,
            problem=problem,
            environment=first.environment,
            bindings={"s0": 16},
            emulated=first.emulated,
        )
    return node


def on_gpu() -> None:
    """The world's times are those of an MI300X."""
    Environment.objects.update(
        device_name="AMD Instinct MI300X", target="gfx942", emulated=False, device="rocm:0"
    )
    BenchmarkResult.objects.update(emulated=False)
    Selection.objects.update(device_name="AMD Instinct MI300X", target="gfx942")


def titles(ranking: KernelRanking) -> list[str]:
    return [row.title for row in ranking.kernels]


def test_a_kernel_is_ranked_by_the_sum_of_its_calls(code_cache: Path) -> None:
    """Two nodes of 120 µs share a kernel: it comes before one node of 160 µs."""
    world = make_world(code_cache, layers=2, candidates=1)
    add_node(world, "head", median_ns=160_000.0)
    ranking = kernel_ranking(world.graph)
    assert titles(ranking) == ["linear", "head mm"]
    hottest, head = ranking.kernels
    assert ranking.hottest == hottest
    assert (ranking.total_ns, str(ranking.measured)) == (400_000.0, "3 of 3")
    assert (hottest.rank, hottest.measured, hottest.total_ns, hottest.share) == (
        *(1, 2, 240_000.0),
        0.6,
    )
    assert [call.share for call in hottest.calls] == [0.3, 0.3]
    assert (head.rank, head.share) == (2, 0.4)
    assert (hottest.median_ns, hottest.n) == (120_000.0, 3), "of one call"


def test_emulated_times_are_not_compared_with_a_roofline(code_cache: Path) -> None:
    ranking = kernel_ranking(make_world(code_cache).graph)
    (row,) = ranking.kernels
    assert row.emulated
    assert (row.least_ns, row.roofline, row.bound_text) == (None, None, "")


def test_the_roofline_is_that_of_the_device_and_the_sizes(code_cache: Path) -> None:
    world = make_world(code_cache, layers=2, candidates=1)
    on_gpu()
    (row,) = kernel_ranking(world.graph).kernels
    work = Work(4 * 64 * (64 + 16), 4 * 64 * 16, 2 * 16 * 64 * 64, "f32", 10 * 16 * 64)
    board = targets.board_of("gfx942", "AMD Instinct MI300X")
    assert board is not None
    limit = roofline.limit(work, board)
    assert row.least_ns == pytest.approx(2 * limit.least_ns)
    assert row.roofline == pytest.approx(limit.least_ns / 120_000.0)
    assert row.bound_text == "memory bandwidth"


def test_kernels_without_a_time_come_last_by_their_lower_bound(code_cache: Path) -> None:
    """They are not in the sum; one whose work is unknown comes after those with a bound."""
    world = make_world(code_cache, candidates=1)
    on_gpu()
    add_node(world, "unknown")
    add_node(world, "small", Work(10**6, 0, 0, "", 0))
    add_node(world, "large", Work(10**9, 0, 0, "", 0))
    add_node(world, "short", median_ns=1.0)
    ranking = kernel_ranking(world.graph)
    assert titles(ranking) == ["op0 linear", "short mm", "large mm", "small mm", "unknown mm"]
    assert [row.kernel for row in ranking.missing] == [row.kernel for row in ranking.kernels[2:]]
    assert (str(ranking.measured), ranking.total_ns) == ("2 of 5", 120_001.0)
    large, small, unknown = ranking.missing
    assert large.least_ns == pytest.approx(1000 * (small.least_ns or 0))
    assert (large.share, large.total_ns, large.roofline, unknown.least_ns) == (None,) * 4


def test_a_graph_without_times_has_its_kernels_and_no_sum(code_cache: Path) -> None:
    world = make_world(code_cache, layers=2, candidates=1, compiled=0)
    ranking = kernel_ranking(world.graph)
    assert (ranking.total_ns, ranking.hottest, ranking.samples) == (None, None, (0, 0))
    assert [len(row.calls) for row in ranking.kernels] == [2]


def test_queries_do_not_grow_with_kernels(code_cache: Path) -> None:
    world = make_world(code_cache)
    on_gpu()
    few = [queries_of(kernel_ranking, world.graph)]
    for number in range(8):
        add_node(world, f"node{number}", Work(10**6, 0, 0, "", 0), median_ns=1000.0)
    assert_steady(few, [queries_of(kernel_ranking, world.graph)], usual=[8])
