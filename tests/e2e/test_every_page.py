"""What holds of every page: it fits a phone, axe finds nothing, Tab goes as one reads, and it is
seen where the keyboard is."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.support import every_page
from tests.support.pages_world import World

pytestmark = pytest.mark.full

CHECKS = Path(__file__).with_name("every_page.js")
AXE = Path(__file__).resolve().parents[1] / "vendor" / "axe-core" / "axe.min.js"
STOPS = 30  # presses of Tab a page: the bar, and what a page begins with
MOST = 3  # complaints of one kind that are told of a page


@pytest.fixture
def site(page: Page, world: World) -> dict[str, str]:
    """Every page's address; each has something to show."""
    every_page.furnish(world.graph)
    page.add_init_script(path=CHECKS)
    return every_page.addresses()


def ready(page: Page, address: str) -> None:
    """Opened, with everything on it answering."""
    page.goto(address)
    page.wait_for_selector("html[data-ready]")


def test_no_page_is_wider_than_its_screen(page: Page, site: dict[str, str]) -> None:
    wide = []
    for name, address in site.items():
        page.set_viewport_size({"width": 360, "height": 800})
        ready(page, address)
        for width in (360, 1024, 1680):
            page.set_viewport_size({"width": width, "height": 800})
            root = "document.documentElement"
            if page.evaluate(f"{root}.scrollWidth > {root}.clientWidth"):
                wide.append(f"{name} at {width}: {page.evaluate('checks.wide()')}")
    assert not wide, "\n".join(wide)


@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.long)])
def test_axe_finds_nothing(page: Page, site: dict[str, str], theme: str) -> None:
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    page.add_init_script(path=AXE)
    found = []
    for name, address in site.items():
        ready(page, address)
        found += [f"{name}: {line}" for line in page.evaluate("checks.violations()")[:MOST]]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.long)])
def test_axe_finds_nothing_in_the_open_palette(
    page: Page, site: dict[str, str], theme: str
) -> None:
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    page.add_init_script(path=AXE)
    ready(page, "/")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("op")
    page.locator("#palette [role=option]").first.wait_for()
    assert page.evaluate("checks.violations()") == []


@pytest.mark.long
def test_tab_goes_as_one_reads_and_is_seen(page: Page, site: dict[str, str]) -> None:
    wrong = []
    for name, address in site.items():
        ready(page, address)
        wrong += [f"{name}: {line}" for line in page.evaluate("checks.backwards()")]
        for _ in range(STOPS):
            page.keyboard.press("Tab")
            hidden = page.evaluate("checks.hidden()")
            if hidden is None:
                break
            if hidden:
                wrong.append(f"{name}: the focus is not seen on {hidden}")
    assert not wrong, "\n".join(dict.fromkeys(wrong))
