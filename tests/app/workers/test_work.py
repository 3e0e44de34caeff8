"""Claims, leases and heartbeats: no row is worked on twice, none is lost, none kills for ever."""

from __future__ import annotations

import errno
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as project
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from codegen_app.graphs.models import Graph
from codegen_app.kernels.models import Build
from codegen_app.platform.files import MissingFileError
from codegen_app.workers import work
from codegen_app.workers.models import State, Worker
from scheduler.errors import MachineError
from tests.app import factories
from tests.support.patience import PATIENCE_S

HOST = socket.gethostname()


@pytest.mark.django_db(transaction=True)
def test_many_workers_take_each_row_once() -> None:
    rows = {factories.graph().pk for _ in range(12)}

    def worker(number: int) -> list[int]:
        taken = []
        try:
            while (row := work.claim_next(Graph.objects.all(), f"w{number}")) is not None:
                taken.append(row.pk)
        finally:
            connection.close()
        return taken

    with ThreadPoolExecutor(4) as pool:
        taken = [pk for mine in pool.map(worker, range(4)) for pk in mine]
    assert sorted(taken) == sorted(rows)


@pytest.mark.django_db
def test_the_most_urgent_is_claimed_first_and_then_the_oldest() -> None:
    old, new, urgent = factories.graph(), factories.graph(), factories.graph(priority=3)
    order = [work.claim_next(Graph.objects.all(), "w") for _ in range(3)]
    assert [row and row.pk for row in order] == [urgent.pk, old.pk, new.pk]
    assert work.claim_next(Graph.objects.all(), "w") is None


def expire(row: Graph) -> None:
    Graph.objects.filter(pk=row.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def claimed(name: str = "w") -> Graph:
    row = work.claim_next(Graph.objects.all(), name)
    assert row is not None
    return row


@pytest.mark.django_db
def test_a_living_worker_keeps_its_row() -> None:
    factories.graph()
    row = claimed()
    assert work.requeue_expired() == 0
    expire(row)
    assert work.extend(row)
    assert work.requeue_expired() == 0


@pytest.mark.django_db
def test_a_row_of_a_silent_worker_is_given_on_and_its_late_outcome_is_void() -> None:
    factories.graph()
    first = claimed()
    expire(first)
    assert work.requeue_expired() == 1
    second = claimed()
    assert (second.pk, second.attempts, second.deaths) == (first.pk, 2, 0)
    with pytest.raises(work.LeaseLostError), transaction.atomic():
        work.finish(first, State.DONE, wrapper="of the silent worker")
    assert not work.extend(first)
    work.finish(second, State.DONE, wrapper="of the living worker")
    done = Graph.objects.get()
    assert (done.state, done.wrapper, done.lease_until) == (
        State.DONE,
        "of the living worker",
        None,
    )


def worker_lives() -> None:
    """Another worker of the host, which lives on whatever happens to the claiming one."""
    long_ago = timezone.now() - timedelta(days=1)
    Worker.objects.create(
        name="w", host="host", pid=os.getppid(), started_at=long_ago, seen_at=timezone.now()
    )


@pytest.mark.django_db
def test_a_row_over_which_processes_die_while_others_are_done_is_set_aside_with_the_reason() -> (
    None
):
    worker_lives()
    factories.graph(state=State.DONE, finished_at=timezone.now())
    row = factories.graph()
    for number in range(project.WORK_DEATHS_ALLOWED):
        row.refresh_from_db()
        assert (row.state, row.deaths) == (State.QUEUED, number)
        assert number == 0 or "ended while it worked on this; tried again at" in row.reason
        Graph.objects.update(again_at=None)  # the pause is over
        expire(claimed("host:77"))
        work.requeue_expired()
    row.refresh_from_db()
    assert (row.state, row.deaths) == (State.QUARANTINED, project.WORK_DEATHS_ALLOWED)
    assert row.reason.startswith(f"{row.deaths} times: the process host:77 ended while it worked")
    assert work.claim_next(Graph.objects.all(), "w") is None


@pytest.mark.django_db
def test_a_row_that_dies_alone_in_an_idle_system_is_tried_longer() -> None:
    worker_lives()
    row = factories.graph()
    for _ in range(project.WORK_DEATHS_ALLOWED + 1):
        Graph.objects.update(again_at=None)
        expire(claimed("host:77"))
        work.requeue_expired()
    row.refresh_from_db()
    assert row.state == State.QUEUED


@pytest.mark.django_db
def test_power_cuts_and_workers_that_are_gone_are_not_the_rows_doing() -> None:
    row = factories.graph()
    for _ in range(40):
        expire(claimed("host:77"))
        work.requeue_expired()
        claimed("host:78")
        work.requeue_orphans()
    row.refresh_from_db()
    assert (row.state, row.deaths, row.faults, row.again_at) == (State.QUEUED, 0, 80, None)
    assert row.reason == "the worker host:78 is offline; tried again"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.ENOSPC, "", "/x/y"), f"the disk is full on {HOST}: /x/y; tried again at"),
        (OSError(errno.EIO, ""), f"the disk cannot be read or written on {HOST}; tried"),
        (OSError(errno.EMFILE, ""), f"too many files are open on {HOST}; tried"),
        (MemoryError(), f"memory ran out on {HOST}; tried"),
        (MachineError("no space left for artifacts"), "no space left for artifacts (on"),
        (OperationalError("gone"), "the database was away; tried"),
        (MissingFileError("sha256/0 is missing"), "sha256/0 is missing: import or build it again"),
    ],
)
def test_a_failure_of_the_machine_is_none_of_the_work(
    error: Exception, reason: str, settings: Any
) -> None:
    settings.WORK_RETRY_S = 60  # each pause is seen before it is over
    factories.graph()

    def fail(_: Graph) -> None:
        raise error

    pauses = []
    for _ in range(3):
        Graph.objects.update(again_at=None)
        work.attempt(claimed(), fail)
        row = Graph.objects.get()
        assert row.state == State.QUEUED
        assert row.reason.startswith(reason)
        assert work.claim_next(Graph.objects.all(), "w") is None, "not before its pause is over"
        assert row.again_at is not None
        pauses.append((row.again_at - timezone.now()).total_seconds())
    assert pauses[0] < pauses[1] < pauses[2]
    Graph.objects.update(again_at=timezone.now())
    work.finish(claimed(), State.DONE)
    row = Graph.objects.get()
    assert (row.state, row.reason, row.faults, row.again_at) == (State.DONE, "", 0, None)


