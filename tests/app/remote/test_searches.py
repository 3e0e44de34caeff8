"""Searches of remote workers: which builds they may ask for, who makes them, what a task may spend
and what its ledger says in the end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models.functions import Now
from django.test import Client

from codegen_app.accounts import tokens
from codegen_app.graphs.models import Graph
from codegen_app.kernels.models import Build
from codegen_app.kernels.services import builds, engine
from codegen_app.platform.advisory_lock import LockClass
from codegen_app.remote import leases
from codegen_app.remote.models import RemoteLease
from codegen_app.site import queued_work
from codegen_app.tasks import compile
from codegen_app.tuning.models import BenchmarkResult, Candidate, TuningRun, TuningTask
from codegen_app.tuning.services import ledger, measurement_tasks, planning, run_requests
from codegen_app.workers import work
from codegen_app.workers.models import State
from scheduler.errors import MachineError, UserError
from scheduler.tuning.budget import Budget
from tests.app import factories
from tests.support.remote_worker import Remote, line, refused, result

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lead() -> User:
    return User.objects.create_superuser("lead")


@pytest.fixture
def remote(client: Client, lead: User) -> Remote:
    made = Remote(
        client, tokens.create_token(lead, "bench", ["worker"], None, worker_name="bench")[1]
    )
    assert made.hello().status_code == 200
    return made


@pytest.fixture
def graph() -> Graph:
    return factories.prepared_graph()


@pytest.fixture
def run(graph: Graph) -> TuningRun:
    least = {name: info["min"] for name, info in graph.symbols.items()}
    made = run_requests.start_run(
        *(graph, "cpu", "cpu", least, None),
        template_node=factories.small_node(graph),
        budget=Budget(seconds=90.0, measurements=3),
    )
    assert planning.plan_waiting() == 1
    return made


def ask(remote: Remote, lease: str, *kernels: str) -> Any:
    return remote.post("builds", {"lease": lease, "kernels": list(kernels)})


def told(remote: Remote, lease: str, *kernels: str) -> dict[str, Any]:
    answer = ask(remote, lease, *kernels)
    assert answer.status_code == 200, answer.content
    return {one["kernel"]: one for one in answer.json()["builds"]}


def offered(run: TuningRun) -> list[str]:
    """What the worker's own engine finds, the default first."""
    task = run.tasks.get()
    sizes = tuple(sorted(run.bindings.items()))
    digest = run.graph.file.digest
    found = engine.tuning_problem(digest, task.template_node.name, run.target, sizes)
    return list(dict.fromkeys(caller.name for caller in found.callers))


def test_builds_are_asked_for_made_and_decided_upon(remote: Remote, run: TuningRun) -> None:
    given = remote.lease()["task"]
    assert given["budget"] == {"seconds": 90.0, "compiles": None, "measurements": 3}
    assert given["libraries"] == []
    key, kernels = given["lease"], offered(run)
    assert told(remote, key, kernels[0]) == {}, "nobody has looked at the graph yet"
    assert RemoteLease.objects.get().asked == []
    assert refused(remote.finish(key), 503, "are not known yet")
    assert queued_work.has_work("compile")
    compile()
    task = TuningTask.objects.get()
    assert task.title and task.operands and task.shape["template"]
    assert task.candidates.filter(kernel=None, state=State.REJECTED).exists(), "by rules"

    assert refused(ask(remote, key, kernels[0], "rocm_fused_0"), 422, "not a candidate of")
    first, second = kernels[0], kernels[1]
    for _ in range(2):  # the answer to the first may not have arrived
        assert list(told(remote, key, first, second)) == [first], "the default was planned"
    assert RemoteLease.objects.get().asked == [second]
    assert leases.search_leases().exists()
    compile()
    assert not leases.search_leases().exists()
    Build.objects.update(cached=False)  # whatever other tests have compiled
    found = told(remote, key, first, second)
    assert set(found) == {first, second}
    assert [found[name]["library"]["cached"] for name in (first, second)] == [False, False]
    digest = found[second]["library"]["digest"]
    assert remote.get(f"leases/{key}/files/{digest}").status_code == 200

    spent = remote.post(
        "progress",
        {"lease": key, "device": "cpu", "results": [result(first, 300.0)], "spent_s": 1e6},
    )
    assert spent.status_code == 200
    task.refresh_from_db()
    assert 0 < task.spent_s < 600, "at most since it has the task"
    body = {"lease": key, "device": "cpu", "spent_s": 0.0, "rest": "the budget was spent"}
    remote.progress(key, result(second, 200.0))
    lines = [line(first, "measured"), line(second, "chosen")]
    for _ in range(2):
        assert remote.post("finish", body | {"lines": lines}).status_code == 200
    run.refresh_from_db()
    assert run.state == State.DONE
    assert BenchmarkResult.objects.count() == 2
    untried = task.candidates.filter(state=State.CANCELLED)
    assert {row.reason for row in untried} == {"the budget was spent"}
    assert [row.position for row in untried.order_by("position")] == list(range(2, len(kernels)))
    assert all(row.config for row in untried)
    assert task.candidates.get(kernel__name=second).position == 1
    assert RemoteLease.objects.get().offered == {}, "kept as long as it is of use"


