"""Numbers that a user can believe: what a figure says of itself, wherever it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from codegen_app.graphs.models import Problem, TemplateNode
from codegen_app.kernels.models import KernelUse
from codegen_app.tuning.models import (
    BenchmarkResult,
    Candidate,
    Environment,
    Selection,
    TuningRun,
    TuningTask,
)
from codegen_app.tuning.pages.runs.query import RunRow, run_rows
from codegen_app.tuning.services import candidate_results, selection_policy
from codegen_app.workers.models import State
from scheduler.benchmark.metrics import Metric
from scheduler.tuning.decision import decision_reason
from tests.app import factories
from tests.support.pages_world import World, make_world

# Heartbeats come over a connection of their own and must see the rows.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def world(code_cache: Path) -> World:
    """One node with two measured kernels, of which the default serves."""
    return make_world(code_cache, candidates=2, compiled=2)


def words(html: str) -> str:
    """A page's text, without its tags."""
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def row_of(run: TuningRun) -> RunRow:
    (row,) = run_rows(TuningRun.objects.filter(pk=run.pk))
    return row


def refused(task: object, count: int) -> None:
    """Configurations that a rule rejected: they were no work."""
    Candidate.objects.bulk_create(
        Candidate(
            task=task, position=100 + n, state=State.REJECTED, stage="rule", reason="too large"
        )
        for n in range(count)
    )  # fmt: skip


def test_refusals_by_a_rule_are_no_progress() -> None:
    task = factories.task()
    refused(task, 30)
    for _ in range(4):
        factories.candidate(task)
    assert row_of(task.run).share == 0.0, "nothing was tried yet"
    Candidate.objects.filter(task=task, position=30).update(
        state=State.REJECTED, stage="compile", reason="it does not compile"
    )
    assert row_of(task.run).share == 0.25
    assert row_of(task.run).share_in_words == "25 % of the work is done"


def test_a_run_that_searches_is_as_far_as_its_budget() -> None:
    task = factories.task()
    TuningRun.objects.update(max_measurements=8)
    refused(task, 30)
    rejected = {"state": State.REJECTED, "stage": "check", "reason": "wrong"}
    for _ in range(2):
        factories.candidate(task, **rejected)
    assert row_of(task.run).share == 0.25
    TuningRun.objects.update(max_measurements=None, budget_s=100)
    type(task).objects.update(spent_s=40)
    assert row_of(task.run).share == 0.4


def test_a_cancelled_run_is_not_full(reader: Client) -> None:
    task = factories.task()
    refused(task, 30)
    for n in range(4):
        dropped = {"state": State.CANCELLED, "reason": "the run was cancelled"}
        wrong = {"state": State.REJECTED, "stage": "check", "reason": "wrong"}
        factories.candidate(task, **(dropped if n else wrong))
    TuningRun.objects.update(state=State.CANCELLED, finished_at=timezone.now())
    row = row_of(task.run)
    assert (row.share, row.share_in_words) == (0.25, "cancelled: 25 % of the work is done")
    for address in ("/runs", row.url, "/"):
        assert (
            'aria-label="cancelled: 25 % of the work is done"'
            in reader.get(address).content.decode()
        )
    TuningRun.objects.update(state=State.DONE)
    assert row_of(task.run).share == 1.0, "what the budget left untried is not left"


def test_a_single_sample_has_no_interval(reader: Client, world: World) -> None:
    result = BenchmarkResult.objects.get(kernel=world.kernels[0])
    result.samples_ns = [120_267.0]
    result.median_ns = result.low_ns = result.high_ns = 120_267.0
    result.save()
    for url in (
        world.run.get_absolute_url(),
        world.nodes[0].get_absolute_url(),
        f"{world.kernels[0].get_absolute_url()}?tab=results",
        "/selections",
    ):
        html = reader.get(url).content.decode()
        assert "n/a (one sample)" in html, url
        assert "120.3 \N{EN DASH} 120.3" not in html, url
    twin = reader.get(f"{world.run.get_absolute_url()}.json").json()
    (row,) = (row for row in twin["ledger"] if row["kernel"] == world.kernels[0].name)
    assert (row["median_ns"], row["low_ns"], row["high_ns"]) == (120_267.0, None, None)
    assert row["metrics"]["time"]["low"] is None
    assert not Metric(1.0, 1.0, 1.0, "ns", 1).bounds


