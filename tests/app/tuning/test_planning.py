"""A run is asked for in a moment and planned by a worker: nobody waits for another's long work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.utils import timezone

from codegen_app.graphs.models import Graph
from codegen_app.kernels.models import GeneratedKernel
from codegen_app.kernels.services import builds, engine, recording
from codegen_app.platform.config import serving
from codegen_app.tuning.models import Candidate, TuningRun, TuningTask
from codegen_app.tuning.services import budgets, ledger, planning, run_requests
from codegen_app.tuning.services import search as tuning_search
from codegen_app.workers import work
from codegen_app.workers.models import State
from scheduler import targets
from scheduler.errors import MachineError, UserError
from scheduler.tuning.budget import Budget
from scheduler.tuning.problems import find_problems
from tests.app import factories

# Locks are held by connections of their own, which must see the rows.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def client(client: Client) -> Client:
    user = User.objects.create_user("tuner")
    user.user_permissions.add(Permission.objects.get(codename="retune"))
    client.force_login(user)
    client.raise_request_exception = False
    return client


@pytest.fixture
def impatient(settings: pytest.FixtureRequest) -> Iterator[None]:
    """As a web process, which waits for a lock a second at most."""
    settings.WEB_LOCK_TIMEOUT_S = 1
    serving.limit_connection(connection)
    yield
    connection.close()


@pytest.fixture
def graph() -> Graph:
    """Prepared, with problems enough for several parts."""
    made = factories.graph(state=State.DONE, finished_at=timezone.now())
    run = TuningRun(graph=made)
    for _ in range(2 * planning._BATCH_SIZE + 3):
        factories.task(run=run_of(run)).delete()
    TuningRun.objects.all().delete()
    return made


def run_of(run: TuningRun) -> TuningRun:
    run.device = run.target = "cpu"
    if run.pk is None:
        run.save()
    return run


@contextmanager
def somebody_holds(statement: str) -> Iterator[None]:
    """A long transaction of a worker."""
    database = connection.settings_dict
    with psycopg.connect(
        dbname=database["NAME"],
        host=database["HOST"],
        port=database["PORT"] or None,
        user=database["USER"],
        password=database["PASSWORD"] or None,
    ) as other:
        other.execute(statement)
        yield
        other.rollback()


def start(graph: Graph, **options: object) -> TuningRun:
    return run_requests.start_run(graph, "cpu", "cpu", {}, None, **options)


def test_eight_clicks_wait_for_no_preparation(
    client: Client, impatient: None, graph: Graph
) -> None:
    form = {"target": ["cpu"], "graph": [graph.pk], "why": "a click", "budget": "5m"}
    with somebody_holds("UPDATE codegen_app_graph SET worker = 'slow'"):
        answers = [client.post("/retune", form).status_code for _ in range(8)]
    assert answers == [302] * 8
    assert TuningRun.objects.count() == 8
    assert not TuningTask.objects.exists(), "nothing of it is done while the page waits"


def test_a_page_that_would_wait_for_a_lock_says_that_it_is_busy(
    client: Client, impatient: None, graph: Graph
) -> None:
    run = start(graph)
    with somebody_holds("UPDATE codegen_app_tuningrun SET note = 'slow'"):
        answer = client.post(f"/runs/{run.pk}/cancel", {"why": "x"})
    assert answer.status_code == 503
    assert "Kiln is busy" in answer.content.decode()
    run.refresh_from_db()
    assert run.state == State.QUEUED
    assert client.post(f"/runs/{run.pk}/cancel", {"why": "x"}).status_code == 302


@pytest.mark.full
def test_fifty_at_once_are_planned_once_each_and_in_order(graph: Graph) -> None:
    runs = [start(graph) for _ in range(50)]
    assert planning.plan_waiting() == 50
    assert planning.plan_waiting() == 0
    problems = graph.template_nodes.count()
    assert [run.tasks.count() for run in runs] == [problems] * 50
    planned = TuningRun.objects.order_by("planned_at").values_list("pk", flat=True)
    assert list(planned) == [run.pk for run in runs]


def test_planning_goes_on_where_a_worker_died(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(graph)
    part = planning._plan_part

    def die(run: TuningRun, nodes: list[tuple[int, int, str]], at: int, found: object) -> bool:
        if at:
            raise MachineError("no space left")
        return part(run, nodes, at, found)

    with monkeypatch.context() as patch:
        patch.setattr(planning, "_plan_part", die)
        assert planning.plan_waiting() == 0
    run.refresh_from_db()
    assert (run.state, run.planned_at) == (State.QUEUED, None)
    assert 0 < run.tasks.count() < graph.template_nodes.count()
    ledger.close_run(run.pk)  # as the tasks that are there may all be over
    run.refresh_from_db()
    assert run.is_open
    assert planning.plan_waiting() == 1
    assert run.tasks.count() == graph.template_nodes.count()


def test_a_run_that_is_cancelled_while_it_is_planned_gets_no_more(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(graph)
    part = planning._plan_part

    def cancel_then(
        run: TuningRun, nodes: list[tuple[int, int, str]], at: int, found: object
    ) -> bool:
        if at:
            ledger.cancel(run, None)
        return part(run, nodes, at, found)

    monkeypatch.setattr(planning, "_plan_part", cancel_then)
    assert planning.plan_waiting() == 0
    run.refresh_from_db()
    assert run.state == State.CANCELLED
    assert not run.tasks.exclude(state=State.CANCELLED).exists()
    assert run.tasks.count() < graph.template_nodes.count()


def test_a_run_asked_for_just_when_its_graph_is_put_aside_is_closed() -> None:
    graph = factories.graph()
    run = start(graph)
    Graph.objects.update(state=State.REJECTED, reason="no such op")
    ledger.reconcile()
    run.refresh_from_db()
    assert (run.state, run.reason) == (
        State.REJECTED,
        "preparing the graph failed: no such op",
    )


@pytest.mark.parametrize(
    ("tasks", "state", "reason"),
    [
        ([], State.DONE, "nothing was measured: no node that the run is about has a kernel"),
        ([(State.DONE, True)], State.DONE, ""),
        (
            [(State.DONE, False)],
            State.DONE,
            "nothing was measured: every candidate was rejected, or not tried",
        ),
        (
            [(State.QUARANTINED, False), (State.DONE, False)],
            State.QUARANTINED,
            "nothing was measured: why",
        ),
        (
            [(State.REJECTED, False), (State.DONE, True)],
            State.DONE,
            "1 of 2 problems were not measured: why",
        ),
    ],
)
def test_a_run_says_what_was_not_measured(
    tasks: list[tuple[State, bool]], state: State, reason: str
) -> None:
    run = TuningRun.objects.create(
        graph=factories.graph(), device="cpu", target="cpu", planned_at=timezone.now()
    )
    for task_state, measured in tasks:
        task = factories.task(run=run, state=task_state, reason="why")
        if measured:
            candidate = factories.candidate(task)
            result = factories.result(
                candidate.build,
                1.0,
                problem=task.problem,
                environment=factories.environment(),
            )
            Candidate.objects.filter(pk=candidate.pk).update(state=State.DONE, result=result)
    ledger.close_run(run.pk)
    run.refresh_from_db()
    assert (run.state, run.reason) == (state, reason)


def test_a_budget_counts_only_what_was_worked(graph: Graph) -> None:
    """A worker dies early; whoever goes on hours later has the rest of the budget."""
    node = graph.template_nodes.first()
    run = start(graph, template_node=node, budget=Budget(seconds=3600.0))
    planning.plan_waiting()
    task = work.claim_next(TuningTask.objects.all(), "w")
    assert task is not None
    worked = budgets.WorkTimer(task)
    worked.begin()
    worked._since -= 1200.0
    assert work.extend(task, **worked.fields())
    TuningRun.objects.update(started_at=timezone.now() - timedelta(hours=2))
    work.requeue_orphans()
    again = work.claim_next(TuningTask.objects.all(), "w")
    assert again is not None
    left = budgets.share_of_budget(again).seconds
    assert left is not None
    assert 2280.0 < left <= 2400.0, "what was worked here, a moment, counts as well"
    assert run.has_budget


def planned(graph: Graph, target: str, **options: object) -> TuningTask:
    """A run of the first product on a target, planned: its task."""
    node = graph.template_nodes.filter(kind="gemm").order_by("position").first()
    run = run_requests.start_run(graph, "rocm:0", target, {}, None, template_node=node, **options)
    assert planning.plan_waiting() == 1
    return run.tasks.get()


def tried_by(task: TuningTask) -> list[str]:
    rows = task.candidates.filter(kernel__isnull=False).order_by("position")
    return list(rows.values_list("kernel__name", flat=True))


@pytest.mark.full
def test_a_run_without_a_budget_draws_from_what_serves_its_own_target() -> None:
    """Others' limits are no reason: gfx942 has room for tiles that no gfx1030 takes."""
    made = factories.prepared_graph()
    task = planned(made, "gfx942")
    name, digest = task.template_node.name, made.file.digest
    own, shared = engine.callers(digest, name, "gfx942"), engine.callers(digest, name)
    elsewhere = engine.callers(digest, name, "gfx1030")
    tried = tried_by(task)
    assert set(tried) <= set(own)
    assert tried[0] == next(iter(own)), "the untuned default is the same for all"
    only_here = [one for one in tried if one not in elsewhere]
    assert only_here
    assert not set(only_here) & set(shared)
    assert len(tried) == recording.MAX_RECORDED
    assert not task.candidates.filter(kernel__isnull=False, build__isnull=True).exists()

    other = planned(made, "gfx1030")
    assert set(tried_by(other)) <= set(elsewhere), "what gfx942 was tried with is recorded, too"
    assert set(tried) - set(only_here) <= set(tried_by(other)), "what serves both is tried again"
    assert set(tried) <= set(tried_by(planned(made, "gfx942")))


