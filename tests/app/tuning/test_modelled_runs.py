"""Runs on a modelled device: done without a GPU, called modelled everywhere, measured nowhere."""

from __future__ import annotations

import functools
import json

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from codegen_app.graphs.models import Graph
from codegen_app.kernels.services import engine, remote_builds
from codegen_app.tracking.models import Datum
from codegen_app.tuning.models import BenchmarkResult, Candidate, Selection, TuningRun, TuningTask
from codegen_app.tuning.pages.node.query import node_page
from codegen_app.tuning.pages.run.query import run_page
from codegen_app.tuning.queries.ledger import run_ledger, run_log
from codegen_app.tuning.services import (
    ledger,
    measurement_tasks,
    modelled_tuning,
    planning,
    retuning,
    run_requests,
)
from codegen_app.workers import work
from codegen_app.workers.models import State
from scheduler import targets
from scheduler.cycles.report import Band
from scheduler.errors import UserError
from scheduler.tuning.budget import Budget
from scheduler.tuning.modelled.workers import ModelWorkers
from scheduler.tuning.modelled_time import ModelledTime, to_json
from scheduler.tuning.problems import find_problems
from tests.app import factories

DEVICE = "model:MI300X"


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> Graph:
    """Prepared; nothing compiled. There are no workers: builds are done beside the tuner, and the
    model gives a microsecond a line of the listing."""
    monkeypatch.setattr(remote_builds, "_UNCLAIMED_AFTER_S", 0.0)
    fake = functools.partial(ModelWorkers, model="tests.support.fake_models:quick")
    monkeypatch.setattr(modelled_tuning, "ModelWorkers", fake)
    return factories.prepared_graph()


def start(graph: Graph, device: str = "model:gfx942", **limits: float) -> TuningRun:
    node = factories.small_node(graph)
    least = {name: info["min"] for name, info in graph.symbols.items()}
    run = run_requests.start_run(
        graph, device, "gfx942", least, None, template_node=node, budget=Budget(**limits)
    )
    assert planning.plan_waiting() == 1
    return run


def claimed(run: TuningRun) -> TuningTask:
    task = work.claim_next(ledger.ready_tasks(ledger.MODELLED).filter(run=run), "w")
    assert task is not None
    return task


@pytest.mark.full
@pytest.mark.django_db(transaction=True)
def test_a_run_without_a_gpu_is_called_modelled_and_measures_nothing(
    graph: Graph, reader: Client
) -> None:
    run = start(graph, measurements=3)
    assert run.device == DEVICE, "the target's reference board"
    assert not ledger.ready_tasks("gfx942").exists(), "whoever has a GPU is not asked"
    measurement_tasks.run_task(claimed(run))
    run.refresh_from_db()
    assert (run.state, run.tasks.get().state) == (State.DONE, State.DONE)

    tried = Candidate.objects.filter(task__run=run, modelled__isnull=False)
    assert tried.filter(state=State.DONE).count() == 3
    assert tried.filter(chosen=True).count() == 1
    assert {row.modelled["device"] for row in tried} == {DEVICE}
    assert all(row.modelled["checked_at"] for row in tried), "by the emulation"
    assert not BenchmarkResult.objects.exists()
    assert not Selection.objects.exists()
    assert not Datum.objects.exists()

    page = run_page(run.pk)
    assert page.run.modelled and page.kind == "modelled"
    assert page.best[0].modelled is not None and page.best[0].chosen
    assert page.best[0].median_ns is None
    (curve,) = page.curves
    assert curve.points
    text = reader.get(run.get_absolute_url()).content.decode()
    assert text.count(">modelled</span>") >= 4
    before_explorer = text.partition("data-explorer")[0]
    assert "Median" not in before_explorer and "Interval" not in text
    assert "Measured" not in text.partition("<footer")[0]
    assert "time (modelled)" in text
    assert "modelled</span>" in reader.get("/runs").content.decode()

    first, *lines = run_ledger(run)
    assert first["times"] == "modelled"
    states = [line["state"] for line in lines]
    assert states.count("chosen") == 1 and states.count("modelled") == 2
    assert all(line["measurement"] is None for line in lines)
    assert "not measured)" in run_log(run).splitlines()[0]
    node = node_page(run.tasks.get().template_node_id)
    assert node.modelled_at is not None and node.modelled_at.board == "MI300X"
    figures = {row.kernel.name: row.modelled["time_ns"]["mid"] for row in tried if row.kernel}
    shown = {row.kernel: row.modelled for row in node.candidates if row.modelled}
    assert {name: one.time_us * 1000 for name, one in shown.items()} == pytest.approx(figures)
    assert {one.url for one in shown.values()} == {run.get_absolute_url()}
    with pytest.raises(CommandError, match="modelled times cannot be exported"):
        call_command("export_results", "/nowhere/results.json", run=[run.pk])


