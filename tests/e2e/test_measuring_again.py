"""From an alert, by one press each: measured again by a real worker, and tuned again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from codegen_app.tracking.models import AlertRun, Datum, Source
from codegen_app.workers.models import State, Worker
from tests.app.workers.test_real_workers import MEASURING, Workers
from tests.support import pipeline
from tests.support.own_alert import own_alert

pytestmark = pytest.mark.full


@pytest.fixture
def worker(
    tmp_path: Path, live_server: object, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workers]:
    """One that measures, beside the site."""
    made = Workers(tmp_path, "database://localhost")
    yield made
    made.kill()


def test_an_alert_is_measured_and_tuned_again_by_one_press_each(
    page: Page, worker: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    alert = own_alert(monkeypatch)
    page.goto(alert.get_absolute_url())
    actions = page.locator("#alert-actions")
    expect(actions).to_contain_text("start one")
    expect(actions.get_by_role("button", name="Re-measure")).to_be_disabled()

    pipeline.send_by_the_database(monkeypatch)
    worker.start_one(MEASURING)
    worker.wait(Worker.objects.filter(devices__0__target__isnull=False).exists, "sign of life")
    page.reload()
    actions.get_by_role("button", name="Re-measure").click()
    expect(actions).to_contain_text("After / before, measured alternately", timeout=120_000)
    expect(actions.locator("tbody tr")).to_have_count(2)
    again = Datum.objects.filter(source=Source.AGAIN)
    assert {one.revision.name for one in again} == {"first", "second"}

    actions.get_by_role("button", name="Retune").click()
    run = actions.get_by_role("link", name="run ")
    expect(run).to_have_count(1)
    asked = AlertRun.objects.get().run
    assert asked.state == State.QUEUED
    expect(run).to_have_attribute("href", asked.get_absolute_url())
    actions.get_by_role("button", name="Retune").click()
    expect(page.get_by_role("status")).to_be_visible()
    expect(run).to_have_count(1)
    assert AlertRun.objects.count() == 1, "pressed twice, one run"
