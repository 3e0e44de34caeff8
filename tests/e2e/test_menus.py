"""The menus of the bar: by keyboard, without a script, and on a narrow screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.pages_world import World

pytestmark = pytest.mark.full


def test_a_page_is_opened_by_keys_and_a_menu_is_closed(page: Page, world: World) -> None:
    page.goto("/kernels")
    page.wait_for_selector("html[data-ready]")
    tuning, tracking = (page.locator("[data-menus] details").nth(at) for at in (2, 3))
    tuning.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(tuning.locator("ul")).to_be_visible()
    page.keyboard.press("Escape")
    expect(tuning.locator("ul")).to_be_hidden()
    expect(tuning.locator("summary")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(tuning.get_by_role("link", name="Runs")).to_be_focused()
    tracking.locator("summary").click()
    expect(tuning.locator("ul")).to_be_hidden()
    page.locator("h1").click()
    expect(tracking.locator("ul")).to_be_hidden()
    tuning.locator("summary").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url("/selections")
    expect(page.locator(".topbar summary[aria-current]")).to_contain_text("Selections")


@pytest.mark.parametrize("width", [390, 1440])
def test_the_menus_work_without_a_script(
    browser: Browser, page: Page, world: World, width: int
) -> None:
    context = browser.new_context(
        java_script_enabled=False,
        viewport={"width": width, "height": 800},
        storage_state=page.context.storage_state(),
    )
    plain = context.new_page()
    page.goto("/kernels")
    plain.goto(page.url)
    plain.locator(".topbar summary", has_text="Graphs").click()
    link = plain.locator(".topbar a[href='/import']")
    expect(link).to_be_visible()
    link.click()
    expect(plain.locator("h1")).to_be_visible()
    assert plain.url.endswith("/import")
    context.close()
