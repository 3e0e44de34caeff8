"""Keys: a table is one tab stop, the arrows move in it, and what ``?`` lists works where it is
listed."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.pages_world import World

pytestmark = pytest.mark.full

MOST_STOPS = 60
"""Tab stops of a page: its header's 10, its own controls, and one for each table."""

COUNT = """
() => [...document.querySelectorAll(
  "a[href], button, input, select, textarea, summary, [tabindex]"
)].filter((one) =>
  one.tabIndex >= 0 && !one.disabled && one.type !== "hidden" && one.checkVisibility()
).length
"""


def opened(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("html[data-ready]")


def pages(world: World) -> list[str]:
    graph, node = world.graph.get_absolute_url(), world.nodes[0].get_absolute_url()
    return [
        *("/", "/graphs", graph, f"{graph}?view=nodes", node, "/kernels", "/runs"),
        *(world.run.get_absolute_url(), "/selections", "/devices", "/series", "/alerts"),
        *("/ops", "/glossary"),
    ]


def test_no_page_has_more_tab_stops_than_a_hand_can_go_through(page: Page, world: World) -> None:
    counts = {}
    for address in pages(world):
        opened(page, address)
        counts[address] = page.evaluate(COUNT)
        in_rows = page.locator("table.grid tbody tr:not([tabindex='0']) :is(a, button, input)")
        assert (
            page.evaluate(
                "all => all.filter((one) => one.tabIndex >= 0).length", in_rows.element_handles()
            )
            == 0
        ), address
    assert max(counts.values()) <= MOST_STOPS, counts


def focused(page: Page) -> str:
    return page.evaluate("document.activeElement.closest('tr')?.id ?? ''")


def test_the_focus_moves_in_a_table_and_enter_follows(page: Page, world: World) -> None:
    graph = world.graph.get_absolute_url()
    opened(page, f"{graph}?view=nodes")
    expect(page.locator("#nodes")).to_have_attribute("role", "grid")
    page.locator("#nodes tbody tr").first.focus()
    first = focused(page)
    page.keyboard.press("ArrowDown")
    second = focused(page)
    assert first != second
    expect(page.locator(f"#{second}")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("End")
    assert focused(page) == page.locator("#nodes tbody tr").last.get_attribute("id")
    page.keyboard.press("Home")
    assert focused(page) == first
    page.keyboard.press("j")
    assert focused(page) == second
    page.keyboard.press("k")
    assert focused(page) == first
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.closest('thead') !== null"), "headings that sort"
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.matches('th a')")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    assert focused(page) == first
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.matches('td a')")
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    assert focused(page) == first, "there is one way back into the table"
    page.locator(f"#{first}").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/nodes/\d+$"))


def test_a_row_that_a_filter_leaves_keeps_the_table_a_stop(page: Page, world: World) -> None:
    opened(page, f"{world.graph.get_absolute_url()}?view=fusion")
    page.locator("[data-filter=decisions]").fill("op2")
    shown = page.locator("#decisions tbody tr:visible")
    expect(shown).to_have_count(1)


EFFECTS = {
    "/": "[data-search]:focus",
    "f": ":is([data-filter], [data-filter-box]):focus",
    "j": "tr[aria-selected=true]",
    "c": "[data-copied]:not(:empty)",
}


@pytest.mark.long
def test_what_is_announced_works_and_nothing_else_is_announced(page: Page, world: World) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for address in pages(world):
        opened(page, address)
        page.keyboard.press("?")
        listed = page.locator("#keys dl > div:visible kbd").all_inner_texts()
        page.keyboard.press("Escape")
        assert {"/", "t", "?"} <= set(listed), address
        for key, effect in EFFECTS.items():
            if key not in listed:
                continue
            opened(page, address)
            page.keyboard.press(key)
            expect(page.locator(effect)).to_have_count(1)
        for key, rel in (("[", "prev"), ("]", "next")):
            there = page.locator(f"a[rel={rel}]").count()
            assert not there or key in listed, (address, key)
        assert ("a" in listed) == (page.locator("[data-triage] [data-key=a]").count() > 0)
        assert ("p" in listed) == (page.locator("[data-panes]").count() > 0)


@pytest.mark.parametrize("last", ["End", "Home"])
def test_the_graph_is_one_stop_too(page: Page, world: World, last: str) -> None:
    opened(page, world.graph.get_absolute_url())
    page.wait_for_selector("[data-graph][data-ready]")
    page.locator("[data-graph] svg").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press(last)
    expect(page.locator("[data-graph] .node.on")).to_have_count(1)
    read_out = page.locator("[data-graph] output").text_content()
    assert read_out
    label = page.locator("[data-graph] .node.on").text_content() or ""
    assert read_out.partition(" · ")[0] in label


def test_what_an_address_or_a_key_leads_to_is_not_below_the_bar(page: Page, world: World) -> None:
    page.set_viewport_size({"width": 1400, "height": 400})
    opened(page, f"{world.kernels[0].get_absolute_url()}#resources")
    below = "(selector) => document.querySelector(selector).getBoundingClientRect().top"
    bar = page.evaluate("document.querySelector('.topbar').getBoundingClientRect().bottom")
    assert page.evaluate(below, "#kernel-resources") >= bar
    opened(page, "/ops")
    for key in [*("j" * 40), *("k" * 25)]:
        page.keyboard.press(key)
    assert page.evaluate("scrollY") > 0
    assert page.evaluate(below, "tr[aria-selected=true]") >= bar
