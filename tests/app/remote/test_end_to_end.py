"""Remote workers against the served application: a folder, an address and a token are all they
have; either side is killed, and people steer them from the page of devices."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import QuerySet

from codegen_app.accounts import tokens
from codegen_app.graphs.services import imports as graphs
from codegen_app.remote.models import LeaseEnd, RemoteLease
from codegen_app.tracking.models import Remeasurement, Source
from codegen_app.tracking.remeasuring import requests
from codegen_app.tuning.models import BenchmarkResult, Candidate, TuningRun, TuningTask
from codegen_app.tuning.services import ledger, run_requests
from codegen_app.workers import controls
from codegen_app.workers.models import Control, State, Worker
from scheduler import samples
from scheduler.runtime.lock import lock_device
from scheduler.tuning.budget import Budget
from tests.app.processes import SECRET_KEY
from tests.support.leases import expire
from tests.support.own_alert import own_alert
from tests.support.patience import PATIENCE_S
from tests.support.remote_site import Site

STOPPED, NO_TOKEN = 0, 4


@pytest.fixture
def site(transactional_db: None, tmp_path: Path, settings: Any) -> Iterator[Site]:
    settings.SECRET_KEY = SECRET_KEY
    made = Site(tmp_path)
    made.serve()
    made.compile()
    yield made
    made.close()


@pytest.fixture
def lead(transactional_db: None) -> User:
    return User.objects.create_superuser("lead", password="secret-secret")


def token_for(lead: User, name: str, queue: str = "") -> str:
    return tokens.create_token(lead, name, ["worker"], None, worker_name=name, worker_queue=queue)[
        1
    ]


def start(candidates: int | None = None, **limits: float) -> TuningRun:
    graph, _ = graphs.import_graph(samples.path("llama_2layer"), "llama", [], None)
    least = {name: max(2, info["min"]) for name, info in graph.symbols.items()}
    return run_requests.start_run(
        *(graph, "cpu", "cpu", least, None),
        kinds=["reduction" if limits else "gemm"],  # two problems, of 39 and 65 candidates
        candidate_limit=candidates,
        budget=Budget(**limits),
    )


def is_done(run: TuningRun) -> bool:
    return TuningRun.objects.filter(pk=run.pk, state=State.DONE).exists()


def decided_right(task: TuningTask) -> bool:
    """The rule of every worker, from the rows alone: the fastest, unless the default ties with it,
    then the default."""
    rows = list(task.candidates.filter(result__isnull=False).select_related("result"))
    best = min(rows, key=lambda row: row.result.median_ns)
    tied = [row for row in rows if row.result.median_ns <= best.result.high_ns]
    chosen = min(tied, key=lambda row: (row.position != 0, row.kernel.name))
    (marked,) = task.candidates.filter(chosen=True)
    return bool(marked == chosen)


@pytest.mark.full
def test_a_run_is_done_by_a_worker_with_an_address_and_a_token(site: Site, lead: User) -> None:
    run = start(candidates=2)
    worker = site.join("bench", token_for(lead, "bench", "measure.cpu"))
    site.wait(lambda: is_done(run), "end of the run")

    row = Worker.objects.get(name="bench")
    assert row.remote and row.is_alive and row.queues == ["measure.cpu"]
    assert not Worker.objects.filter(queues__contains=["measure.cpu"], remote=False).exists()
    tasks = TuningTask.objects.filter(run=run)
    assert {(one.state, one.attempts, one.worker) for one in tasks} == {(State.DONE, 1, "bench")}
    assert all(one.title and one.operands and one.shape for one in tasks)
    assert all(decided_right(one) for one in tasks)
    tried = Candidate.objects.filter(task__run=run, build__isnull=False)
    assert not tried.exclude(state__in=[State.DONE, State.REJECTED]).exists()
    results = BenchmarkResult.objects.filter(task__run=run)
    assert results.count() == tried.filter(state=State.DONE).count() > len(tasks)
    assert all("bandwidth" in one.metrics and one.environment.device == "cpu" for one in results)
    leases = RemoteLease.objects.filter(end=LeaseEnd.FINISHED)
    assert leases.count() == len(tasks)
    assert sum(one.results for one in leases) == tried.count(), "each candidate once"

    worker.terminate()
    assert worker.wait(PATIENCE_S) == STOPPED, site.said("bench")
    row.refresh_from_db()
    assert row.stopped_at is not None
    kept = {path.name for path in (site.var / "bench").iterdir()}
    assert kept == {"files", "lock"}


@pytest.mark.long
def test_either_side_may_die_in_the_middle(site: Site, lead: User) -> None:
    """kill -9 of the server, then of the worker, then of what takes over and comes back; nothing is
    measured twice and nothing is lost."""
    run = start(candidates=4)  # so that most of a lease is between two results
    token = token_for(lead, "first")
    first = site.join("first", token)
    results = BenchmarkResult.objects.filter(task__run=run)
    site.wait(results.exists, "first result")
    site.kill(site.server)
    site.serve()
    seen = results.count()
    site.wait(lambda: results.count() > seen, "result after the server came back")
    open_leases = RemoteLease.objects.filter(ended_at=None)
    died_over(site, "first", token, first, open_leases.filter(results__gte=1))

    token_of_second = token_for(lead, "second")
    second = site.join("second", token_of_second)
    died_over(site, "second", token_of_second, second, open_leases.filter(worker__name="second"))
    back = site.join("first", token)
    site.wait(lambda: is_done(run), "end of the run")

    tried = Candidate.objects.filter(task__run=run, build__isnull=False)
    assert not tried.exclude(state__in=[State.DONE, State.REJECTED]).exists()
    assert results.count() == tried.filter(state=State.DONE).count()
    leases = RemoteLease.objects.filter(task__run=run)
    assert sum(one.results for one in leases) == tried.count(), "each candidate counted once"
    tasks = TuningTask.objects.filter(run=run)
    assert leases.filter(end=LeaseEnd.FINISHED).count() == tasks.count()
    assert leases.exclude(end=LeaseEnd.FINISHED).count() >= 2
    assert max(one.attempts for one in tasks) >= 2
    assert all(decided_right(one) for one in tasks)
    back.terminate()
    assert back.wait(PATIENCE_S) == STOPPED


def whole(task: TuningTask) -> bool:
    """Whether the ledger of a search has all that the generator offers, each line closed, whatever
    rules rejected among them."""
    lines = task.candidates.all()
    (left,) = set(lines.filter(kernel=None, state=State.CANCELLED).values_list("reason", flat=True))
    closed = not lines.filter(state__in=[State.QUEUED, State.RUNNING]).exists()
    node = task.template_node
    offered = node.offered + len(node.rejected_for(task.run.target))
    assert (lines.count(), closed) == (offered, True), task
    return "was spent" in left


@pytest.mark.long
def test_a_run_with_a_budget_asks_for_builds_as_it_searches(site: Site, lead: User) -> None:
    run = start(measurements=9)
    worker = site.join("bench", token_for(lead, "bench"))
    site.wait(lambda: is_done(run), "end of the run")
    tasks = list(TuningTask.objects.filter(run=run).select_related("template_node", "run"))
    assert {(one.state, one.attempts, one.worker) for one in tasks} == {(State.DONE, 1, "bench")}
    assert all(one.title and one.operands and one.shape and one.spent_s > 0 for one in tasks)
    assert all(decided_right(one) and whole(one) for one in tasks)
    results = BenchmarkResult.objects.filter(task__run=run)
    assert len(tasks) < results.count() <= 9 + len(tasks), "more than the defaults"
    assert all("bandwidth" in one.metrics for one in results)
    leases = RemoteLease.objects.filter(task__run=run)
    assert {one.end for one in leases} == {LeaseEnd.FINISHED}
    assert sum(one.results for one in leases) == results.count()
    worker.terminate()
    assert worker.wait(PATIENCE_S) == STOPPED, site.said("bench")


def died_over(
    site: Site,
    name: str,
    token: str,
    worker: subprocess.Popen[bytes],
    wanted: QuerySet[RemoteLease],
) -> RemoteLease:
    """A lease that a worker held when it was killed. The server goes first, so that nothing ends it
    afterwards; where it ended just before, another is waited for."""
    while True:
        site.wait(wanted.exists, "such a lease")
        site.kill(site.server)
        site.kill(worker)
        found = wanted.first()
        site.serve()
        if found is not None:
            expire(TuningTask.objects.filter(leases=found))
            return found
        worker = site.join(name, token)


@pytest.mark.long
def test_a_search_goes_on_when_either_side_died(site: Site, lead: User) -> None:
    """kill -9 of the server while builds are asked for, then of the worker; another goes on from
    what was measured, as it does after a pause, and a cancelled run ends at once."""
    run = start(measurements=24)
    token = token_for(lead, "first")
    first = site.join("first", token)
    results = BenchmarkResult.objects.filter(task__run=run)
    site.wait(lambda: results.count() >= 2, "result of a candidate that was asked for")
    site.kill(site.server)
    seen = set(results.values_list("pk", flat=True))
    site.serve()
    site.wait(lambda: results.count() > len(seen), "result after the server came back")
    searched = RemoteLease.objects.filter(ended_at=None, results__gte=2)
    left = died_over(site, "first", token, first, searched).tuning_task
    before = dict(left.candidates.filter(result__isnull=False).values_list("pk", "result"))
    assert len(before) >= 1

    site.join("second", token_for(lead, "second"))
    site.wait(lambda: is_done(run), "end of the run")
    tasks = list(TuningTask.objects.filter(run=run).select_related("template_node", "run"))
    assert all(decided_right(one) and whole(one) for one in tasks)
    after = dict(left.candidates.filter(result__isnull=False).values_list("pk", "result"))
    assert before.items() <= after.items(), "what was measured is kept"
    leases = RemoteLease.objects.filter(task__run=run)
    assert leases.filter(end=LeaseEnd.FINISHED).count() == len(tasks)
    takers = set(leases.filter(task=left).values_list("worker__name", flat=True))
    assert takers == {"first", "second"}
    assert sum(one.results for one in leases) == results.count(), "nothing is counted twice"

    cancelled = start(seconds=3600)
    found = BenchmarkResult.objects.filter(task__run=cancelled)
    site.wait(lambda: found.count() >= 2, "result of a long search")
    open_leases = RemoteLease.objects.filter(ended_at=None, worker__name="second")
    row = Worker.objects.get(name="second")
    controls.set_control(row, Control.PAUSE, lead, "the room is hot")
    site.wait(lambda: not open_leases.exists(), "task given back")
    count = found.count()
    controls.set_control(row, Control.GO, lead, "cool again")
    site.wait(lambda: found.count() > count, "result after the pause")
    assert ledger.cancel(TuningRun.objects.get(pk=cancelled.pk), lead, "not needed")
    site.wait(lambda: "was cancelled" in site.said("second"), "line of the worker")
    site.wait(lambda: not open_leases.exists(), "end of the cancelled work")
    rows = Candidate.objects.filter(task__run=cancelled)
    assert not rows.filter(state__in=[State.QUEUED, State.RUNNING]).exists()
    assert found.count() >= 2, "what was measured stays"


@pytest.mark.long
def test_builds_are_measured_again_by_a_worker_with_an_address_and_a_token(
    site: Site, lead: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kill -9 of the worker that has them, which waits for its device; another goes on and records
    what one with the database does."""
    alert = own_alert(monkeypatch)
    locks = site.var / "locks"
    first = site.join("first", token_for(lead, "first"), "--device-locks", str(locks))
    site.wait(Worker.objects.filter(name="first").exists, "worker")
    with lock_device("cpu", locks):
        (asked,) = requests.request_remeasurement(alert, lead)
        row = asked.remeasurement
        assert row is not None
        leases = RemoteLease.objects.filter(remeasurement=row)
        site.wait(leases.filter(ended_at=None, worker__name="first").exists, "lease")
        begun = Remeasurement.objects.get().heartbeat_at
        alive = Remeasurement.objects.filter(heartbeat_at__gt=begun)
        site.wait(alive.exists, "sign of life while it waits for the device")
        site.kill(first)
    expire(Remeasurement.objects.filter(pk=row.pk))
    second = site.join("second", token_for(lead, "second"))
    site.wait(lambda: not Remeasurement.objects.get().is_open, "end of it")

    row.refresh_from_db()
    assert (row.state, row.reason, row.worker, row.attempts) == (State.DONE, "", "second", 2)
    assert 0 < row.samples <= row.samples_due
    points = list(row.points.select_related("datum__result__environment", "original__result"))
    assert len(points) == 2
    for point in points:
        new, old = point.datum, point.original
        assert new is not None
        assert (new.series, new.revision, new.at) == (old.series, old.revision, old.at)
        assert (new.source, new.build, new.kernel) == (Source.AGAIN, old.build, old.kernel)
        assert new.samples and new.measured_at > old.measured_at
        assert new.result is not None and old.result is not None
        assert new.result.bindings == old.result.bindings
        assert new.result.metrics.keys() == old.result.metrics.keys()
        assert new.result.environment == old.result.environment
    ends = dict(leases.values_list("worker__name", "end"))
    assert ends["second"] == LeaseEnd.FINISHED
    second.terminate()
    assert second.wait(PATIENCE_S) == STOPPED, site.said("second")


