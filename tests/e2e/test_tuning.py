"""Asking for a run, and putting an earlier choice back, as a person would."""

from __future__ import annotations

import pytest
from django.db import transaction
from playwright.sync_api import Page, expect

from codegen_app.accounts.models import AuditEntry
from codegen_app.graphs.models import Graph
from codegen_app.tuning.models import BenchmarkResult, Candidate, Selection, TuningRun
from codegen_app.tuning.services import selections
from codegen_app.workers.models import State
from tests.support.pages_world import World

pytestmark = pytest.mark.full


def test_a_node_is_tuned_within_a_budget(page: Page, world: World) -> None:
    Graph.objects.update(state=State.DONE)
    page.goto(world.nodes[0].get_absolute_url())
    page.get_by_role("link", name="Tune this node").click()
    expect(page.locator("h1")).to_have_text("Tune")
    expect(page.get_by_label("cpu", exact=True)).to_be_checked()
    page.get_by_label("Time per run").fill("soon")
    page.get_by_label("Reason").fill("the epilogue changed")
    page.get_by_role("button", name="Tune", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("soon")
    expect(page.get_by_label("Reason")).to_have_value("the epilogue changed")
    page.get_by_label("Time per run").fill("5m")
    page.get_by_role("button", name="Tune", exact=True).click()
    expect(page.locator("dl.facts").first).to_contain_text("300 s")
    expect(page.locator("dl.facts").first).to_contain_text("the epilogue changed")
    run = TuningRun.objects.order_by("-pk")[0]
    assert page.url.endswith(run.get_absolute_url())
    assert AuditEntry.objects.get(action="tune").why == "the epilogue changed"


def test_an_earlier_choice_is_put_back(page: Page, world: World) -> None:
    now = Selection.objects.get()
    other = Candidate.objects.exclude(kernel=now.kernel).filter(result__isnull=False).get()
    assert other.kernel is not None
    with transaction.atomic():
        assert selections.choose(now.bucket, other.kernel, "by hand", None)
    page.goto("/selections")
    serving = page.locator("#selections tbody tr")
    expect(serving).to_contain_text(other.kernel.name)
    serving.locator("summary").click()
    page.get_by_label("Reason").last.fill("it hangs")
    page.get_by_role("button", name="Restore").click()
    expect(page.locator(".callout.ok")).to_contain_text(f"{now.kernel.name} is selected again")
    assert Selection.objects.get(until__isnull=True).kernel == now.kernel


def test_times_of_one_decade_have_figures_at_their_axis(page: Page, world: World) -> None:
    fast = BenchmarkResult.objects.get(kernel=world.kernels[1])
    fast.low_ns, fast.median_ns, fast.high_ns = 108_000, 109_000, 110_000
    fast.save()
    page.goto(world.run.get_absolute_url())
    expect(page.locator(".chart .ytick text").first).to_be_visible()
