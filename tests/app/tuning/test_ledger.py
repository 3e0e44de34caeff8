"""What follows from what: failed builds, ready tasks, cancelled runs, dead workers' remains."""

from __future__ import annotations

import pytest

from codegen_app.kernels.models import Build
from codegen_app.tuning.models import TuningRun, TuningTask
from codegen_app.tuning.services import ledger
from codegen_app.workers import work
from codegen_app.workers.models import State
from tests.app import factories

pytestmark = pytest.mark.django_db


def done(build: Build) -> None:
    from codegen_app.platform.models import Artifact

    file = Artifact.objects.create(
        digest=factories.digest(), size_bytes=1, path=f"sha256/{factories.digest()}"
    )
    Build.objects.filter(pk=build.pk).update(
        state=State.DONE, code_digest="c" * 64, library=file, duration_s=0.1
    )


def fail(build: Build, reason: str) -> None:
    Build.objects.filter(pk=build.pk).update(state=State.REJECTED, reason=reason, log="the log")


def test_a_task_is_ready_when_all_its_builds_are_over_however_they_ended() -> None:
    task = factories.task()
    first, second = factories.candidate(task), factories.candidate(task)
    assert not ledger.ready_tasks("cpu").exists()
    done(first.build)
    ledger.on_build_finished(first.build)
    assert not ledger.ready_tasks("cpu").exists()
    fail(second.build, "line 7: no such thing")
    ledger.on_build_finished(second.build)
    assert list(ledger.ready_tasks("cpu")) == [task]
    assert not ledger.ready_tasks("gfx942").exists()
    second.refresh_from_db()
    assert (second.state, second.stage) == (State.REJECTED, "compile")
    assert (second.reason, second.detail) == ("line 7: no such thing", "the log")


def test_a_run_is_over_with_its_last_task() -> None:
    task = factories.task()
    other = factories.task(run=task.run)
    for row in (task, other):
        ledger.close_run(task.run_id)
        task.run.refresh_from_db()
        assert task.run.state == State.QUEUED
        TuningTask.objects.filter(pk=row.pk).update(state=State.DONE)
    ledger.close_run(task.run_id)
    task.run.refresh_from_db()
    assert task.run.state == State.DONE
    assert task.run.finished_at is not None


def test_cancelling_takes_the_row_from_its_worker_and_keeps_what_was_measured() -> None:
    measured = factories.task(state=State.DONE)
    run = measured.run
    task = factories.task(run=run)
    candidate = factories.candidate(task)
    done(candidate.build)
    held = work.claim_next(ledger.ready_tasks("cpu"), "w")
    assert held is not None
    assert ledger.cancel(run, None, "enough")
    assert not ledger.cancel(run, None), "a second cancel finds nothing open"
    assert not work.extend(held)
    candidate.refresh_from_db()
    measured.refresh_from_db()
    assert (candidate.state, measured.state) == (State.CANCELLED, State.DONE)


def test_a_cancelled_run_is_not_begun_by_builds_that_finish_later() -> None:
    task = factories.task()
    candidate = factories.candidate(task)
    ledger.cancel(task.run, None)
    done(candidate.build)
    ledger.on_build_finished(candidate.build)
    assert not ledger.ready_tasks("cpu").exists()


def test_what_three_dead_workers_left_is_carried_on() -> None:
    """A quarantined build and a quarantined task must not keep their run open for ever."""
    task = factories.task()
    candidate = factories.candidate(task)
    reason = "3 workers died while they worked on it"
    Build.objects.filter(pk=candidate.build_id).update(state=State.QUARANTINED, reason=reason)
    ledger.reconcile()
    candidate.refresh_from_db()
    assert (candidate.state, candidate.reason) == (State.REJECTED, reason)
    assert list(ledger.ready_tasks("cpu")) == [task]

    other = factories.task(run=task.run)
    left = factories.candidate(other)
    TuningTask.objects.filter(run=task.run).update(state=State.QUARANTINED, reason=reason)
    ledger.reconcile()
    left.refresh_from_db()
    assert (left.state, left.stage) == (State.QUARANTINED, "crash")
    run = TuningRun.objects.get()
    assert (run.state, run.reason) == (State.QUARANTINED, f"nothing was measured: {reason}")


def test_runs_of_a_graph_that_cannot_be_prepared_say_why() -> None:
    graph = factories.graph(state=State.REJECTED, reason="a cycle")
    run = TuningRun.objects.create(graph=graph, device="cpu", target="cpu", note="small sizes")
    ledger.drop_runs(graph, "the graph cannot be scheduled: a cycle")
    run.refresh_from_db()
    assert run.state == State.REJECTED
    assert (run.note, run.reason) == ("small sizes", "the graph cannot be scheduled: a cycle")
