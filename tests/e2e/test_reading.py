"""Reading: from the overview down to an instruction, by mouse and by keys, and back up."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from codegen_app.kernels.models import Build, Packing
from codegen_app.platform import artifacts
from codegen_app.tracking.models import Series
from tests.app.track_factories import change as make_change
from tests.app.track_factories import channel, missing, regression
from tests.support.pages_world import World


def test_from_the_overview_to_an_instruction_and_back(page: Page, world: World) -> None:
    page.goto("/")
    page.get_by_role("link", name="tiny", exact=True).first.click()
    expect(page.locator("h1")).to_have_text("tiny")

    page.locator("#scheduled").get_by_role("link", name="op0").click()
    expect(page.get_by_role("heading", name="Origins")).to_be_visible()
    expect(page.locator("#explorer-trials")).to_be_attached()
    expect(page.locator(".chart .main-svg").first).to_be_visible()

    page.locator("#candidates tbody").get_by_role("link").first.click()
    expect(page.locator("[data-pane=listing]")).to_be_visible()
    assert "node=" in page.url  # the kernel knows for which node it is shown

    source = page.locator("[data-pane=source] .l", has_text="acc += x[i] * x[i]")
    number = source.get_attribute("data-s")
    page.wait_for_selector("html[data-ready]")  # who points before it moves on later
    source.hover()
    mapped = page.locator(f"[data-pane=listing] .l[data-s='{number}']")
    expect(mapped.first).to_have_class(re.compile(r"\bon\b"))
    expect(mapped.filter(has_text="global_load").first).to_have_class(re.compile(r"\bon\b"))

    page.keyboard.press("u")
    expect(page.locator("h1")).to_contain_text("op0")
    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("u")
    expect(page.locator("h1")).to_have_text("tiny")


@pytest.mark.full
def test_a_pin_scrolls_the_other_pane_and_is_an_address(page: Page, world: World) -> None:
    kernel = world.kernels[0]
    page.set_viewport_size({"width": 1400, "height": 420})  # so that the match is out of sight
    page.goto(kernel.get_absolute_url())
    listing = page.locator("[data-pane=listing]")
    instruction = listing.locator(".l[data-s]", has_text="ds_").last
    instruction.scroll_into_view_if_needed()
    instruction.click()
    number = instruction.get_attribute("data-s")
    pinned = page.locator(f"#L{number}")
    expect(pinned).to_have_class(re.compile(r"\bpin\b"))
    expect(pinned).to_be_in_viewport()
    expect(page).to_have_url(re.compile(f"#L{number}$"))

    page.goto("about:blank")
    page.goto(f"{kernel.get_absolute_url()}#L{number}")
    expect(page.locator(f"[data-pane=listing] .l[data-s='{number}']").first).to_be_in_viewport()
    page.keyboard.press("Escape")
    expect(page.locator(".pin")).to_have_count(0)


@pytest.mark.full
def test_a_branch_leads_to_its_label_and_directives_can_be_shown(page: Page, world: World) -> None:
    page.goto(world.kernels[0].get_absolute_url())
    listing = page.locator("[data-pane=listing]")
    expect(listing.locator(".dir").first).to_be_hidden()
    page.get_by_label("directives").check()
    expect(listing.locator(".dir").first).to_be_visible()
    jump = listing.locator("a.nl").first
    label = jump.text_content()
    jump.click()
    expect(page).to_have_url(re.compile("#."))
    target = page.url.partition("#")[2]
    expect(page.locator(f"#{target}")).to_contain_text(f"{label}:")


@pytest.mark.full
def test_the_inner_loop_and_the_peak_of_live_registers_are_one_step_away(
    page: Page, world: World
) -> None:
    page.goto(world.kernels[0].get_absolute_url())
    page.locator(".pane").get_by_role("link", name="Inner loop").click()
    expect(page).to_have_url(re.compile("#."))
    line = page.locator(f"#{page.url.partition('#')[2]}")
    expect(line).to_be_in_viewport()
    after = page.locator(f"#{page.url.partition('#')[2]} ~ .l[data-s]").first
    expect(after.locator(".x")).to_contain_text("│")
    expect(page.locator("[data-pane=source] .pin").first).to_be_attached()  # it has arrived
    page.keyboard.press("p")
    peak = page.locator(".at-peak")
    expect(peak).to_be_in_viewport()
    page.get_by_role("link", name="Instructions", exact=True).click()
    whole = page.locator("#instructions tbody tr").first
    most = whole.locator("td").last.text_content()
    expect(peak.locator(".live")).to_have_text(most or "")


@pytest.mark.full
def test_two_targets_are_compared(page: Page, world: World) -> None:
    page.goto(f"{world.kernels[0].get_absolute_url()}?tab=builds")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#sides tbody tr")).to_have_count(2)
    expect(page.get_by_text("The same source.")).to_be_visible()
    # Texts of two instruction sets are not compared: what they come to stands side by side.
    expect(page.locator("section[aria-labelledby=compare-figures]")).to_be_visible()
    expect(page.locator(".diff")).to_have_count(0)
    left = page.locator("#sides tbody tr").first.locator("td").nth(2).text_content()
    page.get_by_role("link", name="Swap sides").click()
    expect(page.locator("#sides tbody tr").nth(1).locator("td").nth(2)).to_have_text(left or "")


@pytest.mark.full
def test_keys(page: Page, world: World) -> None:
    page.goto("/")
    page.keyboard.press("j")
    first = page.locator("main table.grid tbody tr").first
    expect(first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("k")
    expect(first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.keyboard.press("?")
    # At once, while the dialog's button still has the focus: it goes with the next drawing.
    page.evaluate("""() => {
        document.getElementById("keys").close();
        const enter = new KeyboardEvent("keydown", { key: "Enter", bubbles: true });
        document.activeElement.dispatchEvent(enter);
    }""")
    expect(page.locator("h1")).not_to_have_text("Overview")

    page.goto(world.nodes[0].get_absolute_url())
    page.keyboard.press("]")
    expect(page.locator("h1")).to_contain_text("op1")
    page.wait_for_selector("html[data-ready]")  # keys are bound after the text is there
    page.keyboard.press("[")
    expect(page.locator("h1")).to_contain_text("op0")
    page.wait_for_selector("html[data-ready]")

    page.keyboard.press("/")
    page.keyboard.type("gelu_1")  # j, k and ? are letters here
    page.keyboard.press("Enter")
    expect(page.locator("table.found tbody tr")).to_have_count(1)
    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"node=gelu_1"))


@pytest.mark.full
def test_the_filter_narrows_a_table_and_counts(page: Page, world: World) -> None:
    page.goto(world.graph.get_absolute_url())
    page.keyboard.press("f")
    page.keyboard.type("op1")
    page.keyboard.press("Enter")
    expect(page.locator("#scheduled tbody tr:visible")).to_have_count(1)
    expect(page.get_by_text("1 of 3 rows")).to_be_visible()
    expect(page).to_have_url(re.compile("filter=op1"))
    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("j")
    expect(page.locator("#scheduled tbody tr:visible")).to_have_attribute("aria-selected", "true")


@pytest.mark.full
def test_the_theme_follows_the_system_until_chosen_and_stays(page: Page, world: World) -> None:
    page.goto(world.nodes[0].get_absolute_url())
    expect(page.locator(".chart .main-svg").first).to_be_visible()
    background = "getComputedStyle(document.body).backgroundColor"
    chart = "getComputedStyle(document.querySelector('.chart .bg, .chart .main-svg')).fill"
    light = page.evaluate(background)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(background)
    assert dark != light
    page.emulate_media(color_scheme="light")
    page.keyboard.press("t")  # light
    page.keyboard.press("t")  # dark
    assert page.evaluate(background) == dark
    page.reload()
    assert page.evaluate(background) == dark
    expect(page.locator(".chart .main-svg").first).to_be_visible()
    paper = page.locator(".chart .main-svg").first.evaluate("svg => svg.style.background")
    assert paper == dark, f"the chart has its own ground ({page.evaluate(chart)})"


@pytest.mark.full
def test_a_point_of_the_chart_opens_its_kernel(page: Page, world: World) -> None:
    page.goto(f"{world.nodes[0].get_absolute_url()}?x=block&colour=unroll")
    page.wait_for_selector("html[data-ready]")
    page.locator(
        "[data-plot=explorer-trials]"
    ).first.scroll_into_view_if_needed()  # charts are drawn near the view
    point = page.locator(".chart .scatterlayer .point").first
    expect(point).to_be_visible()
    box = point.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page).to_have_url(re.compile(r"/kernels/rocm_linear_"))


@pytest.mark.long
def test_every_page_fits_in_both_themes_wide_and_narrow(page: Page, world: World) -> None:
    addresses = ["/", "/graphs", world.graph.get_absolute_url()]
    addresses += [f"{world.graph.get_absolute_url()}?view={view}" for view in ("nodes", "fusion")]
    addresses += [world.nodes[0].get_absolute_url(), "/kernels"]
    addresses += [world.kernels[0].get_absolute_url(), "/runs", world.run.get_absolute_url()]
    addresses += ["/devices", "/search?q=op", "/import", "/components", "/login/"]
    addresses += ["/compare/revisions"]
    addresses += ["/ops", "/ops?words=nowhere", "/ops?by=reference&core=only"]
    addresses += ["/selections", "/glossary", f"/retune?node={world.nodes[0].pk}"]
    packing = Packing.objects.create(graph=world.graph, key="k", kernels=2)
    addresses += [packing.get_absolute_url(), f"/graphs/{world.graph.pk}/pack"]
    one, other = world.kernels[0].builds.values_list("pk", flat=True)
    addresses += [f"/compare?build={one}&build={other}"]
    told = channel("kernel team", address="https://hooks.example.org/" + "long" * 30)
    addresses += ["/channels", f"/channels/{told.pk}"]
    addresses += ["/tokens", "/api/v1/docs"]
    alert = regression("gemm", "a long name of a kernel's problem " * 3)
    addresses += [f"/alerts/{alert.pk}/actions"]
    change = make_change("a problem whose name is longer than a narrow screen " * 3)
    Series.objects.update(points=1, last_at=change.at)
    addresses += ["/series", change.series.get_absolute_url(), change.get_absolute_url()]
    addresses += [change.datum.get_absolute_url()]
    addresses += ["/alerts?state=all", alert.get_absolute_url(), missing().get_absolute_url()]
    addresses += [f"/series/{change.series_id}/thresholds?try=1"]
    for address in addresses:
        for width in (1400, 390):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme="dark" if width == 390 else "light")
            page.goto(address)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{address} is {wide} px wide at {width}"
            unnamed = page.evaluate(
                "[...document.querySelectorAll('a, button, input:not([type=hidden]), select')]"
                ".filter(e => e.checkVisibility() && !(e.textContent.trim() || e.ariaLabel"
                " || e.labels?.length || e.title)).map(e => e.outerHTML)"
            )
            assert unnamed == [], f"{address}: nothing says what these are"


@pytest.mark.full
def test_a_long_listing_is_loaded_where_it_is_looked_at(page: Page, world: World) -> None:
    """Twenty thousand lines: the page has a few hundred, the others come when needed."""
    build = Build.objects.get(kernel=world.kernels[0], target="gfx1100")
    assert build.listing is not None
    text = artifacts.read(build.listing).decode()
    at = text.index("\n", text.index("\tds_")) + 1
    many = "".join(f"\tv_add_f32_e32 v1, {n}, v1\n" for n in range(20_000))
    build.listing = artifacts.store((text[:at] + many + text[at:]).encode(), ".s")
    build.save()

    page.goto(f"{world.kernels[0].get_absolute_url()}?build={build.pk}")
    listing = page.locator("[data-pane=listing]")
    page.wait_for_selector("html[data-ready]")  # the script gives absent lines their height
    assert 250 <= listing.locator(".l").count() <= 1000
    height = listing.evaluate("pane => pane.scrollHeight")
    assert height > 20_000 * 18

    listing.evaluate("pane => { pane.scrollTop = pane.scrollHeight / 2; }")
    middle = listing.locator(".l", has_text="v_add_f32_e32 v1, 10000, v1")
    expect(middle).to_be_attached()
    after = listing.evaluate("pane => pane.scrollHeight")
    assert abs(after - height) < 100  # what was loaded is as high as its place was

    page.goto(f"{page.url.partition('#')[0]}#I19000")
    expect(page.locator("#I19000")).to_be_in_viewport()
    page.keyboard.press("Escape")
    store = page.locator("[data-pane=source] .l[data-s]", has_text="y[blockIdx.x] = sum")
    store.scroll_into_view_if_needed()
    store.click()
    expect(listing.locator(".pin").first).to_be_in_viewport()
    expect(listing.locator(".pin", has_text="global_store")).to_have_count(1)
