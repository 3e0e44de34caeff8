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
def test_the_account_is_told_from_the_link_to_the_admin(
    staff: Page, world: World, wide: int
) -> None:
    """Its name may be "admin" too: it has a mark and a line before it; the bar is one row."""
    User.objects.filter(username="tuner").update(username="admin")
    staff.set_viewport_size({"width": wide, "height": 800})
    staff.goto("/")
    bar = staff.locator(".topbar")
    account, admin = bar.locator("a.account"), bar.get_by_role("link", name="Admin", exact=True)
    expect(account).to_have_text("admin")
    expect(account.locator("svg")).to_be_visible()
    edge = account.evaluate("link => getComputedStyle(link).borderLeftWidth")
    assert edge == "1px"
    boxes = [each.bounding_box() for each in (admin, account, bar)]
    row, mark, whole = (box for box in boxes if box is not None)
    assert mark["x"] - (row["x"] + row["width"]) >= 6, "there is room between them"
    assert whole["height"] <= 41
    assert abs(row["y"] + row["height"] / 2 - mark["y"] - mark["height"] / 2) < 4


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