@pytest.mark.full
def test_what_rules_refused_is_the_same_with_a_budget_and_without() -> None:
    """Of the run's own target, one that the graph was not imported for too."""
    made = factories.prepared_graph()
    without = planned(made, "gfx1100")
    searched = planned(made, "gfx1100", budget=Budget(measurements=1))
    (problem,) = find_problems(
        engine.scheduled(made.file.digest).schedule,
        engine.scheduling_for(made.file.digest, "gfx1100"),
        targets.find("gfx1100"),
        {name: info["hint"] for name, info in made.symbols.items()},
        [searched.template_node.name],
        engine.scheduled(made.file.digest).backend,
    )
    tuning_search.begin_task(searched, problem)

    def refused(task: TuningTask) -> list[tuple[object, ...]]:
        rows = task.candidates.filter(kernel__isnull=True).order_by("position")
        return [(str(row.config), row.state, row.stage, row.reason) for row in rows]

    assert refused(without) == refused(searched) != []
    reasons = {reason for _, _, _, reason in refused(without)}
    assert not [one for one in reasons if "gfx" in one and "gfx1100" not in one]


@pytest.mark.full
def test_a_limit_takes_the_default_and_the_run_s_own_candidates() -> None:
    made = factories.prepared_graph()
    task = planned(made, "gfx942", candidate_limit=3)
    offered = list(engine.callers(made.file.digest, task.template_node.name, "gfx942"))
    places = list(
        task.candidates.filter(kernel__isnull=False)
        .order_by("position")
        .values_list("position", "kernel__name")
    )
    assert len(places) == 3
    assert all(offered[place] == name for place, name in places)
    assert places[0] == (0, offered[0])


@pytest.mark.full
def test_what_is_made_for_a_plan_is_made_outside_of_its_transactions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = factories.prepared_graph()
    offered, inside = engine.candidates, []

    def look(*asked: str) -> engine.CandidateSet:
        inside.append(connection.in_atomic_block)
        return offered(*asked)

    monkeypatch.setattr(engine, "candidates", look)
    planned(made, "gfx942")
    assert inside == [False]


@pytest.mark.full
def test_candidates_that_no_compiler_here_makes_are_lines_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A second language of a target is no reason to reject the run."""
    made = factories.prepared_graph()
    request = builds.request_builds

    def only_hip(asked: list[GeneratedKernel], *rest: object, **more: object) -> object:
        if any(kernel.source_file != "source.hip" for kernel in asked):
            raise UserError("no CuteDSL here")
        return request(asked, *rest, **more)

    monkeypatch.setattr(builds, "request_builds", only_hip)
    task = planned(made, "sm_90")
    lost = task.candidates.filter(kernel__isnull=False, state=State.REJECTED)
    assert {(row.stage, row.reason) for row in lost} == {("compile", "no CuteDSL here")}
    assert task.candidates.filter(state=State.QUEUED).exists()
