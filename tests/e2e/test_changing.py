"""Changing: log in, import a file, watch a run, cancel it."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Permission, User
from django.utils import timezone
from playwright.sync_api import Page, expect

from codegen_app.graphs.models import Graph
from codegen_app.tuning.models import Candidate
from codegen_app.workers.models import State
from scheduler import samples
from tests.e2e.conftest import PATIENCE_MS
from tests.support.pages_world import World

pytestmark = pytest.mark.full


def test_log_in_and_import_a_model(anonymous: Page, transactional_db: None) -> None:
    user = User.objects.create_user("someone", password="secret-secret")
    user.user_permissions.add(Permission.objects.get(codename="import_graph"))
    page = anonymous
    page.goto("/import")
    page.get_by_label("Name").fill("someone")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("Wrong name or password")
    page.get_by_label("Name").fill("someone")
    page.get_by_label("Password").fill("secret-secret")
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("h1")).to_have_text("Import")

    page.get_by_label("File").set_input_files(samples.path("gpt2_2layer"))
    expect(page.locator(".drop output")).to_have_text("gpt2_2layer.pt2")
    page.get_by_role("button", name="Import").click()
    page.wait_for_url("**/graphs/*", timeout=3 * PATIENCE_MS)  # the file is read first
    expect(page.locator("h1")).to_have_text("gpt2_2layer")
    assert Graph.objects.get().name == "gpt2_2layer"
    expect(page.locator(".graph-view .node").first).to_be_visible()  # before it is prepared


def test_a_file_can_be_dropped(page: Page, transactional_db: None) -> None:
    page.goto("/import")
    page.wait_for_selector("html[data-ready]")
    page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(["no model"], "dropped.pt2"));
          document.querySelector("[data-drop]").dispatchEvent(
            new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
        }"""
    )
    expect(page.locator(".drop output")).to_have_text("dropped.pt2")


def test_a_run_is_watched_and_cancelled(page: Page, world: World) -> None:
    waiting = Candidate.objects.filter(state=State.REJECTED)
    waiting.update(state=State.QUEUED, stage="", reason="")
    page.goto(world.run.get_absolute_url())
    left = page.locator("dl.facts div", has_text="Waiting").locator("dd")
    expect(left).to_have_text("1")
    page.get_by_label("Filter the ledger").fill("rocm")
    page.keyboard.press("Escape")
    page.keyboard.press("j")

    Candidate.objects.filter(state=State.QUEUED).update(
        state=State.REJECTED, stage="crash", reason="SIGSEGV", finished_at=timezone.now()
    )
    expect(left).to_have_text("0")  # without a reload
    expect(page.locator("#ledger")).to_contain_text("SIGSEGV")
    expect(page.locator("tr[aria-selected=true]")).to_have_count(1)

    page.reload()
    expect(page.locator("#ledger")).to_contain_text("SIGSEGV")
    page.get_by_role("button", name="Cancel run").click()
    expect(page.locator("dl.facts").first).to_contain_text("cancelled")
    expect(page.locator("#live")).not_to_have_attribute("hx-get", re.compile("."))
    world.run.refresh_from_db()
    assert world.run.state == State.CANCELLED
