"""Runs with a budget: the tuner, real compilers, the emulation, and rows that survive a death."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.db.models import QuerySet

from codegen_app.graphs.models import Graph
from codegen_app.graphs.services import imports as graphs
from codegen_app.kernels.models import Build, KernelUse
from codegen_app.kernels.services import engine, recording, remote_builds
from codegen_app.tuning.models import BenchmarkResult, Candidate, Selection, TuningRun, TuningTask
from codegen_app.tuning.queries.serving import Bucket
from codegen_app.tuning.services import (
    ledger,
    measurement_tasks,
    planning,
    run_requests,
)
from codegen_app.tuning.services import (
    search as tuning_search,
)
from codegen_app.tuning.services.choices import Choices
from codegen_app.workers import work
from codegen_app.workers.models import State
from scheduler import samples, targets
from scheduler.errors import UserError
from scheduler.tuning.budget import Budget
from scheduler.tuning.evaluator import BenchEvaluator
from scheduler.tuning.problems import find_problems
from scheduler.tuning.tuner import Event
from tests.app import factories

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> Graph:
    """Prepared; nothing compiled. There are no workers: builds are done beside the tuner."""
    monkeypatch.setattr(remote_builds, "_UNCLAIMED_AFTER_S", 0.0)
    return factories.prepared_graph()


def start(graph: Graph, **limits: float) -> TuningRun:
    node = factories.small_node(graph)
    least = {name: info["min"] for name, info in graph.symbols.items()}
    budget = Budget(**limits)
    run = run_requests.start_run(
        graph, "cpu", "cpu", least, None, template_node=node, budget=budget
    )
    assert planning.plan_waiting() == 1
    return run


def claimed(run: TuningRun) -> TuningTask:
    task = work.claim_next(ledger.ready_tasks("cpu").filter(run=run), "w")
    assert task is not None
    return task


def tried(run: TuningRun) -> QuerySet[Candidate]:
    return Candidate.objects.filter(task__run=run, kernel__isnull=False)


@pytest.mark.full
def test_a_budget_is_kept_and_everything_is_accounted_for(graph: Graph) -> None:
    run = start(graph, seconds=3600, measurements=2)
    assert Build.objects.count() == 1, "the default; the tuner asks for what else it wants"
    measurement_tasks.run_task(claimed(run))
    run.refresh_from_db()
    task = run.tasks.get()
    assert (run.state, task.state) == (State.DONE, State.DONE)
    measured = tried(run).filter(state=State.DONE)
    assert 1 <= measured.count() <= 2
    assert measured.get(chosen=True).kernel == Selection.objects.get().kernel
    node = task.template_node
    offered = node.offered + len(node.rejected_for(run.target))
    assert task.candidates.count() == offered, "no candidate vanishes"
    untried = task.candidates.filter(state=State.CANCELLED)
    assert {row.reason for row in untried} == {"the budget of 2 measurements was spent"}
    assert not task.candidates.filter(state__in=[State.QUEUED, State.RUNNING]).exists()
    assert not Build.objects.filter(state__in=[State.QUEUED, State.RUNNING]).exists()
    assert task.title
    assert task.operands


@pytest.mark.full
def test_what_was_seen_before_a_death_is_not_measured_again(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(graph, measurements=3)
    task = claimed(run)
    note = tuning_search._DatabaseHost.note

    def die(self: tuning_search._DatabaseHost, event: Event) -> None:
        note(self, event)
        if tried(run).filter(state=State.DONE).count() == 2:
            raise SystemExit

    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(tuning_search._DatabaseHost, "note", die)
        measurement_tasks.run_task(task)
    before = set(BenchmarkResult.objects.values_list("pk", "kernel__name"))
    assert len(before) == 2
    work.requeue_orphans()

    checked: list[str] = []
    check = BenchEvaluator.check

    def remember(self: object, candidate: object, max_s: float) -> object:
        checked.append(candidate.key.rpartition(":")[2])
        return check(self, candidate, max_s)

    monkeypatch.setattr(BenchEvaluator, "check", remember)
    measurement_tasks.run_task(claimed(run))
    run.refresh_from_db()
    assert run.state == State.DONE
    gate, edges = [one for one in checked if one != "edge"], checked.count("edge")
    assert gate or edges
    assert not {name for _, name in before} & set(gate)
    assert tried(run).filter(state=State.DONE).count() <= 3
    assert before <= set(BenchmarkResult.objects.values_list("pk", "kernel__name"))


@pytest.mark.full
def test_a_run_for_a_device_that_is_not_here_says_so(graph: Graph) -> None:
    run = start(graph, seconds=3600)
    TuningRun.objects.filter(pk=run.pk).update(device="rocm:7")
    measurement_tasks.run_task(claimed(run))
    task = run.tasks.get()
    assert task.state == State.REJECTED
    assert task.reason.startswith("device rocm:7: ")


@pytest.mark.full
def test_sizes_that_no_memory_holds_are_a_loss_and_no_failure(graph: Graph) -> None:
    run = start(graph, seconds=3600)
    TuningRun.objects.filter(pk=run.pk).update(bindings=dict.fromkeys(graph.symbols, 10**18))
    measurement_tasks.run_task(claimed(run))
    run.refresh_from_db()
    task = run.tasks.get()
    assert (run.state, task.state, task.stage) == (State.REJECTED, State.REJECTED, "load")
    assert "larger than any memory" in task.reason
    assert run.reason == f"nothing was measured: {task.reason}"


@pytest.mark.parametrize(
    ("limits", "priority"),
    [({"seconds": 0}, 0), ({"seconds": float("nan")}, 0), ({"compiles": -1}, 0), ({}, 101)],
)
def test_a_budget_that_is_none_is_rejected(limits: dict[str, float], priority: int) -> None:
    graph, _ = graphs.import_graph(samples.path("gpt2_2layer"), "gpt2", [], None)
    with pytest.raises(UserError, match=r"budget|priority"):
        run_requests.start_run(
            graph, "cpu", "cpu", {}, None, budget=Budget(**limits), priority=priority
        )
    assert not TuningRun.objects.exists()


@pytest.mark.full
def test_a_search_is_held_to_the_limits_of_its_own_target_alone(graph: Graph) -> None:
    """Others' are no reason: an H200 has room for tiles that no gfx1030 takes."""
    node = graph.template_nodes.filter(kind="gemm").order_by("position").first()
    assert node is not None
    digest = graph.file.digest
    own, shared = engine.callers(digest, node.name, "sm_90"), engine.callers(digest, node.name)
    # How many blocks share the steps of stream-K follows from the device: others' serve others.
    alike = {name for name, made in shared.items() if "STREAM_K" not in made.kernel.config}
    assert alike < set(own)
    assert next(iter(shared)) == next(iter(own)), "the untuned default is the same for all"
    (problem,) = find_problems(
        engine.scheduled(digest).schedule,
        engine.scheduling_for(digest, "sm_90"),
        targets.find("sm_90"),
        {name: info["hint"] for name, info in graph.symbols.items()},
        [node.name],
        engine.scheduled(digest).backend,
    )
    assert [caller.name for caller in problem.callers] == list(own)
    reasons = " ".join({one.rejected.reason for one in problem.rejected})
    assert "sm_90" in reasons
    assert "gfx" not in reasons


@pytest.mark.full
def test_what_serves_one_target_alone_is_in_the_code_for_it(graph: Graph) -> None:
    node = graph.template_nodes.filter(kind="gemm").order_by("position").first()
    assert node is not None
    digest = graph.file.digest
    own, shared = engine.callers(digest, node.name, "sm_90"), engine.callers(digest, node.name)
    kernel = next(name for name in own if name not in shared)
    backend = engine.scheduling_for(digest, "sm_90")
    recording.record_candidate(node, 0, engine.scheduled(digest), own[kernel], backend)
    KernelUse.objects.filter(kernel__name=kernel).update(generator="an earlier one")
    bucket = Bucket("H200", "NVIDIA H200", "sm_90", "clang", {}, emulated=False)
    chosen = Choices(graph.name, digest, bucket, {node.name: kernel}, ())
    assert chosen.not_made() == ()
    assert kernel in {made.name for made in chosen.generated().kernels}
    elsewhere = replace(chosen, bucket=replace(bucket, target="gfx1030"))
    assert [row.selected for row in elsewhere.not_made()] == [kernel]
