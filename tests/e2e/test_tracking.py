"""From a POST with a token to a webhook at a receiver: a real worker, and what a person sees."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from codegen_app.tracking.models import Alert, Change, Channel, Datum, Delivery
from tests.app.workers.test_real_workers import Workers
from tests.support import pipeline
from tests.support.receivers import HttpReceiver

pytestmark = pytest.mark.full


def test_a_post_becomes_an_alert_with_its_cause_and_a_signed_webhook(
    page: Page, receiver: HttpReceiver, tracker: Workers, live_server: Any
) -> None:
    page.goto("/tokens")
    page.get_by_label("Purpose").fill("CI on the GPU host")
    page.get_by_role("button", name="Create token").click()
    token = page.locator("#token").inner_text().strip()

    page.goto("/channels")
    expect(page.locator("main")).to_contain_text("No channels yet")
    page.get_by_label("Name").fill("kernel team")
    page.get_by_label("Destination:").fill(receiver.url)
    page.get_by_label("Only series").fill("attention h200")
    page.get_by_role("button", name="Add channel").click()
    expect(page.locator("h1")).to_have_text("kernel team")
    page.get_by_text("Show the key").click()
    key = page.locator("#key").inner_text().strip()

    page.get_by_role("button", name="Send a test").click()
    test = receiver.next()
    assert test.headers["kiln-event"] == "test"
    assert pipeline.is_genuine(key, test, timezone.now().timestamp())

    problem = "flash attention"
    pipeline.post(live_server.url, token, "before", pipeline.history(problem))
    pipeline.post(live_server.url, token, "after", pipeline.slower(problem))
    request = receiver.next()
    assert pipeline.is_genuine(key, request, timezone.now().timestamp())
    body = json.loads(request.body)
    assert (body["event"], body["alert"]["kind"], body["alert"]["cause"]) == (
        "raised",
        "regression",
        "code",
    )
    assert body["revision"]["name"] == f"r{pipeline.BEFORE}"
    [series] = body["series"]
    assert (series["problem"], series["device"]) == (problem, "NVIDIA H200")
    moved = series["change"]
    assert moved["ratio_low"] < 1.25 < moved["ratio_high"]
    assert moved["n_before"] > 2
    assert moved["n_after"] > 2

    alert, change = Alert.objects.get(), Change.objects.get()
    assert body["alert"]["url"] == f"{live_server.url}/alerts/{alert.pk}"
    assert (change.alert, change.datum.value) == (
        alert,
        Datum.objects.get(pk=change.datum_id).value,
    )
    delivery = Delivery.objects.get(event__isnull=False)
    tracker.wait(lambda: not Delivery.objects.filter(state="pending").exists(), "delivery noted")
    page.goto("/channels")
    row = page.locator(f"#delivery-{delivery.pk}")
    expect(row).to_contain_text("delivered")
    expect(row).to_contain_text("HTTP 204")
    expect(row.get_by_role("link", name="regression of")).to_have_attribute(
        "href", f"/alerts/{alert.pk}"
    )
    feed = page.request.get("/alerts.atom").text()
    assert f"{live_server.url}/alerts/{alert.pk}" in feed
    assert Channel.objects.get().deliveries.filter(state="delivered").count() == 2
