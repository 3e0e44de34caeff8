"""Charts are drawn when they come into view: only then is half a megabyte loaded."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.support.trials_world import TrialsWorld, make_trials

pytestmark = pytest.mark.full
LOADED = "performance.getEntriesByType('resource').some((file) => file.name.includes('plotly-'))"


@pytest.fixture
def made(transactional_db: None) -> TrialsWorld:
    return make_trials()


def test_a_chart_below_the_screen_loads_nothing_until_it_is_near(
    page: Page, made: TrialsWorld
) -> None:
    page.set_viewport_size({"width": 390, "height": 100})
    page.goto(made.node.get_absolute_url())
    page.wait_for_selector("html[data-ready]")
    plot = page.locator("[data-plot=explorer-trials]")
    assert not page.evaluate(LOADED)
    plot.scroll_into_view_if_needed()
    expect(plot.locator(".scatterlayer .point").first).to_be_visible()
    assert page.evaluate(LOADED)