@pytest.mark.full
@pytest.mark.django_db(transaction=True)
def test_a_measured_run_begins_with_what_was_modelled_and_says_so(
    graph: Graph, reader: Client
) -> None:
    earlier = start(graph, measurements=4)
    measurement_tasks.run_task(claimed(earlier))
    node = factories.small_node(graph)
    run = run_requests.start_run(
        *(graph, "rocm:0", "gfx942", dict(earlier.bindings), None),
        template_node=node,
        budget=Budget(measurements=3),
    )
    planning.plan_waiting()
    assert not ledger.ready_tasks(ledger.MODELLED).exists()
    task = ledger.ready_tasks("gfx942").get()
    found = modelled_tuning.warm_start(task)
    assert found.device == DEVICE
    (problem,) = find_problems(
        engine.scheduled(graph.file.digest).schedule,
        engine.scheduling_for(graph.file.digest, "gfx942"),
        targets.find("gfx942"),
        dict(run.bindings),
        [node.name],
    )
    order = found.first_candidates(problem)
    figures = found.modelled_times(problem)
    times = [figures[place].time_ns.mid for place in order]
    assert len(order) == 4 and times == sorted(times)
    assert run_page(run.pk).begun_with[0].id == earlier.pk
    text = " ".join(reader.get(run.get_absolute_url()).content.decode().split())
    assert f"run {earlier.pk}</a> modelled as fastest for {DEVICE}" in text
    TuningTask.objects.filter(pk=task.pk).update(title=problem.title)
    assert run_log(run).startswith(
        f"begins with the fastest as modelled for {DEVICE} in run {earlier.pk}"
    )


@pytest.mark.django_db
def test_other_sizes_and_other_targets_begin_with_nothing() -> None:
    earlier = factories.task(state=State.DONE, finished_at=timezone.now())
    TuningRun.objects.filter(pk=earlier.run_id).update(
        device=DEVICE, target="gfx942", bindings={"s0": 4}
    )
    figure = ModelledTime(DEVICE, "MI300X", 1, Band(1, 2, 3))
    factories.candidate(
        earlier, state=State.DONE, modelled=to_json(figure), finished_at=timezone.now()
    )
    for target, sizes, begins in (
        ("gfx942", {"s0": 4}, True),
        ("gfx942", {"s0": 8}, False),
        ("gfx90a", {"s0": 4}, False),
    ):
        run = TuningRun.objects.create(
            graph=earlier.run.graph, device="rocm:0", target=target, bindings=sizes
        )
        task = TuningTask.objects.create(
            run=run, problem=earlier.problem, template_node=earlier.template_node
        )
        modelled_tuning.warm_start(task)
        task.refresh_from_db()
        assert (task.begins_with == earlier) is begins


@pytest.mark.django_db
def test_devices_that_are_no_models_are_refused() -> None:
    graph = factories.graph()
    for device, target, words in (
        ("model:sm_90", "sm_90", "not modelled for sm_90"),
        ("model:MI999", "gfx942", "no such board"),
        ("model:MI300X", "gfx90a", "is a board of gfx942"),
        ("isa:gfx942", "gfx942", "measures no times: use model:gfx942"),
    ):
        with pytest.raises(UserError, match=words):
            run_requests.start_run(graph, device, target, {}, None)


@pytest.mark.django_db
def test_a_modelled_run_is_asked_for_on_the_page_by_who_may_tune(client: Client) -> None:
    graph = factories.graph()
    address = f"/retune?graph={graph.pk}"
    assert client.get(address).status_code in (302, 403)
    user = User.objects.create_user("tuner")
    user.user_permissions.add(Permission.objects.get(codename="retune"))
    client.force_login(user)
    assert "model:MI300X" in client.get(address).content.decode()
    sent = {"graph": graph.pk, "target": DEVICE, "budget": "30s", "why": "no GPU here"}
    answer = client.post("/retune", sent)
    assert answer.status_code == 302
    run = TuningRun.objects.get()
    assert (run.device, run.target, run.why) == (DEVICE, "gfx942", "no GPU here")


@pytest.mark.django_db
def test_the_command_takes_the_target_of_a_modelled_device() -> None:
    graph = factories.graph()
    call_command("retune", graph.name, device="model:gfx90a", budget="30s")
    run = TuningRun.objects.get()
    assert (run.device, run.target) == ("model:MI210", "gfx90a")
    assert retuning.device_for("gfx942") == "rocm:0", "a model is nobody's device"


@pytest.mark.django_db
def test_the_page_as_json_has_the_figures_under_their_own_name(reader: Client) -> None:
    task = factories.task()
    TuningRun.objects.filter(pk=task.run_id).update(device=DEVICE, target="gfx942")
    figure = ModelledTime(DEVICE, "MI300X", 1, Band(1000, 2000, 3000), unknown={"v_new": 1})
    factories.candidate(
        task, state=State.DONE, modelled=to_json(figure), finished_at=timezone.now()
    )
    page = json.loads(reader.get(f"{task.run.get_absolute_url()}.json").content)
    (row,) = page["ledger"]
    assert row["modelled"]["time_ns"] == {"low": 1000, "mid": 2000, "high": 3000}
    assert row["metrics"] == {}
    assert page["best"] == [], "what is not known whole is not the best"
