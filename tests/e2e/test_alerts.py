"""Triage in the browser: by keys, several at once, taken back; a threshold tried, then saved."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from codegen_app.tracking.alerting import triage
from codegen_app.tracking.models import Alert, AlertState, SeriesRule
from tests.support import alerts as made

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.full]


def states() -> list[str]:
    return list(Alert.objects.order_by("pk").values_list("state", flat=True))


def test_alerts_are_triaged_by_keys_and_taken_back(page: Page) -> None:
    rows = [made.alert() for _ in range(3)]  # the newest is listed first
    for row in rows:
        made.change(row)
    page.goto("/alerts")
    expect(page.locator(".topbar summary .count")).to_have_text("3")
    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("j")
    page.keyboard.press("a")
    first = page.locator(f"#alert-{rows[2].pk}")
    expect(first).to_contain_text("acknowledged")
    expect(first).to_have_attribute("aria-selected", "true")

    page.keyboard.press("s")  # tick it, and the next
    page.keyboard.press("j")
    page.keyboard.press("s")
    expect(page.locator("[data-ticked]")).to_have_text("2 alerts")
    page.keyboard.press("x")
    expect(page.locator(".callout[role=status]")).to_have_text("2 alerts: set to expected.")
    expect(page.locator("#alerts tbody tr")).to_have_count(1)
    left = page.locator(f"#alert-{rows[0].pk}")
    expect(left).to_have_attribute("aria-selected", "true")
    assert states() == ["new", "expected", "expected"]

    page.keyboard.press("z")
    expect(page.locator(".callout[role=status]")).to_contain_text("Undone: 2 alerts: expected")
    assert states() == ["new", "new", "acknowledged"]

    act = triage.set_state([rows[0].pk], AlertState.FIXED, User.objects.get(username="tuner"))
    page.reload()
    triage.set_state([rows[0].pk], AlertState.INVALID, User.objects.create_user("bob"))
    assert act.key is not None
    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("z")
    expect(page.locator(".callout.bad")).to_contain_text("was changed by bob")
    assert states()[0] == "invalid"


def test_a_note_is_written_and_the_keys_are_letters_there(page: Page) -> None:
    row = made.alert()
    made.change(row)
    page.goto(f"/alerts/{row.pk}")
    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("n")
    page.keyboard.type("axid on one host")
    page.keyboard.press("Enter")
    expect(page.locator(".events .remark")).to_have_text("axid on one host")
    assert states() == ["new"]
    page.keyboard.press("m")
    expect(page.locator(".events")).to_contain_text("assigned to tuner")


def test_a_threshold_is_tried_before_it_is_saved(page: Page) -> None:
    level = [100.0, 100.4, 99.8, 100.1, 99.7, 100.3] * 5
    row = made.series([*level, *(value * 1.02 for value in level)])
    page.goto(f"/series/{row.pk}/thresholds")
    expect(page.get_by_role("button", name="Save thresholds")).to_have_count(0)
    page.get_by_role("button", name="Dry run").click()
    expect(page.locator("#tried tbody tr")).to_contain_text("1.02")
    page.get_by_label("Minimum effect").fill("5")
    page.get_by_role("button", name="Dry run").click()
    expect(page.get_by_text("No changes, with the current or the new thresholds.")).to_be_visible()
    page.get_by_label("Reason for the thresholds").fill("the host is noisy")
    page.get_by_role("button", name="Save thresholds").click()
    expect(page.get_by_text("the host is noisy")).to_be_visible()
    assert SeriesRule.objects.get().least_effect == 0.05
