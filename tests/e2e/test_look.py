"""Dropping somebody else's kernel and its launch, as a person does, until the figures are there."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from codegen_app import tasks
from codegen_app.kernels.models import ForeignKernel
from codegen_app.workers.models import State
from tests.support.foreign_kernels import LAUNCH, LISTING, looked_at, report


def drop(area: Locator, files: dict[str, str]) -> None:
    """Let files fall on an area, as a hand does: over it first."""
    area.evaluate(
        """(area, files) => {
          const dataTransfer = new DataTransfer();
          for (const [name, text] of Object.entries(files)) {
            dataTransfer.items.add(new File([text], name));
          }
          for (const type of ["dragenter", "dragover", "drop"]) {
            const options = { dataTransfer, bubbles: true, cancelable: true };
            area.dispatchEvent(new DragEvent(type, options));
          }
        }""",
        files,
    )


@pytest.mark.full
def test_a_listing_and_its_launch_are_dropped_together(page: Page) -> None:
    page.goto("/look")
    area = page.locator("[data-drop]")
    drop(area, {"launch.json": LAUNCH, "double.s": LISTING})
    expect(area.get_by_label("Kernel")).to_have_value(re.compile(r"double\.s$"))
    expect(area.get_by_label("Launch")).to_have_value(re.compile(r"launch\.json$"))
    page.get_by_role("button", name="Model", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("double.s")
    expect(page.locator("#foreign-kernel")).to_contain_text("Waiting for a worker.")
    tasks.compile()
    assert ForeignKernel.objects.get().state == State.DONE
    said = page.locator(".callout.modelled")  # without a reload of ours
    expect(said).to_contain_text(report().sentence)
    listing = page.locator("[data-pane=listing]")
    expect(listing).to_contain_text("global_load_dword")
    high, screen = page.evaluate("[document.querySelector('.codepane').clientHeight, innerHeight]")
    assert high <= screen  # what the model says comes below it, and must be within reach
    page.goto("/look")
    expect(page.locator("#foreign-kernels")).to_contain_text("double.s")


def test_nothing_is_wider_than_a_phone(page: Page) -> None:
    row = looked_at("a-long-name-of-a-kernel-that-somebody-else-has-made-for-an-instinct-board.s")
    page.set_viewport_size({"width": 390, "height": 800})
    for address in ("/look", row.get_absolute_url()):
        page.goto(address)
        wide, screen = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= screen, address
