"""Retuning as a person does it: a model is imported, a run is started, watched, another takes over,
is rolled back, and one is cancelled midway; after each step all pages say the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import transaction
from playwright.sync_api import Page, expect

from codegen_app.accounts.models import AuditEntry
from codegen_app.graphs.models import Graph, TemplateNode
from codegen_app.tuning.models import BenchmarkResult, Candidate, Selection, TuningRun
from codegen_app.tuning.queries.measurements import MIN_SAMPLES
from codegen_app.tuning.services import selections
from codegen_app.workers.models import State
from tests.app.workers.test_real_workers import COMPILING, MEASURING, Workers
from tests.support import pipeline
from tests.support.exported import gemm, write
from tests.support.said import (
    choice_of,
    fact,
    ledger_of,
    log_of,
    pages_say,
    shows,
    twin,
    twins_say,
)

pytestmark = pytest.mark.long

ATTEMPTS = 4

# What the progress says whenever the page is news: kept from its first word to its last.
WATCH = """() => {
  const told = [];
  const look = () => told.push((document.querySelector("#live progress") ?? {value: 1}).value);
  look();
  new MutationObserver(look).observe(document.querySelector("main"), {childList: true});
  window.toldProgress = told;
}"""


@pytest.fixture
def workers(
    tmp_path: Path, live_server: object, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workers]:
    """Beside the site, none begun yet."""
    pipeline.send_by_the_database(monkeypatch)
    made = Workers(tmp_path, "database://localhost")
    yield made
    made.kill()


def imported(page: Page, workers: Workers, file: Path) -> TemplateNode:
    """A model of one kernel, by the page for it, prepared by a worker."""
    workers.start_one(COMPILING)
    page.goto("/import")
    page.wait_for_selector("html[data-ready]")
    page.get_by_label("File", exact=True).set_input_files(file)
    page.get_by_role("button", name="Import").click()
    page.wait_for_url("**/graphs/*")
    workers.wait(Graph.objects.filter(state=State.DONE).exists, "prepared graph")
    return TemplateNode.objects.get(problem__isnull=False)


def asked(page: Page, why: str, time: str) -> TuningRun:
    """The form for a run is filled in and sent; its page is what follows."""
    expect(page.locator("h1")).to_have_text("Tune")
    expect(page.locator('[name="target"][value="cpu"]')).to_be_checked()
    page.get_by_label("Time per run").fill(time)
    page.get_by_label("Sizes").fill("s0=64")
    page.get_by_label("Reason").fill(why)
    page.get_by_role("button", name="Tune", exact=True).click()
    expect(page.locator("dl.facts").first).to_contain_text(why)
    run = TuningRun.objects.latest("pk")
    assert page.url.endswith(run.get_absolute_url())
    assert AuditEntry.objects.filter(action="tune").latest("pk").why == why
    return run


def over(page: Page, run: TuningRun) -> None:
    """The page says by itself that the run is done, and its progress never fell."""
    expect(page.locator("#live .status.done, #live .status").first).to_contain_text("done")
    told = page.evaluate("window.toldProgress")
    assert told == sorted(told)
    assert told[-1] == 1
    run.refresh_from_db()
    assert run.state == State.DONE


def taken_over(page: Page, run: TuningRun, former: BenchmarkResult) -> TuningRun:
    """The run that found better than ``former``, asked for again where the times of one were too
    restless to tell, as a person does."""
    for _ in range(ATTEMPTS):
        page.goto(run.get_absolute_url())
        page.get_by_role("link", name="Tune again").click()
        run = asked(page, "the choice by hand is slow", "")
        page.evaluate(WATCH)
        over(page, run)
        if Selection.objects.get(until=None).kernel != former.kernel:
            break
    return run


def holds_together(page: Page, run: TuningRun) -> None:
    """A run's page, twin, ledger and log have the medians that the database has."""
    rows = Candidate.objects.filter(task__run=run, result__isnull=False)
    kept = {
        row.kernel.name: row.result.median_ns
        for row in rows.select_related("kernel", "result")
        if row.kernel and row.result
    }
    assert kept
    listed = twin(page.request, run.get_absolute_url())["ledger"]
    assert {row["kernel"]: row["median_ns"] for row in listed if row["median_ns"]} == kept
    facts, *lines = ledger_of(page.request, run)
    assert (facts["run"], facts["state"]) == (run.pk, run.state)
    measured = {one["kernel"]: one["measurement"] for one in lines if one["measurement"]}
    assert {kernel: one["median_ns"] for kernel, one in measured.items()} == kept
    log = log_of(page.request, run)
    assert {name: f"{ns / 1e6:.4f}" for name, ns in kept.items()} == {
        name: f"{ms:.4f}" for name, ms in log.items()
    }
    page.goto(run.get_absolute_url())
    expect(fact(page, "Measured")).to_have_text(str(len(kept)))


