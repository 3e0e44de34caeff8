"""The admin in a browser: nothing that the policy forbids, both themes, phones too."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from codegen_app.accounts.models import AuditEntry
from codegen_app.tuning.models import RetuneSchedule
from codegen_app.workers.models import State
from tests.support.pages_world import World

pytestmark = pytest.mark.full


@pytest.fixture
def staff(page: Page) -> Page:
    """Somebody who may do everything there."""
    User.objects.filter(username="tuner").update(is_staff=True, is_superuser=True)
    return page


@pytest.mark.parametrize("wide", [1100, 1400])
def test_the_bar_of_staff_is_one_row_and_leads_to_the_admin(
    staff: Page, world: World, wide: int
) -> None:
    staff.set_viewport_size({"width": wide, "height": 800})
    staff.goto("/runs")
    bar = staff.locator(".topbar")
    box = bar.bounding_box()
    assert box is not None
    assert box["height"] <= 41
    expect(bar.locator("a.account svg")).to_be_visible()
    bar.locator("summary", has_text="Site").click()
    bar.get_by_role("link", name="Admin").click()
    expect(staff.locator(".topbar summary[aria-current]")).to_contain_text("Site")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lists_and_forms_are_of_the_theme_and_no_wider_than_the_screen(
    staff: Page, world: World, theme: str
) -> None:
    staff.emulate_media(color_scheme=theme)
    surface = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}[theme]
    run = f"codegen_app/tuningrun/{world.run.pk}/change/"
    for address in ("", "codegen_app/build/", run, "codegen_app/retuneschedule/add/"):
        for wide in (1400, 390):
            staff.set_viewport_size({"width": wide, "height": 800})
            staff.goto(f"/admin/{address}")
            staff.wait_for_selector("html[data-ready]")
            found = staff.evaluate("getComputedStyle(document.body).backgroundColor")
            assert found == surface, address
            width = staff.evaluate("document.documentElement.scrollWidth")
            assert width <= wide, (address, wide)


def test_a_run_is_cancelled_with_a_reason(staff: Page, world: World) -> None:
    staff.goto("/admin/codegen_app/tuningrun/")
    staff.locator(".action-select").first.check()
    staff.locator("select[name=action]").select_option("cancel")
    staff.get_by_label("Reason").fill("the host is needed")
    staff.get_by_role("button", name="Go").click()
    expect(staff.get_by_text("1 run is cancelled.")).to_be_visible()
    world.run.refresh_from_db()
    assert world.run.state == State.CANCELLED
    assert AuditEntry.objects.get(action="cancel").why == "the host is needed"


def test_a_schedule_is_made_with_what_the_form_begins_with(staff: Page, world: World) -> None:
    staff.goto("/admin/codegen_app/retuneschedule/add/")
    staff.locator(".field-graph .select2-selection").click()
    staff.locator(".select2-search__field").fill("tin")
    staff.get_by_role("option", name="tiny").click()
    staff.get_by_role("button", name="Save", exact=True).click()
    expect(staff.get_by_text("was added successfully")).to_be_visible()
    row = RetuneSchedule.objects.get()
    assert (row.graph, row.target, row.device) == (world.graph, "cpu", "cpu")
