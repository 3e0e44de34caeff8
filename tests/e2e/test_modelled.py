"""What the model says of a kernel, as somebody reads it: asked for, pointed at, by keyboard."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from codegen_app.kernels.modelling import jobs
from codegen_app.kernels.models import Build, GeneratedKernel, Modelling
from codegen_app.platform import artifacts
from codegen_app.workers import work
from tests.support import modelled
from tests.support.pages_world import World, store_report

pytestmark = pytest.mark.full


def keep(kernel: GeneratedKernel, target: str, board: str, **fields: object) -> Modelling:
    build = Build.objects.select_related("listing").get(kernel=kernel, target=target)
    assert build.listing is not None
    text = artifacts.read(build.listing).decode()
    sizes = {"s0": 64}
    report = modelled.report(
        text,
        target,
        board,
        kernel=kernel.name,
        sizes=sizes,
        **fields,  # type: ignore[arg-type]
    )
    return store_report(build, board, sizes, report)


def test_it_is_asked_for_and_comes_in_by_itself(page: Page, world: World) -> None:
    kernel = world.kernels[0]
    page.goto(f"{kernel.get_absolute_url()}?tab=modelled")
    section = page.locator("#modelled")
    expect(section).to_contain_text("has not been modelled yet")
    section.get_by_label("MI300X (gfx942)").check()
    section.get_by_role("button", name="Model", exact=True).click()
    expect(section.locator(".status.wait")).to_have_count(1)

    row = work.claim_next(jobs.queued_modellings(), "worker")
    assert row is not None
    text = artifacts.read(row.build.listing).decode()
    report = modelled.report(text, "gfx942", "MI300X", kernel=kernel.name, sizes=row.sizes)
    work.finish(row, "done", **jobs.report_fields(report, row.build))
    expect(page.locator(".verdict").first).to_contain_text("12.50 µs")  # without a reload
    expect(page.locator("[data-pane=listing] .cols")).to_contain_text("stall")
    expect(page.locator("#modellings")).not_to_have_attribute("hx-get", re.compile("."))


def test_one_that_waits_can_be_cancelled(page: Page, world: World) -> None:
    page.goto(f"{world.kernels[0].get_absolute_url()}?tab=modelled")
    section = page.locator("#modelled")
    section.get_by_label("MI300X (gfx942)").check()
    section.get_by_role("button", name="Model", exact=True).click()
    section.get_by_role("button", name="Cancel").click()
    expect(section.locator(".status.off")).to_have_text("cancelled")


def test_a_span_of_the_timeline_leads_to_its_line_by_keyboard(page: Page, world: World) -> None:
    kernel = world.kernels[0]
    row = keep(kernel, "gfx942", "MI300X")
    page.goto(f"{kernel.get_absolute_url()}?model={row.pk}")
    picture = page.locator("[data-timeline]")
    expect(picture.locator('a[tabindex="0"]')).to_have_count(1)  # one stop for Tab
    picture.locator('a[tabindex="0"]').focus()
    said = page.locator("#timeline-said")
    expect(said).to_contain_text("block 0, wave 0, cycle 0")
    page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("wave 0, cycle 4")
    page.keyboard.press("ArrowDown")
    expect(said).to_contain_text("wave 1, cycle 4")
    page.keyboard.press("End")
    last = said.text_content() or ""
    line = re.search(r"line (\d+)", last)
    assert line is not None
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"#I{line[1]}$"))
    expect(page.locator(f"#I{line[1]}")).to_be_in_viewport()


def test_boards_and_launches_are_links(page: Page, world: World) -> None:
    kernel = world.kernels[0]
    keep(kernel, "gfx1100", "RX 7900 XTX", time_us=77.0)
    keep(kernel, "gfx942", "MI300X", launches=30, waves=8)
    page.goto(kernel.get_absolute_url())
    page.get_by_role("navigation", name="Details").get_by_role("link", name="Modelled").click()
    page.locator("#modelling-rows").get_by_role("link", name="MI300X").click()
    expect(page.locator(".verdict").first).to_contain_text("MI300X at s0=64")
    page.locator("#modelled-launches").get_by_role("link", name="7", exact=True).click()
    expect(page.get_by_role("heading", name="Launch 7")).to_be_visible()
    page.locator("#modelling-rows").get_by_role("link", name="RX 7900 XTX").click()
    expect(page.locator(".verdict").first).to_contain_text("77.00 µs")
    expect(page.get_by_role("navigation", name="Builds").locator("[aria-current]")).to_contain_text(
        "gfx1100"
    )


def test_nothing_is_wider_than_a_phone(page: Page, world: World) -> None:
    kernel = world.kernels[0]
    keep(kernel, "gfx942", "MI300X", launches=30, waves=8, unknown={"v_odd_b32": 3})
    keep(world.kernels[1], "gfx942", "MI300X")
    page.set_viewport_size({"width": 390, "height": 800})
    builds = [kernel.builds.get(target="gfx942").pk for kernel in world.kernels[:2]]
    for address in (
        f"{kernel.get_absolute_url()}?build={builds[0]}",
        f"{kernel.get_absolute_url()}?build={builds[0]}&tab=modelled",
        f"/compare?build={builds[0]}&build={builds[1]}",
        f"/nodes/{world.nodes[0].pk}?x=modelled",
    ):
        page.goto(address)
        wide, screen = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= screen, address


def test_heat_and_spans_can_be_read_in_both_themes(page: Page, world: World) -> None:
    """Text on the hottest line, and a span beside the page, have WCAG AA's contrast."""
    kernel = world.kernels[0]
    row = keep(kernel, "gfx942", "MI300X")
    page.goto(f"{kernel.get_absolute_url()}?model={row.pk}")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        colours = page.evaluate(
            """() => {
              const paint = (value) => {
                const area = document.createElement("canvas").getContext("2d");
                area.fillStyle = value;
                area.fillRect(0, 0, 1, 1);
                return [...area.getImageData(0, 0, 1, 1).data].slice(0, 3);
              };
              const style = (selector) => getComputedStyle(document.querySelector(selector));
              const back = paint(style("[data-pane=source]").backgroundColor);
              const hot = paint(style(".heat5 .t").backgroundColor);
              const text = paint(style(".heat5 .t").color);
              const spans = ["vector", "scalar", "lds", "memory", "branch", "waiting"];
              return [[text, hot, 4.5], ...spans.map((name) =>
                [paint(style(`.timeline .s-${name}`).fill), back, 3])];
            }"""
        )
        for one, other, least in colours:
            assert contrast(one, other) >= least, (theme, one, other)


def contrast(one: list[int], other: list[int]) -> float:
    """WCAG's ratio of two colours."""

    def luminance(colour: list[int]) -> float:
        parts = [value / 255 for value in colour]
        linear = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
