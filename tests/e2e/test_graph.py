"""The node graph: drawn, searched, opened, and in step with the table beside it."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

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
    assert "node=linear_1" in page.url

    page.locator("#scheduled tbody tr").nth(2).locator("td").first.click()
    expect(boxes.nth(2)).to_have_class(ON)
    page.reload()
    expect(page.locator(".graph-view .node").nth(2)).to_have_class(ON)
    expect(page.locator("#scheduled tbody tr").nth(2)).to_have_attribute("aria-selected", "true")


def test_modules_open_and_close_and_search_finds_what_is_inside(page: Page, world: World) -> None:
    page.goto(world.graph.get_absolute_url())
    boxes = page.locator(".graph-view .node")
    expect(boxes).to_have_count(3)
    page.get_by_role("button", name="Close all").click()
    expect(boxes).to_have_count(1)
    expect(boxes.first).to_contain_text("▸ model")
    page.get_by_label("Find a node in the graph").fill("gelu_2")
    expect(page.locator(".graph-tools output")).to_have_text("1 found")
    expect(boxes.first).to_have_class(re.compile(r"\bhit\b"))
    page.keyboard.press("Enter")
    expect(page.locator(".graph-view .node.on")).to_contain_text("linear + 2")
    assert "node=gelu_2" in page.url


def test_views_can_be_shown(page: Page, world: World) -> None:
    page.goto(world.graph.get_absolute_url())
    expect(page.locator(".graph-view .node")).to_have_count(3)
    expect(page.locator(".graph-view .edge")).to_have_count(2)  # through the views
    page.get_by_role("button", name="Views").click()
    expect(page.locator(".graph-view .node")).to_have_count(6)


def test_the_graph_can_be_walked_by_keys(page: Page, world: World) -> None:
    page.goto(world.graph.get_absolute_url())
    expect(page.locator(".graph-view .node")).to_have_count(3)
    page.locator(".graph-view svg").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".graph-view .node.on")).to_contain_text("op1")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("op1")


def test_two_thousand_nodes_are_drawn(page: Page, transactional_db: None) -> None:
    large = make_graph("large", layers=500)
    page.goto(large.get_absolute_url())
    boxes = page.locator(".graph-view .node")
    expect(boxes.first).to_be_visible()
    page.get_by_role("button", name="Open all").click()
    # The page stays alive while the worker lays out: a drag moves the drawing at once.
    layer = page.locator(".graph-view svg > g")
    before = layer.get_attribute("transform")
    page.mouse.move(300, 500)
    page.mouse.down()
    page.mouse.move(340, 560)
    page.mouse.up()
    assert layer.get_attribute("transform") != before
    expect(boxes).to_have_count(2000)
