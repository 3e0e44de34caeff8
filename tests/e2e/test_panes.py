"""Reading a kernel's source and listing: finding, keys, help, headers, the bar between, folds."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from codegen_app.kernels.models import Build
from codegen_app.platform import artifacts
from tests import screenshots
from tests.support.inlined import inlined
from tests.support.pages_world import World

pytestmark = pytest.mark.full

MANY = 20_000


def pane(page: Page, name: str) -> Locator:
    return page.locator(f"[data-pane={name}]")


def lengthened(world: World) -> str:
    """The address of a build whose listing has twenty thousand lines more, with two of a kind far
    from each other."""
    build = Build.objects.get(kernel=world.kernels[0], target="gfx1100")
    assert build.listing is not None
    text = artifacts.read(build.listing).decode()
    at = text.index("\n", text.index("\tds_")) + 1
    rows = [f"\tv_add_f32_e32 v1, {n}, v1\n" for n in range(MANY)]
    rows[50] = rows[15_000] = "\tv_sin_f32_e32 v7, v7\n"
    build.listing = artifacts.store((text[:at] + "".join(rows) + text[at:]).encode(), ".s")
    build.save()
    return f"{world.kernels[0].get_absolute_url()}?build={build.pk}"


def listing_text(world: World, target: str) -> str:
    build = Build.objects.get(kernel=world.kernels[0], target=target)
    assert build.listing is not None
    return artifacts.read(build.listing).decode()


def test_it_opens_at_the_body_with_the_comment_folded(page: Page, world: World) -> None:
    page.set_viewport_size({"width": 1400, "height": 420})  # so that not all is in sight
    page.goto(world.kernels[0].get_absolute_url())
    source = pane(page, "source")
    expect(source.locator("#L1")).to_be_hidden()
    first = source.locator(".l", has_text="_device(const float* x")
    expect(first).to_be_visible()
    expect(page.locator("[data-pane=listing] .cols")).to_contain_text("instruction")
    source.get_by_text("the metadata comment").click()
    expect(source.locator("#L1")).to_be_visible()
    page.reload()
    expect(source.locator("#L1")).to_be_visible()  # remembered


def test_a_picture_of_the_whole_page_shows_the_code(page: Page, world: World) -> None:
    """What no reader has scrolled to is not drawn; pictures of pages draw all of it."""
    page.set_viewport_size({"width": 360, "height": 400})
    page.goto(world.kernels[0].get_absolute_url())
    page.wait_for_selector("html[data-ready]")
    # What a style changes of what is drawn is known in the next frame.
    drawn = """() => new Promise((resolve) => {
      const count = () => resolve([...document.querySelectorAll(".codepane .l")]
        .filter((line) => line.checkVisibility({ contentVisibilityAuto: true })).length);
      requestAnimationFrame(() => requestAnimationFrame(count));
    })"""
    before = page.evaluate(drawn)
    page.evaluate(screenshots.DRAW_ALL)
    assert page.evaluate(drawn) > max(before, 20)


def test_an_address_opens_the_fold_that_it_leads_into(page: Page, world: World) -> None:
    page.goto(f"{world.kernels[0].get_absolute_url()}#L2")
    expect(page.locator("#L2")).to_be_visible()


def test_the_inner_loop_moves_both_panes(page: Page, world: World) -> None:
    page.set_viewport_size({"width": 1400, "height": 420})
    page.goto(world.kernels[0].get_absolute_url())
    link = page.locator(".pane").get_by_role("link", name="Inner loop")
    for _ in range(2):  # also where the address is that of the loop already
        pane(page, "source").evaluate("pane => { pane.scrollTop = 0 }")
        pane(page, "listing").evaluate("pane => { pane.scrollTop = pane.scrollHeight }")
        link.click()
        expect(page).to_have_url(re.compile("#."))
        expect(page.locator(f"#{page.url.partition('#')[2]}")).to_be_in_viewport()
        expect(pane(page, "source").locator(".pin")).to_be_in_viewport()


def test_finding_in_a_long_listing_goes_to_lines_that_were_not_there(
    page: Page, world: World
) -> None:
    page.goto(lengthened(world))
    listing = pane(page, "listing")
    listing.focus()
    page.keyboard.press("Control+f")
    box = page.get_by_label("Find in listing").get_by_role("searchbox")
    expect(box).to_be_focused()
    page.keyboard.type("V_SIN_F32")  # capitals are meant
    said = page.locator("[data-find=listing] output")
    expect(said).to_have_text("none")
    box.fill("v_sin_f32")
    expect(said).to_have_text("1 of 2")
    expect(listing.locator(".cur")).to_contain_text("v_sin_f32_e32")
    expect(listing.locator(".cur")).to_be_in_viewport()
    first = listing.locator(".cur").get_attribute("id")
    page.keyboard.press("Enter")
    expect(said).to_have_text("2 of 2")
    expect(listing.locator(".cur")).not_to_have_id(first or "")
    expect(listing.locator(".cur")).to_contain_text("v_sin_f32_e32")
    expect(listing.locator(".cur")).to_be_in_viewport()
    marked = "[...CSS.highlights.get('find-now')].map(range => range.toString())"
    assert page.evaluate(marked) == ["v_sin_f32"]
    page.keyboard.press("Shift+Enter")
    expect(said).to_have_text("1 of 2")
    page.keyboard.press("Escape")
    expect(listing).to_be_focused()


def test_finding_counts_patterns_and_leaves_hidden_lines_out(page: Page, world: World) -> None:
    page.goto(world.kernels[0].get_absolute_url())
    box = page.get_by_label("Find in listing").get_by_role("searchbox")
    said = page.locator("[data-find=listing] output")
    box.fill(".amdhsa_next_free_vgpr")
    expect(said).to_have_text("none")
    page.get_by_label("directives").check()
    text = listing_text(world, "gfx1100")
    expect(said).to_have_text(str(text.count(".amdhsa_next_free_vgpr")))
    page.locator("[data-find=listing] [data-regex]").check()
    box.fill("^\\ts_endpgm$")
    ends = re.findall(r"^\ts_endpgm$", text, re.MULTILINE)
    expect(said).to_have_text(f"1 of {len(ends)}")
    box.fill("(")
    expect(said).to_have_text("invalid regular expression")
    source = page.get_by_label("Find in source").get_by_role("searchbox")
    source.fill("acc")
    lines = [text.lower().count("acc") for text in world.kernels[0].source.split("\n")]
    expect(page.locator("[data-find=source] output")).to_have_text(
        re.compile(rf"\d+ of {sum(lines)}$")
    )


def test_a_pane_is_one_stop_of_the_tab_key_and_keys_walk_its_lines(
    page: Page, world: World
) -> None:
    page.goto(world.kernels[0].get_absolute_url())
    stops = page.evaluate(
        "[...document.querySelectorAll('[data-panes] .codepane, [data-panes] .codepane *')]"
        ".filter(each => each.tabIndex >= 0 && each.checkVisibility()).length"
    )
    assert stops == 3  # the panes, and the fold
    source = pane(page, "source")
    source.locator(".l", has_text="acc += x[i] * x[i]").locator(".t").click()
    page.keyboard.press("Escape")
    at = int((source.locator(".cur").get_attribute("id") or "")[1:])
    page.keyboard.press("j")
    expect(source.locator(".cur")).to_have_id(f"L{at + 1}")
    page.keyboard.press("ArrowUp")
    expect(source.locator(".cur")).to_have_id(f"L{at}")
    expect(source.locator(".cur")).to_have_class(re.compile(r"\bon\b"))
    page.keyboard.press("Enter")
    expect(pane(page, "listing").locator(".pin").first).to_be_in_viewport()
    expect(page.locator("main tr[aria-selected].cur")).to_have_count(0)


def test_an_instruction_is_explained_under_the_pointer_and_the_caret(
    page: Page, world: World
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(world.kernels[0].get_absolute_url())
    help_ = page.get_by_role("tooltip")
    name = pane(page, "listing").locator(".i-global", has_text="global_load").first
    name.hover()
    expect(help_).to_contain_text("Each lane reads")
    expect(help_).to_contain_text("latency of memory")
    expect(help_).to_contain_text("Chips and Cheese")  # who measured it
    page.keyboard.press("Escape")
    expect(help_).to_be_hidden()
    pane(page, "listing").focus()
    name.locator("xpath=../..").locator(".n").hover()
    page.mouse.move(0, 0)
    name.click()  # the caret
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(help_).to_contain_text("Each lane reads")
    assert sum("/instructions/gfx1100/global_load" in url for url in asked) == 1


def test_a_header_is_opened_at_the_line_and_leads_back(page: Page, world: World) -> None:
    build = inlined(Build.objects.get(kernel=world.kernels[0], target="gfx942"))
    page.goto(f"{world.kernels[0].get_absolute_url()}?build={build.pk}")
    link = pane(page, "listing").locator("a.h").first
    line = link.locator("xpath=..").get_attribute("id")
    number = (link.get_attribute("href") or "").rpartition("#")[2]
    link.click()
    expect(page.locator(f"#{number}")).to_be_in_viewport()
    expect(page.locator("h1")).to_contain_text("common/kiln/mma.h")
    page.locator(f"#{number} a.x").click()
    expect(page.locator("h1")).to_contain_text(world.kernels[0].name)
    assert int(page.url.rpartition("#I")[2]) <= int((line or "")[1:])
    expect(page.locator(f"#{page.url.rpartition('#')[2]}")).to_be_in_viewport()


@pytest.mark.parametrize("storage", [True, False])
def test_the_bar_is_dragged_and_moved_by_keys_and_stays(
    page: Page, world: World, storage: bool
) -> None:
    if not storage:
        page.add_init_script(
            "Object.defineProperty(window, 'localStorage', { get() { throw new Error('no') } })"
        )
    page.goto(world.kernels[0].get_absolute_url())
    bar = page.get_by_role("separator", name="Width of the source pane")
    expect(bar).to_have_attribute("aria-valuenow", "50")
    box = bar.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 3, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(500, box["y"] + 120, steps=4)
    page.mouse.up()
    expect(bar).to_have_attribute("aria-valuenow", re.compile("3[45]"))
    width = pane(page, "source").bounding_box()
    assert width is not None
    assert 440 < width["width"] < 500
    bar.press("ArrowLeft")
    bar.press("ArrowLeft")
    expect(bar).to_have_attribute("aria-valuenow", re.compile("3[01]"))
    page.reload()
    expect(bar).to_have_attribute("aria-valuenow", re.compile("3[01]" if storage else "50"))
    bar.dblclick()
    expect(bar).to_have_attribute("aria-valuenow", "50")


def test_sections_are_loaded_when_they_are_opened(page: Page, world: World) -> None:
    page.goto(world.kernels[0].get_absolute_url())
    expect(page.locator("#resources")).to_be_visible()
    expect(page.locator("#instructions")).to_have_count(0)
    line = pane(page, "source").locator(".l", has_text="acc += x[i] * x[i]")
    line.click()
    tabs = page.get_by_role("navigation", name="Details")
    tabs.get_by_role("link", name="Instructions").click()
    expect(page.locator("#instructions")).to_be_visible()
    expect(page).to_have_url(re.compile("tab=instructions"))
    expect(tabs.locator("[aria-current]")).to_have_text("Instructions")
    expect(line).to_have_class(re.compile(r"\bpin\b"))  # the page stays
    page.reload()
    expect(page.locator("#instructions")).to_be_visible()
    page.go_back()
    expect(page.locator("#resources")).to_be_visible()
    expect(line).to_have_class(re.compile(r"\bpin\b"))  # as the address says
    page.get_by_role("link", name="Build for another target").click()
    expect(page.locator("#build-rows")).to_be_visible()


def test_a_hovered_line_can_be_seen_on_any_ground(page: Page, world: World) -> None:
    page.goto(world.kernels[0].get_absolute_url())
    line = pane(page, "source").locator(".l", has_text="acc += x[i] * x[i]")
    edge = "each => getComputedStyle(each.querySelector('.t')).boxShadow"
    assert line.evaluate(edge) == "none"
    line.hover()
    expect(line).to_have_class(re.compile(r"\bon\b"))
    assert line.evaluate(edge).count("inset") == 2


def test_of_two_tabs_chosen_at_once_the_last_one_opens(page: Page, world: World) -> None:
    """The first is slow: its section does not take the place of the second's."""
    slow: list[Route] = []

    def hold(route: Route) -> None:
        slow.append(route)

    page.route(re.compile("tab=resources&part=tab"), hold)
    page.goto(world.kernels[0].get_absolute_url())
    tabs = page.get_by_role("navigation", name="Details")
    with page.expect_request(re.compile("tab=resources&part=tab")):
        tabs.get_by_role("link", name="Resources").click()
    tabs.get_by_role("link", name="Builds and files").click()
    (first,) = slow
    first.continue_()
    expect(page.locator("#builds")).to_be_visible()
    expect(page.locator("#resources")).to_have_count(0)
    expect(tabs.locator("[aria-current]")).to_have_text("Builds and files")


def test_flags_are_edited_beside_the_tabs_and_kept_after_an_error(page: Page, world: World) -> None:
    page.goto(f"{world.kernels[0].get_absolute_url()}?tab=builds")
    form = page.get_by_role("form", name="Build")
    expect(form.get_by_label("gfx1100", exact=True)).to_be_checked()
    form.get_by_text("other targets").click()
    form.get_by_label("gfx950", exact=True).check()
    form.get_by_label("Flags").fill("-O2 -fplugin=x.so")
    form.get_by_role("button", name="Build").click()
    expect(page.get_by_role("alert")).to_contain_text("is not allowed")
    expect(page.get_by_role("alert")).to_be_in_viewport()
    expect(form.get_by_label("Flags")).to_have_value("-O2 -fplugin=x.so")
    for name in ("gfx1100", "gfx950"):
        expect(form.get_by_label(name, exact=True)).to_be_checked()
    expect(pane(page, "listing")).to_contain_text("s_endpgm")
