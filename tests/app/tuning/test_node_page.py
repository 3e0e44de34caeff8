"""The first screen of a node: its kernel and time, its part of the graph, and what was second."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client
from django.utils.html import strip_tags

from codegen_app.graphs.models import GraphNode
from codegen_app.kernels.models import KernelUse
from codegen_app.tuning.models import BenchmarkResult, Selection
from codegen_app.tuning.pages.node.query import node_page
from scheduler.tuning.work import Work
from tests.app.tuning.test_ranking import add_node, on_gpu
from tests.support.pages_world import World, make_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def large(code_cache: Path) -> World:
    """Two nodes of one kernel."""
    return make_world(code_cache, layers=2, candidates=3, compiled=3)


def answer(client: Client, url: str) -> str:
    """The text of the page above its candidates."""
    page = client.get(url).content.decode().partition('<section aria-labelledby="node-candidates"')
    return " ".join(strip_tags(page[0]).split())


def test_the_node_says_its_share_and_its_kernels(reader: Client, large: World) -> None:
    add_node(large, "other", median_ns=60_000.0)
    text = answer(reader, large.nodes[0].get_absolute_url())
    assert "Share 40.0 % of tiny (300.0 µs, 3 of 3 nodes); its kernel: 80.0 % in 2 calls" in text


def test_the_second_kernel_stands_beside_the_selected_one(reader: Client, large: World) -> None:
    """The world's kernels take 120, 129 and 138 µs; three samples give no interval."""
    page = node_page(large.nodes[0].pk)
    assert page.second is not None
    assert page.second.kernel == large.kernels[1].name
    text = answer(reader, large.nodes[0].get_absolute_url())
    assert "129.0 µs, ratio: insufficient data (n = 3)" in text
    BenchmarkResult.objects.filter(kernel=large.kernels[0]).update(
        samples_ns=[119_900.0 + 20 * step for step in range(11)]
    )
    BenchmarkResult.objects.filter(kernel=large.kernels[1]).update(
        samples_ns=[128_900.0 + 20 * step for step in range(11)]
    )
    text = answer(reader, large.nodes[0].get_absolute_url())
    assert "1.075 of the time above (95% interval 1.07" in text


def test_the_default_is_compared_if_another_kernel_is_selected(
    reader: Client, large: World
) -> None:
    Selection.objects.update(kernel=large.kernels[1])
    page = node_page(large.nodes[0].pk)
    assert page.shown is not None
    assert page.shown.kernel == large.kernels[1].name
    assert page.default is not None
    assert page.default.ratio is None  # three samples
    text = answer(reader, large.nodes[0].get_absolute_url())
    assert "Default, second" in text


def test_a_kernel_tried_for_another_node_with_the_same_problem_is_a_candidate(
    reader: Client, large: World
) -> None:
    """Tuning and imports record what they try for the first node of a problem."""
    first, second = large.nodes
    assert first.problem == second.problem
    KernelUse.objects.filter(template_node=second, kernel__in=large.kernels[:2]).delete()
    Selection.objects.update(kernel=large.kernels[1])
    rows = node_page(second.pk).candidates
    assert [row.kernel for row in rows] == [row.kernel for row in node_page(first.pk).candidates]
    text = answer(reader, second.get_absolute_url())
    assert f"129.0 µs median of {large.kernels[1].name}, selected" in text
    assert "Not measured" not in text


def test_a_node_without_a_time_says_its_lower_bound(reader: Client, large: World) -> None:
    on_gpu()
    node = add_node(large, "alone", Work(10**9, 10**9, 0, "", 0))
    text = answer(reader, node.get_absolute_url())
    assert "Not measured. Default kernel:" in text
    assert "Lower bound on" in text and "(memory bandwidth)" in text
    assert "Share" not in text


def test_a_node_belongs_to_the_module_of_what_only_it_computes(large: World) -> None:
    first, second = large.nodes
    shared = GraphNode.objects.get(graph=large.graph, name="add_0")
    GraphNode.objects.filter(pk=shared.pk).update(module_path="model")
    assert node_page(first.pk).module == "model"
    second.graph_nodes.add(shared)
    assert node_page(first.pk).module == "model.layers.0.mlp"
    assert node_page(second.pk).module == "model.layers.1"


def test_lines_of_the_model_are_named_once(reader: Client, large: World) -> None:
    lines = [frame["line"] for frame in node_page(large.nodes[0].pk).model_lines]
    assert lines == [10, 11, 13]
    text = answer(reader, large.nodes[0].get_absolute_url())
    assert "Model lines mlp.py:10 x = self.linear(x)" in text


def test_candidates_begin_with_the_fastest(reader: Client, large: World) -> None:
    times = {"median_ns": 1000.0, "low_ns": 1000.0, "high_ns": 1000.0}
    BenchmarkResult.objects.filter(kernel=large.kernels[2]).update(**times)
    page = reader.get(large.nodes[0].get_absolute_url()).content.decode()
    table = page.partition('id="candidates"')[2]
    assert table.index(large.kernels[2].name) < table.index(large.kernels[0].name)