def test_what_decided_among_those_that_tie() -> None:
    assert decision_reason(0, is_default=True, samples=9) == ""
    assert decision_reason(2, is_default=True, samples=9).endswith(
        "2 others: default kept, since none is shown to be faster"
    )
    assert "first by name" in decision_reason(1, is_default=False, samples=9)
    assert "without an interval" in decision_reason(0, is_default=False, samples=1)


def retuned(
    world: World, medians: dict[int, float], environment: Environment | None = None
) -> TuningRun:
    """Another run of the world's first problem, as a worker records one: a median of each kernel by
    its place, with five samples around it."""
    before = world.run.tasks.get()
    run = TuningRun.objects.create(
        graph=world.graph, device="cpu", target="cpu", bindings={"s0": 16},
        state=State.DONE, planned_at=timezone.now(), finished_at=timezone.now(),
    )  # fmt: skip
    task = TuningTask.objects.create(
        run=run, problem=before.problem, template_node=before.template_node, state=State.DONE,
        title="linear(16x64, 64x64) f32",
    )  # fmt: skip
    rows = []
    for place, median in medians.items():
        build = world.kernels[place].builds.get(target="gfx942")
        result = factories.result(
            build, median, problem=before.problem, bindings={"s0": 16}, task=task, emulated=True,
            environment=environment or Environment.objects.get(device_name="CPU emulation"),
            samples_ns=[median * part for part in (0.98, 0.99, 1.0, 1.01, 1.02)],
            low_ns=median * 0.98, high_ns=median * 1.02,
        )  # fmt: skip
        rows.append(
            factories.candidate(
                task, build=build, result=result, position=place, state=State.DONE,
                finished_at=timezone.now(), config=build.kernel.config,
            )
        )  # fmt: skip
    chosen = min(rows, key=lambda row: row.result.median_ns)
    with transaction.atomic():
        candidate_results.choose(chosen, chosen.result, [])
    return run


def serving_everywhere(reader: Client, world: World) -> dict[str, tuple[str, float, int]]:
    """Kernel, median and n of what serves the first problem, as each page's twin says it."""
    node = world.nodes[0].get_absolute_url()
    selected = reader.get("/selections.json").json()["buckets"]
    (choice,) = (one["serving"] for one in selected if one["device_name"] == "CPU emulation")
    (row,) = (one for one in reader.get(f"{node}.json").json()["candidates"] if one["selected"])
    graph = reader.get(f"{world.graph.get_absolute_url()}.json").json()
    first = graph["scheduled"][0]["serving"]
    return {
        "selections": (choice["kernel"], choice["median_ns"], choice["metrics"]["time"]["n"]),
        "node": (row["kernel"], row["timing"]["median_ns"], row["timing"]["metrics"]["time"]["n"]),
        "graph": (first["kernel"], first["median_ns"], first["metrics"]["time"]["n"]),
    }


def best_of(reader: Client, run: TuningRun) -> dict[str, object]:
    (best,) = reader.get(f"{run.get_absolute_url()}.json").json()["best"]
    return best


