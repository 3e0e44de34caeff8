"""The palette: opened by keys from anywhere, used by keys alone, and it gives the focus back."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.pages_world import World


def opened(page: Page) -> Locator:
    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Find a page")
    expect(box).to_be_focused()
    return box


def chosen(page: Page) -> Locator:
    """The line that the field says is chosen."""
    expect(page.locator("#palette [role=option][aria-selected=true]")).to_have_count(1)
    key = page.locator("#palette input").get_attribute("aria-activedescendant")
    found = page.locator(f"#{key}")
    expect(found).to_have_attribute("aria-selected", "true")
    return found


def test_a_kernel_is_found_and_opened_by_keys_alone(page: Page, world: World) -> None:
    page.goto("/")
    opened(page)
    page.keyboard.type(world.kernels[1].name[5:])
    option = page.locator("#palette [role=option]", has_text=world.kernels[1].name).first
    expect(option).to_be_visible()
    expect(chosen(page)).to_contain_text(world.kernels[1].name)
    page.keyboard.press("ArrowUp")
    expect(chosen(page)).to_contain_text("Search for")
    page.keyboard.press("ArrowDown")
    expect(chosen(page)).to_contain_text(world.kernels[1].name)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(re.escape(world.kernels[1].get_absolute_url()) + "$"))


@pytest.mark.full
def test_escape_closes_and_the_focus_is_where_it_was(page: Page, world: World) -> None:
    page.goto("/kernels")
    link = page.locator(".topbar summary", has_text="Tuning")
    link.focus()
    opened(page)
    page.keyboard.press("Tab")
    expect(page.locator("#palette input")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    expect(link).to_be_focused()
    # Keys that pages have are letters here, and the page below answers none.
    opened(page)
    page.keyboard.type("t?jk")
    expect(page.locator("#palette input")).to_have_value("t?jk")
    expect(page.locator("#keys")).to_be_hidden()
    page.keyboard.press("Control+k")
    expect(page.locator("#palette")).to_be_hidden()


@pytest.mark.full
def test_an_action_is_found_where_one_is(page: Page, world: World) -> None:
    page.goto(world.kernels[0].get_absolute_url())
    opened(page).fill("compare with gfx942")
    expect(chosen(page)).to_contain_text("Compare with gfx942")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/compare\?build=\d+&build=\d+"))
    opened(page).fill("retune op1")
    expect(chosen(page)).to_contain_text("Retune op1")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/retune\?node={world.nodes[1].pk}$"))


@pytest.mark.full
def test_slash_goes_to_the_search_and_its_page_has_all_groups(page: Page, world: World) -> None:
    page.goto("/")
    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("/")
    page.keyboard.type("linear")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Search: linear")).to_be_visible()
    found = page.get_by_role("navigation", name="Results")
    for group in ("Scheduled nodes", "Graph nodes", "Kernels", "Ops"):
        expect(found.get_by_role("link", name=group)).to_be_visible()


@pytest.mark.full
@pytest.mark.parametrize("width", [1400, 360])
def test_the_palette_fits(page: Page, world: World, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto("/")
    page.wait_for_selector("html[data-ready]")
    page.get_by_role("button", name="Find: command palette").click()
    expect(page.locator("#palette [role=option]").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    box = page.locator("#palette").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    if width == 1400:
        opened_by = page.locator("#palette input")
        opened_by.fill("linear")
        expect(page.locator("#palette [role=group][aria-label=Kernels]")).to_be_visible()