def test_a_run_is_watched_takes_over_is_rolled_back_and_another_is_cancelled(
    page: Page, workers: Workers, tmp_path: Path
) -> None:
    node = imported(page, workers, write(tmp_path / "linear.pt2", gemm()))
    graph = node.graph

    # Every candidate that was recorded: nothing served before.
    page.goto(node.get_absolute_url())
    page.get_by_role("link", name="Tune this node").click()
    first = asked(page, "what is here is only the default", "")
    page.evaluate(WATCH)
    workers.start_one(MEASURING)
    over(page, first)
    expect(page.locator("#best tbody tr")).to_contain_text("selected")
    serving = Selection.objects.get(until=None)
    assert serving.result is not None
    assert serving.reason == f"fastest in run {first.pk}"
    fastest = choice_of(serving.result)
    assert set(twins_say(page.request, graph, node).values()) == {fastest}
    holds_together(page, first)
    pages_say(page, graph, node, fastest)

    # Somebody chose the slowest by hand; a run of the same finds better and takes over.
    slowest = BenchmarkResult.objects.order_by("-low_ns")[0]
    assert slowest.low_ns > serving.result.median_ns, "the candidates differ"
    with transaction.atomic():
        assert selections.choose(serving.bucket, slowest.kernel, "by hand", None)
    pages_say(page, graph, node, choice_of(slowest))
    second = taken_over(page, first, slowest)
    best = page.locator("#best tbody tr")
    expect(best).to_contain_text(f"replaces {slowest.kernel.name}")
    expect(best.get_by_text("selected", exact=True)).to_be_visible()
    serving = Selection.objects.get(until=None)
    assert serving.result is not None
    winner = choice_of(serving.result)
    shows(best, winner)
    assert set(twins_say(page.request, graph, node).values()) == {winner}
    holds_together(page, second)
    pages_say(page, graph, node, winner)

    # It is put back, and all pages say that, with the latest measurement of what serves again.
    page.goto(second.get_absolute_url())
    page.get_by_text("Put back the 1 replaced kernel").click()
    page.locator("details[open]").get_by_label("Reason").fill("the new one hangs")
    page.get_by_role("button", name="Put back").click()
    expect(page.locator(".callout.ok")).to_contain_text(f"Selected again: {slowest.kernel.name}")
    serving = Selection.objects.get(until=None)
    assert (serving.kernel, serving.reason) == (slowest.kernel, "put back: the new one hangs")
    assert AuditEntry.objects.get(action="put back").why == "the new one hangs"
    again = choice_of(_counting(serving))
    assert set(twins_say(page.request, graph, node).values()) == {again}
    pages_say(page, graph, node, again)
    page.goto(second.get_absolute_url())
    expect(page.locator("#best").get_by_text("selected", exact=True)).to_have_count(0)

    # A search of ten minutes is cancelled once something was measured: that stays.
    page.get_by_role("link", name="Tune again").click()
    third = asked(page, "a longer search", "10m")
    expect(page.locator("#best tbody tr")).to_have_count(1)
    page.locator("#cancel-run").get_by_label("Reason").fill("the board is needed")
    page.get_by_role("button", name="Cancel run").click()
    expect(page.locator("#live .status").first).to_contain_text("cancelled")
    share = float(page.locator("#live progress").get_attribute("value") or "nan")
    assert 0 < share < 1
    assert AuditEntry.objects.get(action="cancel").why == "the board is needed"
    workers.wait(
        lambda: not Candidate.objects.filter(task__run=third, state=State.RUNNING).exists(),
        "end of what was being measured",
    )
    third.refresh_from_db()
    assert third.state == State.CANCELLED
    holds_together(page, third)
    expect(page.locator("#best tbody tr")).to_have_count(1)
    pages_say(page, graph, node, choice_of(_counting(serving)))


def _counting(serving: Selection) -> BenchmarkResult:
    """The latest measurement of the selected kernel with enough samples to compare, as on pages:
    a search that is cancelled may have screened the kernel with two."""
    results = BenchmarkResult.objects.filter(kernel=serving.kernel)
    return max(results, key=lambda row: (len(row.samples_ns) >= MIN_SAMPLES, row.created_at))
