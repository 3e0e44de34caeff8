"""A kernel's page as somebody uses it all day: build, read, compare, download."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from codegen_app.kernels.models import Build
from codegen_app.kernels.services import builds
from codegen_app.workers import work
from codegen_app.workers.models import State
from scheduler.build.cache import CodeCache
from scheduler.build.toolchains import Search, find_target_toolchains, pick_toolchain
from scheduler.targets import find
from tests.support.pages_world import World, make_build


def compile_one(build: Build) -> None:
    """What a worker does."""
    claimed = work.claim_next(Build.objects.filter(pk=build.pk), "worker")
    assert claimed is not None
    builds.run_build(claimed)


@pytest.mark.full
def test_builds_are_asked_for_with_flags_and_come_in_by_themselves(
    page: Page, world: World
) -> None:
    kernel = world.kernels[0]
    page.goto(f"{kernel.get_absolute_url()}?tab=builds")
    form = page.locator("form", has=page.get_by_label("Flags"))
    form.get_by_text("other targets").click()
    form.get_by_label("gfx1100", exact=True).uncheck()
    for target in ("gfx90a", "gfx1201"):
        form.get_by_label(target, exact=True).check()
    form.get_by_label("Flags").fill("-O1 -ffast-math")
    form.get_by_role("button", name="Build").click()
    tabs = page.get_by_role("navigation", name="Builds")
    expect(tabs.locator("[aria-current]")).to_contain_text("gfx90a")
    expect(page.locator(".callout")).to_contain_text("has not finished")
    rows = page.locator("#build-rows tbody tr", has_text="-O1 -ffast-math")
    expect(rows).to_have_count(2)

    for build in Build.objects.filter(kernel=kernel, state=State.QUEUED):
        compile_one(build)
    expect(page.locator("[data-pane=listing]")).to_contain_text("s_endpgm")  # without a reload
    expect(rows.locator(".status.ok")).to_have_count(2)
    expect(page.locator("#builds")).not_to_have_attribute("hx-get", re.compile("."))


@pytest.mark.full
def test_flags_that_are_not_allowed_are_rejected_with_the_allowed_ones(
    page: Page, world: World
) -> None:
    page.goto(f"{world.kernels[0].get_absolute_url()}?tab=builds")
    form = page.locator("form", has=page.get_by_label("Flags"))
    form.get_by_text("other targets").click()
    form.get_by_label("gfx1100", exact=True).uncheck()
    form.get_by_label("gfx90a", exact=True).check()
    form.get_by_label("Flags").fill("-fplugin=/tmp/x.so")
    form.get_by_role("button", name="Build").click()
    expect(page.get_by_role("alert")).to_contain_text("is not allowed; allowed are -O levels")
    expect(form.get_by_label("Flags")).to_have_value("-fplugin=/tmp/x.so")


def test_a_compile_error_leads_to_its_line(page: Page, world: World) -> None:
    kernel = world.kernels[0]
    kernel.source = kernel.source.replace("acc += x[i]", "acc += undeclared + x[i]")
    kernel.save()
    number = next(n for n, line in enumerate(kernel.source.split("\n"), 1) if "undeclared" in line)
    page.goto(f"{kernel.get_absolute_url()}?tab=builds")
    form = page.locator("form", has=page.get_by_label("Flags"))
    form.get_by_text("other targets").click()
    form.get_by_label("gfx1100", exact=True).uncheck()
    form.get_by_label("gfx90a", exact=True).check()
    form.get_by_role("button", name="Build").click()
    expect(page.locator(".callout")).to_contain_text("has not finished")
    compile_one(Build.objects.get(kernel=kernel, target="gfx90a"))
    expect(page.locator(".callout.bad")).to_contain_text("undeclared")  # without a reload
    page.locator("#diagnostics").get_by_role("link").first.click()
    expect(page).to_have_url(re.compile(rf"#L{number}$"))
    line = page.locator(f"#L{number}")
    expect(line).to_be_in_viewport()
    expect(line).to_have_class(re.compile(r"\berror\b"))
    expect(line).to_have_attribute("title", re.compile("error: use of undeclared identifier"))


@pytest.mark.full
def test_a_loop_alone_and_the_whole_again(page: Page, world: World) -> None:
    page.goto(world.kernels[0].get_absolute_url())
    rows = page.locator("[data-pane=listing] .l")
    whole = rows.count()
    page.locator(".pane").get_by_role("link", name="this loop only").click()
    expect(page.locator(".pane").get_by_role("link", name="Whole listing")).to_be_visible()
    assert 0 < rows.count() < whole
    expect(rows.locator(".x", has_text="│").first).to_be_visible()
    source = page.locator("[data-pane=source] .l", has_text="acc += x[i] * x[i]")
    source.click()
    expect(page.locator("[data-pane=listing] .pin", has_text="global_load").first).to_be_visible()
    page.locator(".pane").get_by_role("link", name="Whole listing").click()
    expect(rows).to_have_count(whole)


@pytest.mark.full
@pytest.mark.parametrize("view", ["sass", "ptx"])
def test_source_and_sass_lead_to_each_other(
    page: Page, world: World, code_cache: Path, view: str
) -> None:
    toolchain = pick_toolchain(
        find_target_toolchains(find("sm_90"), Search(CodeCache(code_cache))), find("sm_90")
    )
    build = make_build(world.kernels[0], "sm_90", code_cache, toolchain)
    page.goto(f"{world.kernels[0].get_absolute_url()}?build={build.pk}&view={view}")
    page.wait_for_selector("html[data-ready]")
    source = page.locator("[data-pane=source] .l", has_text="acc += x[i] * x[i]")
    source.click()
    load = page.locator("[data-pane=listing] .pin", has=page.locator(".i-global")).first
    expect(load).to_be_in_viewport()
    load.click()  # releases it
    expect(source).not_to_have_class(re.compile(r"\bpin\b"))
    load = page.locator("[data-pane=listing] .l", has=page.locator(".i-global")).first
    load.click()
    expect(source).to_have_class(re.compile(r"\bpin\b"))
    expect(source).to_be_in_viewport()


@pytest.mark.full
def test_the_blocks_lead_to_their_lines(page: Page, world: World) -> None:
    page.goto(f"{world.kernels[0].get_absolute_url()}?tab=instructions")
    page.get_by_text("basic blocks of").click()
    blocks = page.locator("details[open] tbody tr")
    blocks.nth(1).locator("td").nth(2).get_by_role("link").click()
    expect(page).to_have_url(re.compile("#."))
    expect(page.locator(f"#{page.url.partition('#')[2]}")).to_be_in_viewport()


@pytest.mark.full
def test_three_builds_are_compared(page: Page, world: World) -> None:
    one, other = world.kernels[:2]
    numbers = [one.builds.get(target=name).pk for name in ("gfx942", "gfx1100")]
    numbers.append(other.builds.get(target="gfx942").pk)
    page.goto("/compare?" + "&".join(f"build={number}" for number in numbers))
    expect(page.locator("#sides tbody tr")).to_have_count(3)
    expect(page.locator("#deltas thead th")).to_have_count(6)
    expect(page.get_by_text("The same source.")).to_be_visible()
    page.get_by_role("navigation", name="Compared with").get_by_role("link").nth(1).click()
    expect(page.locator(".diff").first).to_contain_text("__launch_bounds__")
    expect(page).to_have_url(re.compile("shown=2"))
    page.reload()
    expect(page.locator(".diff .changed").first).to_be_visible()
    left, right = page.locator(".diff .changed").first.locator(".t").all()
    boxes = left.bounding_box(), right.bounding_box()
    assert boxes[0] and boxes[1]
    assert boxes[0]["y"] == boxes[1]["y"], "side by side"
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]


@pytest.mark.full
def test_candidates_are_compared_from_their_node(page: Page, world: World) -> None:
    page.goto(world.nodes[0].get_absolute_url())
    for kernel in world.kernels[:2]:
        page.get_by_label(f"Compare {kernel.name}").check()
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#sides tbody tr")).to_have_count(2)
    expect(page.locator("#sides")).to_contain_text(world.kernels[1].name)


def test_from_a_graph_node_to_the_lines_that_compute_it(page: Page, world: World) -> None:
    page.goto(f"{world.graph.get_absolute_url()}?view=nodes")
    page.locator("#node-linear_0").get_by_role("link").nth(1).click()
    expect(page.locator("[data-pane=source] .of")).to_have_count(2)
    expect(page.locator("#L9")).to_be_in_viewport()
    page.get_by_role("link", name="Nodes and interface").click()
    page.locator("#provenance").get_by_role("link", name="linear_0").click()
    expect(page.locator("h1")).to_have_text("tiny")
    expect(page.locator("#scheduled tr[aria-selected=true]")).to_contain_text("op0")


@pytest.mark.full
def test_the_roofline_is_drawn_beside_its_figures(page: Page, world: World) -> None:
    page.goto(world.nodes[0].get_absolute_url())
    chart = page.locator("#limits .chart")
    chart.scroll_into_view_if_needed()  # charts are drawn near the view
    expect(chart.locator(".scatterlayer .trace").first).to_be_visible()
    expect(chart.locator(".legend")).to_contain_text("MI300X (gfx942)")
    at_least = page.locator("#limit-rows tbody tr", has_text="MI300X").locator("td").nth(2)
    before = at_least.text_content()
    page.get_by_role("navigation", name="Sizes").get_by_role("link", name="s0=16").click()
    expect(at_least).not_to_have_text(before or "")
    page.get_by_text("Sources of the figures").click()
    expect(page.locator("#limits li", has_text="MI300X")).to_contain_text("white paper")


@pytest.mark.full
def test_the_saved_page_works_without_the_site(
    page: Page, browser: Browser, world: World, tmp_path: Path
) -> None:
    page.goto(world.kernels[0].get_absolute_url())
    with page.expect_download() as download:
        page.get_by_role("link", name="Page", exact=True).click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)

    context = browser.new_context(offline=True)
    complaints: list[str] = []
    context.on("console", lambda message: complaints.append(message.text))
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    context.on("requestfailed", lambda request: complaints.append(request.url))
    away = context.new_page()
    away.goto(file.as_uri())
    source = away.locator("[data-pane=source] .l", has_text="acc += x[i] * x[i]")
    number = source.get_attribute("data-s")
    source.hover()
    mapped = away.locator(f"[data-pane=listing] .l[data-s='{number}']", has_text="global_load")
    expect(mapped.first).to_have_class(re.compile(r"\bon\b"))
    source.click()
    expect(mapped.first).to_be_in_viewport()
    expect(mapped.first).to_have_class(re.compile(r"\bpin\b"))
    expect(away.locator("[data-pane=listing] .dir").first).to_be_hidden()
    away.get_by_label("directives").check()
    expect(away.locator("[data-pane=listing] .dir").first).to_be_visible()
    expect(away.locator("#resources")).to_contain_text("of 16")
    context.close()
    assert complaints == []
