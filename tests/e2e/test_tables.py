"""Tables by mouse and keys: sorted, filtered, columns chosen, copied."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from codegen_app.kernels.models import GeneratedKernel
from tests.support import alerts as made
from tests.support.histories import generated_histories
from tests.support.pages_world import World


def test_a_table_is_sorted_filtered_and_copied(page: Page, world: World) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/kernels")
    page.wait_for_selector("html[data-ready]")
    names = page.locator("#kernels tbody tr td:first-child")
    page.get_by_role("columnheader", name="Kernel").get_by_role("link").click()
    expect(page.get_by_role("columnheader", name="Kernel")).to_have_attribute(
        "aria-sort", "ascending"
    )
    expect(names).to_have_text(sorted(kernel.name for kernel in world.kernels))
    page.get_by_role("columnheader", name="Registers").get_by_role("link").click()
    expect(page).to_have_url(re.compile(r"sort=-registers"))

    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("f")
    page.keyboard.type("time<125")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 of 3 rows")).to_be_visible()
    expect(names).to_have_text([world.kernels[0].name])
    expect(page).to_have_url(re.compile(r"sort=-registers"))

    page.get_by_text("Columns", exact=True).click()
    page.get_by_role("checkbox", name="Template").uncheck()
    page.get_by_role("checkbox", name="Waves").check()
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("columnheader", name="Waves")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Template")).to_have_count(0)

    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("c")
    expect(page.locator("[data-copied]")).to_have_text("1 row copied")
    copied = page.evaluate("navigator.clipboard.readText()").split("\n")
    assert copied[0].split("\t")[0] == "Kernel"
    assert copied[1].split("\t")[0] == world.kernels[0].name


@pytest.mark.full
def test_a_kernels_name_keeps_its_end_where_there_is_no_room(page: Page, world: World) -> None:
    """Names begin alike: the digest and the last ops stay in sight, and the text is whole."""
    name = "rocm_fused_add_addmm_gelu_native_layer_norm_view_transpose_1a2b3c4d"
    GeneratedKernel.objects.filter(pk=world.kernels[0].pk).update(name=name)
    parts = """(cell, name) => {
      const text = cell.querySelector("bdi").firstChild;
      const place = (from, to) => {
        const range = document.createRange();
        range.setStart(text, from);
        range.setEnd(text, to);
        return range.getBoundingClientRect();
      };
      const { left, right } = cell.querySelector(".kernel-name").getBoundingClientRect();
      const [first, last] = [place(0, 4), place(name.length - 19, name.length)];
      return [first.right < left, last.left >= left && last.right <= right + 1];
    }"""
    for width in (1400, 360):
        page.set_viewport_size({"width": width, "height": 800})
        for address in ("/kernels", world.nodes[0].get_absolute_url()):
            page.goto(address)
            page.wait_for_selector("html[data-ready]")
            cell = page.locator("td", has=page.locator("bdi", has_text=name)).first
            expect(cell).to_contain_text(name)
            expect(cell.locator(".kernel-name")).to_have_attribute("title", name)
            if width == 360:
                assert cell.evaluate(parts, name) == [True, True], (address, width)
    answer = page.request.get("/kernels?as=tsv")
    assert name in answer.text()


@pytest.mark.full
def test_after_back_the_controls_say_what_is_shown(page: Page, world: World) -> None:
    page.goto("/kernels")
    shown = page.get_by_text(" row")
    whole = shown.first.inner_text()
    for words in (world.kernels[0].name, "nothing is called so"):
        page.wait_for_selector("html[data-ready]")
        box = page.locator("[data-filter-box]")
        box.fill(words)
        box.press("Enter")
        page.wait_for_url("**filter=**")
        expect(page.locator("[data-filter-box]")).to_have_value(words)
    page.go_back()
    expect(page.locator("[data-filter-box]")).to_have_value(world.kernels[0].name)
    page.go_back()
    expect(page.locator("[data-filter-box]")).to_have_value("")
    expect(shown.first).to_have_text(whole)


@pytest.mark.full
def test_alerts_are_sorted_and_filtered_by_columns_and_triaged_as_they_stand(
    page: Page, transactional_db: None
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    small, large, down = (made.alert() for _ in range(3))
    for alert, after in ((small, 105.0), (large, 150.0), (down, 80.0)):
        made.change(alert, 100.0, after)
    page.goto("/alerts")
    page.wait_for_selector("html[data-ready]")
    page.get_by_role("columnheader", name="Worst ratio").get_by_role("link").click()
    expect(page).to_have_url(re.compile(r"sort=-ratio"))
    rows = page.locator("#alerts tbody tr")
    for at, alert in enumerate((large, small, down)):
        expect(rows.nth(at)).to_have_id(f"alert-{alert.pk}")
    box = page.get_by_role("searchbox", name="Filter by columns")
    box.fill("ratio>1")
    box.press("Enter")
    expect(page.get_by_text("2 of 3 rows")).to_be_visible()
    expect(page).to_have_url(re.compile(r"sort=-ratio.*filter=ratio%3E1"))

    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("j")
    page.keyboard.press("a")
    expect(page.locator(f"#alert-{large.pk}")).to_contain_text("acknowledged")
    expect(rows).to_have_count(2)
    expect(rows.first).to_have_id(f"alert-{large.pk}")
    page.keyboard.press("c")
    expect(page.locator("[data-copied]")).to_have_text("2 rows copied")
    page.get_by_role("link", name="acknowledged 1").click()
    expect(page).to_have_url(re.compile(r"state=acknowledged"))
    expect(rows).to_have_count(1)


@pytest.mark.full
def test_a_list_of_series_keeps_its_words_beside_what_its_columns_are_asked(
    page: Page, transactional_db: None
) -> None:
    generated_histories(3)
    page.goto("/series")
    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("f")
    page.keyboard.type("kernel")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"words=kernel"))
    page.get_by_role("columnheader", name="Latest").get_by_role("link").click()
    expect(page).to_have_url(re.compile(r"words=kernel.*sort=-latest"))
    values = page.locator("#series tbody td[title$=' ns']")
    expect(values).to_have_count(3)
    figures = [float(str(one.get_attribute("title")).split()[0]) for one in values.all()]
    assert figures == sorted(figures, reverse=True)
    page.get_by_text("Columns", exact=True).click()
    page.get_by_role("checkbox", name="Metric").uncheck()
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("columnheader", name="Metric")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"words=kernel.*sort=-latest.*column=problem"))


@pytest.mark.full
def test_choices_with_long_names_stay_on_a_phone_s_screen(page: Page, world: World) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto("/kernels")
    choice = page.locator(".page-head select").first
    choice.evaluate("one => { one.options[0].textContent = 'NVIDIA H200, driver 580 '.repeat(9); }")
    box = choice.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 360