@pytest.mark.django_db
def test_a_bug_is_no_failure_of_the_machine() -> None:
    factories.graph()

    def fail(_: Graph) -> None:
        raise FileNotFoundError(errno.ENOENT, "", "/x")

    with pytest.raises(FileNotFoundError):
        work.attempt(claimed(), fail)
    assert Graph.objects.get().state == State.QUARANTINED


@pytest.mark.django_db
def test_a_worker_that_is_stopped_harms_nothing() -> None:
    factories.graph()
    for _ in range(5):
        claimed()
        work.release_all()
    row = Graph.objects.get()
    assert (row.state, row.deaths, row.attempts) == (State.QUEUED, 0, 0)


@pytest.mark.django_db
def test_an_error_of_our_own_is_set_aside_where_it_can_be_seen() -> None:
    factories.build()
    row = work.claim_next(Build.objects.all(), "w")
    assert row is not None
    try:
        raise ValueError("no such thing\nand a second line")
    except ValueError as error:
        work.quarantine(row, error)
    seen = Build.objects.get()
    assert seen.state == State.QUARANTINED
    assert seen.reason == "internal error: ValueError: no such thing"
    assert "Traceback" in seen.detail


@pytest.mark.django_db(transaction=True)
def test_the_heartbeat_renews_the_lease_and_sees_that_another_claimed_the_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(work, "_HEARTBEATS_PER_LEASE", 600)  # often, of a lease that does not end
    factories.graph()
    row = claimed()
    expire(row)
    with work.heartbeat(row) as lease_lost:
        while not Graph.objects.filter(pk=row.pk, lease_until__gt=timezone.now()).exists():
            assert not lease_lost.wait(0.02)
        assert work.requeue_expired() == 0
        Graph.objects.filter(pk=row.pk).update(
            state=State.CANCELLED, claim="", lease_until=None, reason="cancelled"
        )
        assert lease_lost.wait(PATIENCE_S)