@pytest.mark.full
def test_a_local_worker_goes_on_with_what_a_remote_one_began(
    remote: Remote, run: TuningRun
) -> None:
    key, kernels = remote.lease()["task"]["lease"], offered(run)
    compile()
    told(remote, key, *kernels[:2])
    compile()
    remote.progress(key, result(kernels[1], 1.0))
    TuningTask.objects.update(lease_until=Now() - timedelta(seconds=1))
    assert work.requeue_expired() == 1
    assert refused(ask(remote, key, kernels[2]), 409, "the lease expired")
    assert not leases.search_leases().exists()

    task = work.claim_next(ledger.ready_tasks("cpu"), "w")
    assert task is not None
    measurement_tasks.run_task(task)
    run.refresh_from_db()
    assert run.state == State.DONE
    rows = task.candidates.filter(kernel__isnull=False)
    assert rows.filter(state=State.DONE).count() <= 3, "what was seen before is of the budget"
    assert rows.get(kernel__name=kernels[1]).result is not None


@pytest.mark.full
def test_what_was_found_before_is_known_and_its_builds_are_not_made_anew(
    remote: Remote, run: TuningRun
) -> None:
    key, kernels = remote.lease()["task"]["lease"], offered(run)
    compile()
    told(remote, key, kernels[1])
    compile()
    remote.progress(key, result(kernels[1], 200.0))
    remote.post("give-up", {"lease": key, "why": "stopped"})
    count = Build.objects.count()
    given = remote.lease()["task"]
    assert [one["kernel"] for one in given["seen"]] == [kernels[1]]
    compile()
    assert list(told(remote, given["lease"], kernels[1])) == [kernels[1]]
    assert Build.objects.count() == count
    Build.objects.filter(kernel__name=kernels[0]).update(state=State.CANCELLED)
    assert told(remote, given["lease"], kernels[0]) == {}, "its build was dropped"
    compile()
    assert told(remote, given["lease"], kernels[0])[kernels[0]]["library"]


@pytest.mark.full
def test_a_kernel_that_does_not_compile_is_a_loss_of_the_ledger(
    remote: Remote, run: TuningRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing_builds(*_: object, **__: object) -> None:
        raise UserError("no compiler here builds that")

    key, kernels = remote.lease()["task"]["lease"], offered(run)
    compile()
    told(remote, key, kernels[1])
    monkeypatch.setattr(builds, "request_builds", nothing_builds)
    compile()
    found = told(remote, key, kernels[1])[kernels[1]]
    assert found["library"] is None
    assert (found["loss"]["stage"], found["loss"]["reason"]) == (
        "compile",
        "no compiler here builds that",
    )
    loss = {"stage": "compile", "reason": "no compiler here builds that", "detail": ""}
    assert remote.finish(key, line(kernels[1], "compile error", loss=loss)).status_code == 200
    row = Candidate.objects.get(kernel__name=kernels[1])
    assert (row.state, row.stage) == (State.REJECTED, "compile")


@pytest.mark.full
def test_a_machine_that_fails_is_asked_again_and_sizes_that_nothing_holds_close_the_task(
    remote: Remote, run: TuningRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(error: Exception) -> None:
        def problem(*_: object) -> None:
            raise error

        monkeypatch.setattr(engine, "tuning_problem", problem)

    key = remote.lease()["task"]["lease"]
    fails(MachineError("the storage does not answer"))
    compile()
    assert leases.search_leases().exists()
    fails(UserError("no memory holds a tensor of that size"))
    compile()
    task = TuningTask.objects.get()
    assert (task.state, task.stage) == (State.REJECTED, "load")
    assert "no memory holds" in remote.progress(key).json()["why"]


@pytest.mark.full
def test_one_worker_at_a_time_looks(remote: Remote, run: TuningRun) -> None:
    remote.lease()
    lease, other = leases.search_leases().get(), connection.copy()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s, %s)", [LockClass.SEEK, lease.pk])
        compile()
        assert leases.search_leases().exists(), "it is another's"
        cursor.execute("SELECT pg_advisory_unlock_all()")
    other.close()
    compile()
    assert not leases.search_leases().exists()


@pytest.mark.full
def test_a_cancelled_run_asks_for_nothing_more(remote: Remote, lead: User, run: TuningRun) -> None:
    key, kernels = remote.lease()["task"]["lease"], offered(run)
    compile()
    told(remote, key, kernels[1])
    ledger.cancel(TuningRun.objects.get(), lead)
    assert not leases.search_leases().exists()
    compile()
    assert not Candidate.objects.filter(kernel__name=kernels[1]).exists()
    assert refused(ask(remote, key, kernels[1]), 409, "was cancelled")
