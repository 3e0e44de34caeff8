"""Two revisions compared, from the choice of sides to a series, by keys alone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.measured_revisions import each_status

pytestmark = pytest.mark.full


def test_two_revisions_are_chosen_compared_and_filtered(page: Page, transactional_db: None) -> None:
    old, new = each_status()
    page.goto("/")
    page.locator(".topbar summary", has_text="Tracking").click()
    page.get_by_role("link", name="Compare revisions").click()
    for side, name in (("before", old), ("after", new)):
        expect(page.locator("#choices-title")).to_have_text(f"Select the {side} side")
        page.locator("#choices").get_by_role("link", name=name[:12]).click()
    expect(page.locator("#compared tbody tr")).to_have_count(8)
    page.get_by_role("link", name="slower 2").click()
    expect(page.locator("#compared tbody tr")).to_have_count(2)
    page.wait_for_selector("html[data-ready]")  # keys are bound after the text is there
    page.keyboard.press("f")
    page.keyboard.type("gemm")
    page.keyboard.press("Enter")
    expect(page.locator("#compared tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile("status=slower"))
    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/series/\d+$"))
