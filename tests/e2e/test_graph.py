"""The node graph: drawn, searched, opened, and in step with the table beside it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from codegen_app.graphs.models import GraphNode, TemplateNode
from tests.support.pages_world import World, make_graph

ON = re.compile(r"\bon\b")


def test_a_selection_is_shared_with_the_table_and_the_address(page: Page, world: World) -> None:
    page.goto(world.graph.get_absolute_url())
    boxes = page.locator(".graph-view .node")
    expect(boxes).to_have_count(3)
    boxes.nth(1).click()
    row = page.locator("#scheduled tbody tr").nth(1)
    expect(row).to_have_attribute("aria-selected", "true")
    expect(boxes.nth(1)).to_have_class(ON)
    expect(page).to_have_url(re.compile("scheduled=op1"))
    node = page.locator(".graph-status").get_by_role("link", name="Open")
    expect(node).to_have_attribute("href", world.nodes[1].get_absolute_url())

    page.locator("#scheduled tbody tr").nth(2).locator("td.num").first.click()
    expect(boxes.nth(2)).to_have_class(ON)
    page.reload()
    expect(page.locator(".graph-view .node").nth(2)).to_have_class(ON)
    expect(page.locator("#scheduled tbody tr").nth(2)).to_have_attribute("aria-selected", "true")


def in_modules(world: World) -> None:
    """Put the first two kernels of the world into one module, the third into another."""
    for layer, module in enumerate(("blocks.0", "blocks.1", "head")):
        GraphNode.objects.filter(graph=world.graph, name__endswith=f"_{layer}").update(
            module_path=f"model.{module}"
        )


@pytest.mark.full
def test_a_box_of_a_kernel_that_shares_a_graph_node_selects_that_kernel(
    page: Page, world: World
) -> None:
    """Two kernels compute ``add_1``; a third has no graph node of its own at all."""
    shared = GraphNode.objects.get(graph=world.graph, name="add_1")
    world.nodes[2].graph_nodes.add(shared)
    problem = world.nodes[2].problem
    alone = TemplateNode.objects.create(
        graph=world.graph, problem=problem, position=3, name="op3", kind="pointwise",
        op="add", reads=["buf1"], writes=["buf3"],
    )  # fmt: skip
    alone.graph_nodes.add(shared)
    page.goto(world.graph.get_absolute_url())
    boxes = page.locator(".graph-view .node")
    expect(boxes).to_have_count(4)
    for name in ("op2", "op3", "op1"):
        box = boxes.filter(has_text=re.compile(rf"{name}\b"))
        box.click()
        expect(box).to_have_class(ON)
        expect(page.locator("#scheduled tr[aria-selected=true]")).to_contain_text(name)
        expect(page).to_have_url(re.compile(rf"\?scheduled={name}$"))
    page.goto(f"{world.graph.get_absolute_url()}?scheduled=op3")
    expect(page.locator(".graph-view .node.on")).to_contain_text("op3")
    expect(page.locator("#scheduled tr[aria-selected=true]")).to_contain_text("op3")
    expect(page.locator(".graph-view .edge.on")).to_have_count(1)


def test_a_kernel_lights_up_wherever_it_is_called(page: Page, world: World) -> None:
    """In the drawing, in the closed modules that hold its calls, and in the table."""
    in_modules(world)
    page.goto(world.graph.get_absolute_url())
    expect(page.locator(".graph-view .node")).to_have_count(3)
    page.locator("#scheduled tbody tr", has_text="op2").locator("td.num").first.click()
    expect(page.locator(".graph-view .node.on")).to_contain_text("op2")
    expect(page.locator(".graph-view .node.same")).to_have_count(2)
    expect(page.locator("#scheduled tr.same")).to_have_count(3)
    expect(page.locator(".graph-view output")).to_contain_text("3 calls of this kernel: 360.0 µs")
    page.get_by_role("button", name="Collapse all").click()
    expect(page.locator(".graph-view .node.same")).to_contain_text("blocks")


def test_modules_open_and_close_with_their_sums(page: Page, world: World) -> None:
    in_modules(world)
    page.goto(world.graph.get_absolute_url())
    boxes, frame = page.locator(".graph-view .node"), page.locator(".graph-view .frame")
    expect(boxes).to_have_count(3)
    expect(frame).to_contain_text("2 kernels · 240.0 µs · 66.7 %")
    frame.locator(".header").click()
    expect(boxes).to_have_count(2)
    module = page.locator(".graph-view .kind-module")
    expect(module).to_contain_text("2 kernels · 240.0 µs · 66.7 %")
    module.click()
    expect(boxes).to_have_count(3)


def test_search_finds_what_is_inside_a_closed_module(page: Page, world: World) -> None:
    in_modules(world)
    page.goto(world.graph.get_absolute_url())
    expect(page.locator(".graph-view .node")).to_have_count(3)
    page.get_by_role("button", name="Collapse all").click()
    expect(page.locator(".graph-view .node")).to_have_count(2)
    page.get_by_label("Find a node in the graph").fill("gelu_1")
    expect(page.locator(".graph-view output")).to_have_text("1 found")
    expect(page.locator(".graph-view .kind-module")).to_have_class(re.compile(r"\bhit\b"))
    page.keyboard.press("Enter")
    expect(page.locator(".graph-view .node.on")).to_contain_text("op1")
    expect(page).to_have_url(re.compile("scheduled=op1"))


@pytest.mark.full
def test_the_nodes_of_the_model_are_drawn_beside_their_table(page: Page, world: World) -> None:
    page.goto(f"{world.graph.get_absolute_url()}?view=nodes&scheduled=op1")
    expect(page.locator(".graph-view .node.on")).to_contain_text("linear_1")
    expect(page.locator("#nodes tr[aria-selected=true]")).to_contain_text("linear_1")
    # The other nodes of its kernel.
    expect(page.locator("#nodes tr.same")).to_have_count(3)
    page.get_by_role("button", name="Expand all").click()
    expect(page.locator(".graph-view .node")).to_have_count(12)


@pytest.mark.full
def test_the_graph_can_be_walked_by_keys(page: Page, world: World) -> None:
    in_modules(world)
    page.goto(world.graph.get_absolute_url())
    boxes = page.locator(".graph-view .node")
    expect(boxes).to_have_count(3)
    page.locator(".graph-view svg").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".graph-view .node.on")).to_contain_text("op1")
    page.keyboard.press("ArrowLeft")  # closes the module around it
    expect(boxes).to_have_count(2)
    page.keyboard.press("ArrowRight")
    expect(boxes).to_have_count(3)
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("op1")


@pytest.mark.full
def test_two_thousand_nodes_are_drawn(page: Page, transactional_db: None) -> None:
    large = make_graph("large", layers=500)
    page.goto(large.get_absolute_url())
    boxes = page.locator(".graph-view .node")
    expect(boxes).to_have_count(500)  # a box for each layer
    page.get_by_role("button", name="Expand all").click()
    expect(boxes).to_have_count(2000)
    layer = page.locator(".graph-view svg > g")
    before = layer.get_attribute("transform")
    page.mouse.move(300, 500)
    page.mouse.down()
    page.mouse.move(340, 560)
    page.mouse.up()
    expect(layer).not_to_have_attribute("transform", before or "")


@pytest.mark.full
def test_fit_shows_the_whole_graph_and_tools_cover_none_of_it(page: Page) -> None:
    """On a phone too, and however many boxes there are."""
    page.goto(make_graph("large", layers=60).get_absolute_url())
    page.wait_for_selector("html[data-ready]")
    page.get_by_role("button", name="Expand all").click()
    said = page.locator(".graph-view output")
    expect(said).to_have_text("240 boxes from the top; Fit shows all")
    page.get_by_role("button", name="Fit").click()
    expect(said).to_have_text("240 boxes")
    for width in (360, 1680):
        page.set_viewport_size({"width": width, "height": 900})
        page.get_by_role("button", name="Fit").click()
        inside, apart = page.evaluate(
            """() => {
              const box = (selector) => document.querySelector(selector).getBoundingClientRect();
              const [all, svg] = [box(".graph-view svg > g"), box(".graph-view svg")];
              const reach = (one, other) => one.left >= other.left - 1 && one.top >= other.top - 1
                && one.right <= other.right + 1 && one.bottom <= other.bottom + 1;
              return [reach(all, svg), box(".graph-tools").bottom <= svg.top + 1];
            }"""
        )
        assert inside, f"at {width} px Fit leaves some of the graph out"
        assert apart, f"at {width} px the tools lie on the drawing"


@pytest.mark.full
def test_kinds_are_told_by_glyph_and_outline(page: Page, world: World) -> None:
    """In grey as well: no two kinds that are drawn have one glyph, and pointwise is no gemm."""
    problem = world.nodes[2].problem
    TemplateNode.objects.create(
        graph=world.graph, problem=problem, position=3, name="op3", kind="pointwise",
        op="add", reads=["buf1"], writes=["buf3"],
    ).graph_nodes.add(GraphNode.objects.get(graph=world.graph, name="add_1"))  # fmt: skip
    page.goto(world.graph.get_absolute_url())
    look = {
        kind: page.locator(f".graph-view .kind-{kind}").first.evaluate(
            "box => [box.querySelector('.glyph').textContent,"
            " box.querySelector('.box').getAttribute('d').includes('A')]"
        )
        for kind in ("gemm", "pointwise")
    }
    assert look == {"gemm": ["\N{MULTIPLICATION SIGN}", False], "pointwise": ["\u0192", True]}
    legend = page.locator(".legend.by-kind [data-kind]").evaluate_all(
        "parts => parts.map(({ dataset }) => [dataset.kind, dataset.glyph])"
    )
    assert ["gemm", look["gemm"][0]] in legend and ["pointwise", look["pointwise"][0]] in legend


@pytest.mark.full
def test_colours_can_say_the_share_of_the_time(page: Page, world: World) -> None:
    page.goto(world.graph.get_absolute_url())
    boxes = page.locator(".graph-view .node")
    expect(boxes).to_have_count(3)
    fill = "box => getComputedStyle(box.querySelector('.box')).fill"
    by_time = boxes.first.evaluate(fill)
    legend = page.locator(".drawing")
    for said in ("25 % and more", "CPU emulation", "s0=16", "samples", "3 of 3 nodes"):
        expect(legend).to_contain_text(said)
    expect(boxes.first).to_have_class(re.compile(r"\bshare-4\b"))
    page.get_by_role("link", name="Kind", exact=True).click()
    expect(page).to_have_url(re.compile(r"\?colour=kind$"))
    assert boxes.first.evaluate(fill) != by_time
    page.reload()  # the address says it
    expect(boxes).to_have_count(3)
    assert boxes.first.evaluate(fill) != by_time
    page.locator("[data-graph-colour=time]").click()
    expect(page).not_to_have_url(re.compile("colour"))


def test_without_times_the_colours_say_the_kind(page: Page, transactional_db: None) -> None:
    page.goto(make_graph("untimed", layers=2).get_absolute_url())
    expect(page.locator(".graph-view .node").first).to_be_visible()
    expect(page.locator("[data-graph-colour]")).to_have_count(0)
