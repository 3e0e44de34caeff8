"""Remote workers against the served application: a folder, an address and a token are all they
have; either side is killed, and people steer them from the page of devices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from codegen_app.models import (
    BenchmarkResult,
    Candidate,
    Control,
    LeaseEnd,
    RemoteLease,
    State,
    TuningRun,
    TuningTask,
    Worker,
)
from codegen_app.services import controls, graphs, ledger, tokens, tuning
from scheduler import samples
from tests.app.processes import SECRET_KEY
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
    return tokens.make(lead, name, ["worker"], None, worker_name=name, worker_queue=queue)[1]


def start(candidates: int) -> TuningRun:
    graph, _ = graphs.import_graph(samples.path("llama_2layer"), "llama", [], None)
    least = {name: max(2, info["min"]) for name, info in graph.symbols.items()}
    return tuning.start_run(
        *(graph, "cpu", "cpu", least, None), kinds=["gemm"], candidate_limit=candidates
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
    assert worker.wait(60) == STOPPED, site.said("bench")
    row.refresh_from_db()
    assert row.stopped_at is not None
    kept = {path.name for path in (site.var / "bench").iterdir()}
    assert kept == {"files", "lock"}


def test_either_side_may_die_in_the_middle(site: Site, lead: User) -> None:
    """kill -9 of the server, then of the worker, then of what takes over and comes back; nothing is
    measured twice and nothing is lost."""
    run = start(candidates=2)
    token = token_for(lead, "first")
    first = site.join("first", token)
    results = BenchmarkResult.objects.filter(task__run=run)
    site.wait(results.exists, "first result")
    site.kill(site.server)
    site.serve()
    seen = results.count()
    site.wait(lambda: results.count() > seen, "result after the server came back")
    open_leases = RemoteLease.objects.filter(ended_at=None)
    site.wait(open_leases.filter(results__gte=1).exists, "lease with a result")
    site.kill(first)

    second = site.join("second", token_for(lead, "second"))
    taken = RemoteLease.objects.filter(worker__name="second")
    site.wait(taken.exists, "task of the second worker")
    site.kill(second)
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
    assert back.wait(60) == STOPPED


def test_people_steer_a_remote_worker(site: Site, lead: User) -> None:
    """Paused before it begins and in the middle, pinned elsewhere, its run cancelled, drained; at
    last its token is revoked."""
    token = token_for(lead, "bench", "measure.cpu")
    worker = site.join("bench", token)
    rows = Worker.objects.filter(name="bench")
    site.wait(rows.exists, "worker")
    row = rows.get()
    controls.steer(row, Control.PAUSE, lead, "the room is hot")
    run = start(candidates=2)
    site.wait(ledger.ready_tasks("cpu").filter(run=run).exists, "task that waits")
    began = Worker.objects.get(pk=row.pk).seen_at
    site.wait(lambda: Worker.objects.filter(pk=row.pk, seen_at__gt=began).exists(), "next question")
    assert not RemoteLease.objects.exists(), "it is paused"

    controls.steer(row, Control.GO, lead, "cool again")
    site.wait(RemoteLease.objects.filter(results__gte=1).exists, "result")
    controls.steer(row, Control.PAUSE, lead, "hot again")
    given_back = RemoteLease.objects.filter(end=LeaseEnd.GIVEN_BACK)
    finished = RemoteLease.objects.filter(end=LeaseEnd.FINISHED)
    over = RemoteLease.objects.filter(ended_at=None)
    site.wait(lambda: not over.exists(), "task given back")
    assert given_back.count() + finished.count() == RemoteLease.objects.count()
    assert not TuningTask.objects.filter(run=run, state=State.RUNNING).exists()

    controls.steer(row, Control.GO, lead, "cool")
    site.wait(over.exists, "next task")
    assert ledger.cancel(TuningRun.objects.get(pk=run.pk), lead, "not needed")
    site.wait(lambda: not over.exists(), "end of the cancelled work")
    site.wait(lambda: "was cancelled" in site.said("bench"), "line of the worker")
    results = BenchmarkResult.objects.filter(task__run=run).count()

    controls.steer(row, Control.DRAIN, lead, "goes home")
    assert worker.wait(60) == 0, site.said("bench")
    assert "drained: goes home" in site.said("bench")
    assert BenchmarkResult.objects.filter(task__run=run).count() == results

    again = site.join("bench", token)
    assert again.wait(60) == 0, "drained until somebody lets it go on"
    controls.steer(row, Control.GO, lead, "back")
    third = site.join("bench", token)
    site.wait(lambda: rows.filter(stopped_at=None).exists(), "worker again")
    tokens.revoke(row.token, lead, "it left")
    assert third.wait(60) == NO_TOKEN
    assert "a valid API token is due" in site.said("bench")