def test_after_a_retune_every_page_has_one_choice_and_one_measurement(
    reader: Client, world: World
) -> None:
    """The same kernel is the fastest again, with another time."""
    run = retuned(world, {0: 118_000.0, 1: 140_000.0})
    name = world.kernels[0].name
    found = serving_everywhere(reader, world)
    assert set(found.values()) == {(name, 118_000.0, 5)}, found
    best = best_of(reader, run)
    assert (best["kernel"], best["median_ns"], best["serves"]) == (name, 118_000.0, True)
    assert best["reason"] == "already selected"
    graph = reader.get(world.graph.get_absolute_url()).content.decode()
    node = reader.get(world.nodes[0].get_absolute_url()).content.decode()
    selections = reader.get("/selections").content.decode()
    page = reader.get(run.get_absolute_url()).content.decode()
    for html in (graph, node, selections, page):
        assert "118.0" in html
    log = reader.get(reverse("run_log", args=[run.pk])).content.decode()
    assert f"{name} 0.1180 ms" in log


def test_a_winner_takes_over_everywhere_at_once(reader: Client, world: World) -> None:
    run = retuned(world, {0: 120_000.0, 1: 90_000.0})
    found = serving_everywhere(reader, world)
    assert set(found.values()) == {(world.kernels[1].name, 90_000.0, 5)}, found
    best = best_of(reader, run)
    assert best["serves"]
    assert str(best["reason"]).startswith(f"replaces {world.kernels[0].name}: 90 µs (")
    rival = "120 µs (range 117.6 µs \N{EN DASH} 122.4 µs, n 5)"
    assert f"vs. {rival}, both in this run" in str(best["reason"])
    before = best_of(reader, world.run)
    assert (before["chosen"], before["serves"]) == (True, False)
    (use,) = reader.get(f"{run.get_absolute_url()}.json").json()["uses"]
    assert (use["graph"], use["nodes"], use["bundle"]) == (world.graph.name, 1, None)
    assert use["pack_url"] == "", "emulated times select nothing in a bundle"
    assert not reader.get(f"{world.run.get_absolute_url()}.json").json()["uses"]


def test_a_fastest_candidate_that_did_not_take_over_says_why(reader: Client, world: World) -> None:
    run = retuned(world, {0: 120_000.0, 1: 118_000.0})
    present = world.kernels[0].name
    found = serving_everywhere(reader, world)
    assert set(found.values()) == {(present, 120_000.0, 5)}, found
    best = best_of(reader, run)
    assert (best["kernel"], best["chosen"], best["serves"]) == (
        world.kernels[1].name, True, False,
    )  # fmt: skip
    why = f"does not replace {present}: within the noise, 118 µs ("
    assert str(best["reason"]).startswith(why)
    assert why in reader.get(run.get_absolute_url()).content.decode()


def test_times_under_another_driver_are_not_compared(reader: Client, world: World) -> None:
    Environment.objects.update(driver="6.1")
    other = factories.environment(
        device="cpu", device_name="CPU emulation", target="cpu", driver="6.2", emulated=True
    )
    run = retuned(world, {1: 60_000.0}, other)
    assert str(best_of(reader, run)["reason"]) == (
        f"does not replace {world.kernels[0].name}: not measured in this run, only earlier"
        " under other conditions (driver 6.1 → 6.2)"
    )
    assert {one[0] for one in serving_everywhere(reader, world).values()} == {world.kernels[0].name}
    run = retuned(world, {0: 70_000.0, 1: 60_000.0}, other)
    assert "both in this run" in str(best_of(reader, run)["reason"])
    assert {one[0] for one in serving_everywhere(reader, world).values()} == {world.kernels[1].name}


def test_a_kernel_that_this_run_rejected_gives_way(world: World) -> None:
    task = factories.task(run=world.run)
    assert task.problem is not None
    result = BenchmarkResult.objects.get(kernel=world.kernels[1])
    result.task = world.run.tasks.get(problem=result.problem)
    Candidate.objects.filter(task=result.task, kernel=world.kernels[0]).update(
        state=State.REJECTED, stage="check", reason="wrong: error 1", result=None
    )
    is_better, why = selection_policy.compare(result, Selection.objects.get())
    assert is_better
    assert why.endswith("which this run rejected: wrong: error 1")