@pytest.mark.long
def test_people_steer_a_remote_worker(site: Site, lead: User) -> None:
    """Paused before it begins and in the middle, pinned elsewhere, its run cancelled, drained; at
    last its token is revoked."""
    token = token_for(lead, "bench", "measure.cpu")
    worker = site.join("bench", token)
    rows = Worker.objects.filter(name="bench")
    site.wait(rows.exists, "worker")
    row = rows.get()
    controls.set_control(row, Control.PAUSE, lead, "the room is hot")
    run = start(candidates=2)
    site.wait(ledger.ready_tasks("cpu").filter(run=run).exists, "task that waits")
    began = Worker.objects.get(pk=row.pk).seen_at
    site.wait(lambda: Worker.objects.filter(pk=row.pk, seen_at__gt=began).exists(), "next question")
    assert not RemoteLease.objects.exists(), "it is paused"

    controls.set_control(row, Control.GO, lead, "cool again")
    site.wait(RemoteLease.objects.filter(results__gte=1).exists, "result")
    controls.set_control(row, Control.PAUSE, lead, "hot again")
    given_back = RemoteLease.objects.filter(end=LeaseEnd.GIVEN_BACK)
    finished = RemoteLease.objects.filter(end=LeaseEnd.FINISHED)
    over = RemoteLease.objects.filter(ended_at=None)
    site.wait(lambda: not over.exists(), "task given back")
    assert given_back.count() + finished.count() == RemoteLease.objects.count()
    assert not TuningTask.objects.filter(run=run, state=State.RUNNING).exists()

    controls.set_control(row, Control.GO, lead, "cool")
    site.wait(over.exists, "next task")
    assert ledger.cancel(TuningRun.objects.get(pk=run.pk), lead, "not needed")
    site.wait(lambda: not over.exists(), "end of the cancelled work")
    site.wait(lambda: "was cancelled" in site.said("bench"), "line of the worker")
    results = BenchmarkResult.objects.filter(task__run=run).count()

    controls.set_control(row, Control.DRAIN, lead, "goes home")
    assert worker.wait(PATIENCE_S) == 0, site.said("bench")
    assert "drained: goes home" in site.said("bench")
    assert BenchmarkResult.objects.filter(task__run=run).count() == results

    again = site.join("bench", token)
    assert again.wait(PATIENCE_S) == 0, "drained until somebody lets it go on"
    controls.set_control(row, Control.GO, lead, "back")
    third = site.join("bench", token)
    site.wait(lambda: rows.filter(stopped_at=None).exists(), "worker again")
    tokens.revoke(row.token, lead, "it left")
    assert third.wait(PATIENCE_S) == NO_TOKEN
    assert "expected a valid API token" in site.said("bench")
