"""A graph's page: the sum with what it leaves out, and its nodes by what they cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils.html import strip_tags

from codegen_app.graphs.pages.graph.query import graph_page
from scheduler.tuning.work import Work
from tests.app.tuning.test_ranking import add_node, on_gpu
from tests.support.pages_world import World, make_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def measured(code_cache: Path) -> World:
    """Two nodes of one kernel, one of another, and two without a time; on a GPU."""
    world = make_world(code_cache, layers=2, candidates=1)
    on_gpu()
    add_node(world, "small", Work(10**6, 0, 0, "", 0))
    add_node(world, "large", Work(10**9, 0, 0, "", 0))
    add_node(world, "hot", Work(10**9, 0, 0, "", 0), median_ns=1_000_000.0)
    return world


def body(client: Client, world: World, query: str = "") -> str:
    return client.get(f"{world.graph.get_absolute_url()}{query}").content.decode()


def drawing(page: str) -> Any:
    return json.loads(
        page.partition('id="graph-drawing" type="application/json">')[2].partition("<")[0]
    )


def test_the_sum_names_what_it_leaves_out_and_the_hottest_kernel(
    reader: Client, measured: World
) -> None:
    large, small = graph_page(measured.graph.pk).ranking.missing
    text = " ".join(
        strip_tags(body(reader, measured).partition('<div id="graph-progress"')[0]).split()
    )
    assert "240 µs Sum of medians, 3 of 5 nodes" in text
    assert "hottest kernel: hot mm, 1 call, 80.6 %" in text
    assert large.least_ns is not None and small.least_ns is not None
    assert f"Not in the sum: large mm (at least {large.least_ns / 1000:.1f} µs) · small mm" in text


def test_nodes_are_sorted_by_their_cost_and_then_by_their_lower_bound(
    reader: Client, measured: World
) -> None:
    table = body(reader, measured).partition('<table class="grid" id="scheduled"')[2]
    names = [part.partition('"')[0] for part in table.split('data-box="')[1:]]
    assert names == ["hot", "op0", "op1", "large", "small"]
    [hot, *_, small] = graph_page(measured.graph.pk).scheduled[::-1][:3]
    assert hot.name == "hot" and hot.roofline is not None
    assert hot.least_ns == pytest.approx(hot.roofline * 1_000_000.0)
    assert small.roofline is None and small.least_ns is not None
    assert "not measured; at least this by the roofline" in table


def test_the_drawing_has_every_kernel_with_its_share(reader: Client, measured: World) -> None:
    page = graph_page(measured.graph.pk)
    drawn = drawing(body(reader, measured))
    assert {name: box["share"] for name, box in drawn["boxes"].items()} == {
        row.name: row.share for row in page.scheduled
    }
    assert drawn["boxes"]["op0"]["group"] == drawn["boxes"]["op1"]["group"]


def test_the_drawing_of_the_model_has_its_calls(reader: Client, measured: World) -> None:
    drawn = drawing(body(reader, measured, "?view=nodes"))
    assert set(drawn["boxes"]) == set(measured.graph.nodes.values_list("name", flat=True))
    assert drawn["boxes"]["gelu_1"]["parts"] == ["op1"]
    assert drawn["boxes"]["view_1"]["group"] == ""


@pytest.mark.parametrize(
    ("query", "selected"),
    [
        ("?scheduled=op1", "op1"),
        ("?node=gelu_1", "op1"),
        ("?view=nodes&scheduled=op1", "linear_1"),
        ("?view=nodes&node=view_1", "view_1"),
        ("?node=nothing", ""),
    ],
)
def test_an_address_selects_a_box(
    query: str, selected: str, reader: Client, measured: World
) -> None:
    assert f'data-selected="{selected}"' in body(reader, measured, query)
