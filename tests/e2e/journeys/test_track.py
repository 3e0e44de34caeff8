"""Tracking as a person does it: results are posted, an alert arrives wherever alerts do, its cause
is read, it is triaged, and a retune is started from it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from playwright.sync_api import Page, expect

from codegen_app.accounts.models import AuditEntry
from codegen_app.graphs.models import Graph
from codegen_app.graphs.services import imports as graphs
from codegen_app.kernels.models import KernelUse
from codegen_app.kernels.services import preparation
from codegen_app.tracking.models import (
    Alert,
    AlertEvent,
    AlertRun,
    AlertState,
    Change,
    Datum,
    Delivery,
    Series,
    Source,
)
from codegen_app.tracking.services import point_storage
from codegen_app.workers import work
from codegen_app.workers.models import State
from scheduler.results.points.model import Point, RevisionKey, SeriesKey
from tests.app import factories
from tests.app.workers.test_real_workers import Workers
from tests.support import pipeline
from tests.support.exported import gemm, write
from tests.support.receivers import HttpReceiver
from tests.support.said import fact, twin
from tests.support.tracked import NVIDIA

pytestmark = pytest.mark.long

PROBLEM = "flash attention"


def sent(rows: list[dict[str, Any]], registers: int, compiler: str) -> list[dict[str, Any]]:
    """The points with what their code took, and what made it."""
    resources = {"attention": {**NVIDIA, "registers": registers}}
    more = {"resources": resources, "toolchain_version": compiler}
    return [{**row, "conditions": {**row["conditions"], **more}} for row in rows]


def token_and_channel(page: Page, receiver: HttpReceiver) -> str:
    """A token for who sends results, and a webhook for whoever wants to hear of alerts."""
    page.goto("/tokens")
    page.get_by_label("Purpose").fill("nightly")
    page.get_by_role("button", name="Create token").click()
    token = page.locator("#token").inner_text().strip()
    page.goto("/channels")
    page.get_by_label("Name").fill("kernel team")
    page.get_by_label("Destination:").fill(receiver.url)
    page.get_by_role("button", name="Add channel").click()
    expect(page.locator("h1")).to_have_text("kernel team")
    return token


@pytest.fixture
def linear(page: Page, tmp_path: Path) -> KernelUse:
    """A problem of ours, with the kernel that it has by default: made before workers look."""
    graph, _ = graphs.import_graph(write(tmp_path / "linear.pt2", gemm()), "linear", [], None)
    held = work.claim_next(Graph.objects.filter(pk=graph.pk), "w")
    assert held is not None
    preparation.prepare(held)
    return KernelUse.objects.get(template_node__graph=graph, is_default=True)


def own_series(use: KernelUse) -> None:
    """It got slower at the same revision: imported, as from a host with a board."""
    problem = use.template_node.problem
    assert problem is not None
    key = SeriesKey(
        problem=str(problem), own=problem.digest, sizes={"s0": 16}, target="cpu",
        device="CPU emulation", toolchain="bundled", metric="time", unit="ns",
    )  # fmt: skip
    points = [
        Point(
            series=key,
            value=row["value"],
            measured_at=datetime.fromisoformat(row["measured_at"]),
            revision=revision_of(row),
            conditions=row["conditions"],
        )
        for row in (*pipeline.history(str(problem)), *pipeline.slower(str(problem)))
    ]  # fmt: skip
    # It moved less than what was posted: that stays the worst.
    points = [replace(one, value=one.value if n < pipeline.BEFORE else 0.9 * one.value)
              for n, one in enumerate(points)]  # fmt: skip
    build = factories.done_build(kernel=use.kernel)
    origin = point_storage.PointOrigin(problem.pk, use.kernel_id, build.pk)
    with transaction.atomic():
        point_storage.store(points, Source.IMPORT, origin=origin)


def revision_of(row: dict[str, Any]) -> RevisionKey:
    """That of a point as it is sent."""
    given = row["revision"]
    return RevisionKey(given["name"], datetime.fromisoformat(given["at"]))


def ratio_of(change: Change) -> str:
    """As pages write it."""
    return f"{change.ratio:.2f}"


def test_an_alert_arrives_is_understood_triaged_and_a_retune_started(
    page: Page, receiver: HttpReceiver, linear: KernelUse, tracker: Workers, live_server: Any
) -> None:
    token = token_and_channel(page, receiver)
    before = sent(pipeline.history(PROBLEM), registers=64, compiler="13.0")
    after = sent(pipeline.slower(PROBLEM), registers=128, compiler="13.1")
    pipeline.post(live_server.url, token, "before", before)
    pipeline.post(live_server.url, token, "after", after)

    # It arrives: webhook, overview, list, feed; each has the figures of the database.
    told = json.loads(receiver.next().body)
    alert, change = Alert.objects.get(), Change.objects.get()
    assert told["alert"]["url"] == f"{live_server.url}/alerts/{alert.pk}"
    [moved] = [one["change"] for one in told["series"]]
    assert moved["ratio_low"] == pytest.approx(change.low)
    assert (moved["n_before"], moved["n_after"]) == (change.n_before, change.n_after)
    tracker.wait(lambda: not Delivery.objects.filter(state="pending").exists(), "delivery noted")
    assert f"/alerts/{alert.pk}" in page.request.get("/alerts.atom").text()
    for address, row in (("/", f"#overview-alert-{alert.pk}"), ("/alerts", f"#alert-{alert.pk}")):
        page.goto(address)
        shown = page.locator(row)
        expect(shown).to_contain_text(f"r{pipeline.BEFORE}")
        expect(shown).to_contain_text(ratio_of(change))
        expect(shown).to_contain_text(re.compile(rf"{change.n_before}\D+{change.n_after}\b"))
        expect(shown).to_contain_text(change.cause)
    (listed,) = twin(page.request, "/alerts")["alerts"]
    assert listed["worst"]["ratio"] == pytest.approx(change.ratio)
    assert (listed["state"], listed["n_series"], listed["cause"]) == ("new", 1, change.cause)

    # Its cause is read: in a sentence, on both sides, in the history.
    page.locator(f"#alert-{alert.pk}").get_by_role("link", name=f"r{pipeline.BEFORE}").click()
    expect(page.locator("h1")).to_contain_text(f"r{pipeline.BEFORE}")
    expect(page.locator(".why strong").first).to_have_text(change.cause)
    expect(page.locator("#main")).to_contain_text(ratio_of(change))
    page.get_by_role("link", name="Both sides").first.click()
    sides = page.locator("#sides tr.differs")
    registers = sides.filter(has_text=re.compile(r"registers", re.IGNORECASE))
    expect(registers).not_to_have_count(0)
    expect(sides.filter(has_text="13.0").filter(has_text="13.1")).not_to_have_count(0)
    expect(page.locator("[data-history] .main-svg").first).to_be_visible()
    (own,) = Series.objects.all()
    page.get_by_role("link", name="History").first.click()
    expect(page.locator("h1")).to_contain_text(PROBLEM)
    expect(page.locator("[data-history] .main-svg").first).to_be_visible()
    count = pipeline.BEFORE + pipeline.AFTER
    expect(fact(page, "Points")).to_have_text(str(count))
    values = list(Datum.objects.filter(series=own).order_by("at").values_list("value", flat=True))
    assert len(values) == count
    csv = page.request.get(f"{own.get_absolute_url()}.csv").text().splitlines()
    assert len(csv) == count + 1
    page_twin = twin(page.request, own.get_absolute_url())
    assert page_twin["latest"]["value"] == pytest.approx(values[-1])
    assert [one["moved"]["id"] for one in page_twin["changes"]] == [change.pk]

    # A problem of ours moved at the same revision: the alert grows by it.
    own_series(linear)
    tracker.wait(lambda: Alert.objects.get().n_series == 2, "second series of the alert")
    page.goto(alert.get_absolute_url())
    expect(fact(page, "series")).to_have_text("2")
    expect(page.locator("#main")).to_contain_text(ratio_of(change))

    # Triage: by keys and by the form.
    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("m")
    expect(page.locator(".events")).to_contain_text("assigned to tuner")
    page.keyboard.press("n")
    page.keyboard.type("the new compiler takes twice the registers")
    page.keyboard.press("Enter")
    expect(page.locator(".events .remark").last).to_have_text(
        "the new compiler takes twice the registers"
    )
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.locator(".page-head")).to_contain_text("acknowledged")
    alert.refresh_from_db()
    assert alert.assignee is not None
    assert (alert.state, alert.assignee.username) == (AlertState.ACKNOWLEDGED, "tuner")

    # A retune, of the series that is ours.
    actions = page.locator("#alert-actions")
    expect(actions).to_contain_text("60 s per problem: 1 series")
    actions.get_by_role("button", name="Retune").click()
    link = actions.get_by_role("link", name="run ")
    expect(link).to_have_count(1)
    run = AlertRun.objects.get().run
    assert (run.state, run.target, run.bindings) == (State.QUEUED, "cpu", {"s0": 16})
    link.click()
    expect(page.locator("dl.facts").first).to_contain_text(f"alert {alert.pk}")
    expect(page.locator("#live progress")).to_have_js_property("value", 0)

    # Afterwards all of it says the same.
    page.goto("/alerts")
    row = page.locator(f"#alert-{alert.pk}")
    expect(row).to_contain_text("acknowledged")
    expect(row).to_contain_text("tuner")
    (listed,) = twin(page.request, "/alerts")["alerts"]
    assert (listed["state"], listed["n_series"], listed["assignee"]) == ("acknowledged", 2, "tuner")
    kinds = list(AlertEvent.objects.order_by("pk").values_list("kind", flat=True))
    assert kinds == ["raised", "grew", "assignee", "note", "state"]
    tuned = AuditEntry.objects.get(action="tune")
    assert tuned.actor is not None
    assert (tuned.actor.username, tuned.why) == ("tuner", f"alert {alert.pk}: {alert}")
    page.goto("/")
    expect(page.locator(f"#overview-alert-{alert.pk}")).to_contain_text("acknowledged")
    expect(page.locator(f"#run-{run.pk}")).to_contain_text("queued")