def test_a_kernel_whose_time_doubled_says_so(reader: Client, world: World) -> None:
    Environment.objects.update(driver="6.1")
    before = retuned(world, {0: 118_000.0})
    other = factories.environment(
        device="cpu", device_name="CPU emulation", target="cpu", driver="6.2", emulated=True
    )
    retuned(world, {0: 236_000.0}, other)
    title = "118.0 µs (range 115.6 \N{EN DASH} 120.4, n 5)"
    for url in (
        world.graph.get_absolute_url(),
        world.nodes[0].get_absolute_url(),
        "/selections",
    ):
        html = reader.get(url).content.decode()
        assert f"\N{MULTIPLICATION SIGN}2.00 since run {before.pk}" in html, url
        assert title in html, url
        assert "driver 6.1 → 6.2" in html, url
    retuned(world, {0: 238_000.0}, other)
    assert "since run" not in reader.get("/selections").content.decode(), "within the noise"


def test_a_graphs_figures_say_their_sizes_and_their_coverage(reader: Client, world: World) -> None:
    """The first node is measured at s0=16, the example has 64; a second problem has no time."""
    problem = Problem.objects.create(
        digest=factories.digest(), kind="attention", op="sdpa", summary="", text="t"
    )
    node = TemplateNode.objects.create(
        graph=world.graph, problem=problem, position=1, name="op1", kind="attention", op="sdpa"
    )
    KernelUse.objects.create(
        kernel=factories.kernel(), template_node=node, position=0, is_default=True
    )
    html = words(reader.get(world.graph.get_absolute_url()).content.decode())
    assert "s0 (example) 64 (2 … any)" in html
    assert "Sizes s0=16" in html
    assert "Measured on CPU emulation" in html
    assert "Measured nodes 1 of 2 Not measured 1 attention" in html
    assert "120.0 µs Sum of medians, 1 of 2 nodes" in html
    assert "Share % of 1" in html
    twin = reader.get(f"{world.graph.get_absolute_url()}.json").json()
    assert (twin["measured"]["measured"], twin["measured"]["with_kernel"]) == (1, 2)
    assert twin["total_ns"] == 120_000.0


@pytest.mark.parametrize("address", ["/", "/graphs"])
def test_measured_nodes_are_the_same_on_every_page(
    reader: Client, world: World, address: str
) -> None:
    twin = reader.get("/overview.json" if address == "/" else f"{address}.json").json()
    (listed,) = twin["graphs"]
    own = reader.get(f"{world.graph.get_absolute_url()}.json").json()
    assert listed["measured"] == own["measured"]
    assert listed["measured"]["measured"] == 1
    html = words(reader.get(address).content.decode())
    assert "Measured nodes" in html
    assert "1 of 1 emulated" in html


def test_refusals_are_those_of_the_target_that_is_shown(reader: Client, world: World) -> None:
    """A line of two targets that have the same reason, and one that is about another target."""
    node = world.nodes[0]
    line = {"template": "gemm", "config": {"block": 512}, "stage": "rule", "detail": ""}
    node.rejected = [
        line | {"reason": "too few rows", "targets": ["gfx942", "gfx1030"]},
        line | {"reason": "more than the 144 of gfx1030", "targets": ["gfx1030"]},
    ]
    node.legal = {"gfx942": 1234, "gfx1030": 900}
    node.save()
    html = words(reader.get(node.get_absolute_url()).content.decode())
    assert "by the rules of gfx942" in html
    assert "configurations on gfx942: 1 234 legal, 1 illegal" in html
    assert "the 144 of" not in html
    other = words(reader.get(node.get_absolute_url(), {"target": "gfx1030"}).content.decode())
    assert "more than the 144 of gfx1030" in other
    assert "configurations on gfx1030: 900 legal, 2 illegal" in other
    graph = reader.get(f"{world.graph.get_absolute_url()}.json").json()
    assert (graph["target"], graph["scheduled"][0]["not_legal"]) == ("gfx942", 1)
