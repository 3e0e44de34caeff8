"""A history as a person reads it: from the list to a point, and to the two sides of a change."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from codegen_app.tracking.models import Change, DaySummary, Series
from tests.app import track_factories as make
from tests.support.histories import generated_histories
from tests.support.team import commits, history, push

pytestmark = pytest.mark.full


def test_from_the_list_to_a_point_and_to_the_sides_of_a_change(
    page: Page, transactional_db: None
) -> None:
    one, other, *_ = generated_histories(3)
    change = Change.objects.filter(series=one, withdrawn_at=None).latest("at")

    page.goto("/series")
    page.keyboard.press("f")
    page.keyboard.type("H200")
    page.keyboard.press("Enter")
    expect(page.locator("#series tbody tr")).to_have_count(1)
    page.wait_for_selector("html[data-ready]")  # keys are bound after the text is there
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("kernel 0")

    chart = page.locator("[data-history]")
    expect(chart.locator(".main-svg").first).to_be_visible()
    expect(page.locator("[data-history-environment] li").first).to_be_visible()
    chart.locator(".scatterlayer .points path").nth(40).click(force=True)
    expect(page.locator("[data-history-point]")).to_contain_text("Source")

    # What is chosen, and what is zoomed to, is the address, and comes back with it.
    page.get_by_role("link", name="by revision").click()
    page.get_by_role("link", name="relative", exact=True).click()
    expect(page).to_have_url(re.compile(r"x=revision&scale=relative"))
    box = chart.locator(".nsewdrag").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 200, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 600, box["y"] + 200, steps=5)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"from=\d+.*&to=\d+"))
    page.reload()
    expect(chart.locator(".ytitle")).to_contain_text("of the first level (generated)")
    expect(page.get_by_role("link", name="by revision")).to_have_attribute("aria-current", "true")
    page.get_by_role("button", name="Reset zoom").click()
    expect(page).not_to_have_url(re.compile("from="))

    with page.expect_download() as saved:
        page.get_by_role("button", name="PNG").click()
    assert saved.value.suggested_filename.endswith(".png")

    page.goto(f"{one.get_absolute_url()}?with={other.pk}")
    expect(chart.locator(".legend .traces")).to_have_count(2)
    page.get_by_role("link", name=change.revision.name).first.click()
    expect(page.get_by_role("heading", name="Cause")).to_be_visible()
    expect(page.locator("#sides tbody tr.differs").first).to_be_visible()
    expect(page.locator("[data-history] .main-svg").first).to_be_visible()


def test_a_triangle_leads_to_its_change_in_either_theme(page: Page, transactional_db: None) -> None:
    one, *_ = generated_histories(1)
    change = Change.objects.filter(series=one).latest("at")
    page.emulate_media(color_scheme="dark")
    page.goto(one.get_absolute_url())
    drawn = page.locator("[data-history] .cartesianlayer > .subplot .trace")
    mark = drawn.filter(has_text=f"{change.ratio:.2f}").locator(".point").last
    mark.click(force=True)
    expect(page).to_have_url(re.compile(change.get_absolute_url()))


def test_a_chart_names_ranges_and_what_no_logarithm_is_taken_of(
    page: Page, transactional_db: None
) -> None:
    begin = datetime(2026, 5, 1, tzinfo=UTC)
    series = make.series(points=4, not_positive=1)
    for n, value in enumerate((100.0, -1.0, 101.0, 102.0)):
        bounds = {"low": value - 1, "high": value + 1, "n": 2 if n < 2 else 6}
        make.datum(series=series, value=value, at=begin + timedelta(days=n), **bounds)
    page.goto(f"{series.get_absolute_url()}?scale=log")
    said = page.locator("[data-history-shown]")
    expect(said).to_have_text("1 at or below 0: not shown on a logarithmic scale")
    texts = page.evaluate(
        "document.querySelector('.js-plotly-plot').data.find((one) => one.name === 'point').text"
    )
    names = ["range"] * 2 + ["95% interval"] * 2
    assert all(f"({name} " in text for name, text in zip(names, texts, strict=True)), texts


def test_points_of_branches_are_drawn_where_they_are_asked_for(
    page: Page, transactional_db: None
) -> None:
    push(history("gemm", commits(12), 100.0))
    push(history("gemm", commits(3, prefix="b", branch="topic/<b>"), 110.0))
    series = Series.objects.get()
    names = "document.querySelector('.js-plotly-plot').data.map((one) => one.name)"
    page.goto(series.get_absolute_url())
    expect(page.locator("[data-history] .main-svg").first).to_be_visible()
    assert "branches" not in page.evaluate(names)
    page.get_by_role("link", name="with branches").click()
    expect(page).to_have_url(re.compile(r"branch=(\*|%2A)"))
    expect(page.locator("[data-history] .main-svg").first).to_be_visible()
    assert "branches" in page.evaluate(names)
    page.locator("#branches").get_by_role("link", name="topic/<b>").click()
    expect(page.get_by_role("link", name="with topic/<b>")).to_have_attribute(
        "aria-current", "true"
    )
    expect(page.locator("[data-history] .main-svg").first).to_be_visible()
    texts = page.evaluate(
        "document.querySelector('.js-plotly-plot').data.find((one) => one.name === 'branches').text"
    )
    assert len(texts) == 3
    assert all("branch topic/&lt;b&gt;" in text for text in texts)


def test_a_point_that_stands_for_its_day_is_open_and_says_for_how_many(
    page: Page, transactional_db: None
) -> None:
    push(history("gemm", commits(12), 100.0))
    series = Series.objects.get()
    first = series.data.earliest("at")
    DaySummary.objects.create(datum=first, points=24, low=98.0, high=103.0)
    Series.objects.update(rolled_up=23, rolled_up_to=first.at)
    page.goto(series.get_absolute_url())
    expect(page.locator("[data-history] .main-svg").first).to_be_visible()
    points = page.evaluate(
        "document.querySelector('.js-plotly-plot').data.find((one) => one.name === 'point')"
    )
    assert points["marker"]["symbol"][:2] == [100, 0]
    assert "(range of the day 98.00" in points["text"][0]
    assert "103.0), median of 24 points" in points["text"][0]
    assert "n = " in points["text"][1]
