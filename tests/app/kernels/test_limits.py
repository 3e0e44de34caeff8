"""Speed of light beside what was measured: right figures, their sources, and never the emulation's
times under a GPU's roof."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client

from codegen_app.graphs.models import Problem
from codegen_app.kernels.models import GeneratedKernel, ProblemWork
from codegen_app.kernels.services import engine
from codegen_app.kernels.services import problem_work as recording
from codegen_app.tuning.models import BenchmarkResult
from codegen_app.tuning.pages.node.query import node_page
from codegen_app.tuning.queries.limits import limits
from scheduler import targets
from scheduler.tuning.roofline import limit
from scheduler.tuning.work import work_of
from tests.app import factories
from tests.support.pages_world import World

# Heartbeats come over a connection of their own and must see the rows.
pytestmark = pytest.mark.django_db(transaction=True)


def gpu_result(world: World, median_ns: float, device: str = "AMD Instinct MI300X") -> None:
    kernel = world.kernels[0]
    factories.result(
        kernel.builds.get(target="gfx942"),
        median_ns,
        problem=world.nodes[0].problem,
        environment=factories.environment(device_name=device),
        bindings={"s0": 16},
    )


def figure(reader: Client, address: str) -> dict[str, Any]:
    page = reader.get(address).content.decode()
    found = re.search(r'<script id="roofline-figure" type="application/json">(.*?)</script>', page)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_the_least_time_is_bytes_over_bandwidth_or_products_over_the_peak(world: World) -> None:
    found = limits(world.nodes[0].problem_id, place=1)
    assert found is not None
    assert found.bindings == {"s0": 16}
    board = targets.boards("gfx942")[0]
    row = next(row for row in found.boards if row.board == board.name)
    assert row.memory_ns == pytest.approx(1e9 * 4 * 64 * 96 / board.memory_bytes_per_s)
    assert row.products_ns == pytest.approx(1e9 * 2 * 16 * 64 * 64 / (board.peak_flops("f32") or 0))
    assert row.least_ns == max(row.memory_ns, row.products_ns)
    assert row.sources == board.sources
    assert {row.target for row in found.boards} == {
        name for name in targets.names() if targets.boards(name)
    }
    # No board of gfx1030 has matrix cores: its products run at the vector rate.
    rdna2 = next(row for row in found.boards if row.target == "gfx1030")
    assert rdna2.peak == targets.boards("gfx1030")[0].peak_flops("f32", use_matrix=False)


def test_emulated_times_are_not_under_the_roof(reader: Client, world: World) -> None:
    assert BenchmarkResult.objects.filter(emulated=True).exists()
    kernel = f"{world.kernels[0].get_absolute_url()}?tab=roofline"
    for address in (world.nodes[0].get_absolute_url(), kernel):
        traces = figure(reader, address)["data"]
        assert not [trace["name"] for trace in traces if "measured" in trace["name"]]
        page = reader.get(address).content.decode()
        assert "No GPU measurements yet. Times of the CPU emulation" in page


def test_a_measurement_on_a_gpu_is_a_point_with_its_share(reader: Client, world: World) -> None:
    gpu_result(world, 10_000.0)
    gpu_result(world, 12_000.0, device="some other board")
    found = limits(world.nodes[0].problem_id, place=1)
    assert found is not None
    row = next(row for row in found.boards if row.board == "MI300X")
    assert row.best is not None
    assert row.best.roofline == pytest.approx(row.least_ns / 10_000.0)
    other = next(point for point in found.points if point.device == "some other board")
    assert other.roofline is None  # the peak rates of that board are unknown
    points = {t["name"]: t for t in figure(reader, world.nodes[0].get_absolute_url())["data"]}
    point = points["measured on AMD Instinct MI300X"]
    assert point["y"] == [pytest.approx(2 * 16 * 64 * 64 / 10_000.0 / 1000)]
    assert point["x"] == [pytest.approx(2 * 16 * 64 * 64 / (4 * 64 * 96))]
    # At other sizes it is no measurement of what is shown, so no row claims it.
    at_hint = limits(world.nodes[0].problem_id, place=0)
    assert at_hint is not None
    assert all(row.best is None for row in at_hint.boards)


def test_another_kernels_measurements_are_not_this_ones(world: World) -> None:
    gpu_result(world, 10_000.0)
    problem = world.nodes[0].problem_id
    other = GeneratedKernel.objects.exclude(pk=world.kernels[0].pk).first()
    assert other is not None
    mine, others = (limits(problem, 1, kernel.pk) for kernel in (world.kernels[0], other))
    assert mine is not None
    assert others is not None
    assert (len(mine.points), len(others.points)) == (1, 0)


def test_a_problem_without_known_work_has_no_section(reader: Client, world: World) -> None:
    ProblemWork.objects.all().delete()
    assert node_page(world.nodes[0].pk).limits is None
    page = reader.get(world.nodes[0].get_absolute_url()).content.decode()
    assert "Speed of light" not in page


@pytest.mark.full
def test_preparing_a_graph_records_what_each_problem_asks_for() -> None:
    graph = factories.prepared_graph()
    hints = {name: symbol["hint"] for name, symbol in graph.symbols.items()}
    scheduled = engine.scheduled(graph.file.digest)
    board = targets.boards("gfx942")[0]
    problems = Problem.objects.filter(template_nodes__graph=graph).distinct()
    assert problems.count() > 5
    for problem in problems:
        found = limits(problem.pk)
        assert found is not None, problem
        node = scheduled.node(problem.template_nodes.filter(graph=graph)[0].name)
        work_there = work_of(node, scheduled.schedule.lowered, hints)
        row = next(row for row in found.boards if row.board == board.name)
        assert row.least_ns == pytest.approx(limit(work_there, board).least_ns), problem
    # Sizes whose figures no row can hold are left out; the problem keeps the others.
    recording.record(problem, node, scheduled.schedule.lowered, dict.fromkeys(hints, 10**18))
    assert problem.works.count() == 1
