"""Pages that are open while others work: rows change where they are, and nothing jumps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.utils import timezone
from playwright.sync_api import Page, expect

from codegen_app.graphs.models import Graph
from codegen_app.tuning.models import TuningRun
from codegen_app.workers.models import State
from scheduler import samples
from tests.app import factories
from tests.e2e.conftest import PATIENCE_MS
from tests.support import alerts
from tests.support.pages_world import World, make_world

pytestmark = pytest.mark.full


def test_runs_change_in_their_places_and_new_ones_wait_for_a_click(
    page: Page, world: World
) -> None:
    page.goto("/runs")
    page.wait_for_selector("html[data-ready]")
    row = page.locator(f"#run-{world.run.pk}")
    expect(row).to_contain_text("running")
    row.evaluate("row => { row.isTheSame = true }")
    TuningRun.objects.update(state=State.DONE, finished_at=timezone.now())
    expect(row).to_contain_text("done")
    assert row.evaluate("row => row.isTheSame"), "its cells changed, the row did not move"

    new = TuningRun.objects.create(
        graph=world.graph, device="cpu", target="cpu", planned_at=timezone.now()
    )
    offer = page.get_by_role("button", name="1 new")
    expect(offer).to_be_visible()
    expect(page.locator(f"#run-{new.pk}")).to_have_count(0)
    top = row.bounding_box()
    offer.click()
    expect(page.locator(f"#run-{new.pk}")).to_be_visible()
    expect(offer).to_have_count(0)
    assert top is not None
    assert row.bounding_box()["y"] > top["y"]


def test_a_list_without_rows_fills_by_itself(page: Page, transactional_db: None) -> None:
    page.goto("/graphs")
    page.wait_for_selector("html[data-ready]")
    expect(page.get_by_text("No graphs yet.")).to_be_visible()
    factories.graph(name="the first")
    expect(page.get_by_role("link", name="the first")).to_be_visible()


def test_kernels_and_graphs_come_by_themselves(page: Page, world: World, code_cache: Path) -> None:
    page.goto("/graphs")
    page.wait_for_selector("html[data-ready]")
    make_world(code_cache, "other", layers=1, compiled=1)
    page.get_by_role("button", name="1 new").click()
    expect(page.get_by_role("link", name="other", exact=True)).to_be_visible()


def test_an_open_overview_keeps_its_graph_and_offers_the_newer_one(
    page: Page, world: World, code_cache: Path
) -> None:
    """Rows arrive, and the page even reloads (its first change): the graph stays the reader's,
    until they follow the offer."""
    summary = page.locator("section.summary")
    page.goto("/")
    page.wait_for_selector("html[data-ready]")
    expect(summary.get_by_role("heading", level=2)).to_have_text("tiny")
    make_world(code_cache, "other", layers=4, compiled=1)
    offer = summary.get_by_role("link", name="show other")
    expect(offer).to_be_visible(timeout=2 * PATIENCE_MS)
    expect(summary.get_by_role("heading", level=2)).to_have_text("tiny")
    alerts.change(None, 100.0, 130.0)
    expect(page.locator("#movers")).to_be_visible(timeout=2 * PATIENCE_MS)
    expect(summary.get_by_role("heading", level=2)).to_have_text("tiny")
    offer.click()
    expect(summary.get_by_role("heading", level=2)).to_have_text("other")
    expect(page).to_have_url(re.compile(r"/$"))


def test_an_import_shows_its_stages_and_leads_to_its_graph(
    page: Page, transactional_db: None
) -> None:
    page.goto("/import")
    page.wait_for_selector("html[data-ready]")
    page.get_by_label("File").set_input_files(
        {
            "name": "my model.pt2",
            "mimeType": "application/zip",
            "buffer": b"\x08\x08\x12\x07pytorch",
        }
    )
    recognized = page.get_by_label("What it is")
    expect(recognized).to_contain_text("This is an ONNX model.")
    expect(recognized).to_contain_text('torch.export.save(program, "model.pt2")')
    expect(page.get_by_role("button", name="Import")).to_be_hidden()
    page.get_by_label("File").set_input_files(samples.path("gpt2_2layer"))
    page.get_by_role("button", name="Import").click()
    page.wait_for_url("**/graphs/*", timeout=3 * PATIENCE_MS)  # the file is read first
    expect(page.locator("h1")).to_have_text("gpt2_2layer")
    graph = Graph.objects.get()
    stages = page.get_by_role("list", name="Progress")
    expect(stages).to_contain_text("queued for preparation")
    page.reload()
    expect(stages).to_contain_text("queued for preparation")
    Graph.objects.filter(pk=graph.pk).update(
        state=State.REJECTED, stage="rule", reason="an op that is not known"
    )
    expect(stages).to_contain_text("not prepared")  # without a reload
    expect(page.get_by_text("an op that is not known")).to_be_visible()


def test_who_is_logged_out_meanwhile_is_told_and_comes_back(page: Page, world: World) -> None:
    user = User.objects.get(username="tuner")
    page.goto("/runs?sort=-run#runs")
    page.wait_for_selector("html[data-ready]")
    Session.objects.all().delete()
    link = page.locator(".live-note").get_by_role("link", name="Log in")
    expect(link).to_be_visible()
    link.click()
    page.get_by_label("Name").fill(user.username)
    page.get_by_label("Password").fill("secret-secret")
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(re.compile(r"/runs\?sort=-run#runs$"))


def test_a_login_leads_back_to_the_line_that_was_asked_for(anonymous: Page, world: World) -> None:
    User.objects.create_user("someone", password="secret-secret")
    page, address = anonymous, f"{world.kernels[0].get_absolute_url()}?view=ptx#L12"
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    page.get_by_label("Name").fill("someone")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    page.wait_for_selector("html[data-ready]")
    page.get_by_label("Name").fill("someone")
    page.get_by_label("Password").fill("secret-secret")
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(re.compile(re.escape(address) + "$"))
