"""Claims, leases and heartbeats: no row is worked on twice, none is lost, none kills for ever."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from codegen_app.models import Build, Graph, State
from codegen_app.services import work
from tests.app import factories


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


def claimed() -> Graph:
    row = work.claim_next(Graph.objects.all(), "w")
    assert row is not None
    return row


@pytest.mark.django_db
def test_a_living_worker_keeps_its_row() -> None:
    factories.graph()
    row = claimed()
    assert work.give_on_expired() == 0
    expire(row)
    assert work.extend(row)
    assert work.give_on_expired() == 0


@pytest.mark.django_db
def test_a_row_of_a_silent_worker_is_given_on_and_its_late_outcome_is_void() -> None:
    factories.graph()
    first = claimed()
    expire(first)
    assert work.give_on_expired() == 1
    second = claimed()
    assert (second.pk, second.attempts, second.deaths) == (first.pk, 2, 1)
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


@pytest.mark.django_db
def test_a_row_that_three_workers_died_over_is_set_aside_with_the_reason() -> None:
    factories.graph()
    for _ in range(3):
        expire(claimed())
        work.give_on_expired()
    row = Graph.objects.get()
    assert (row.state, row.deaths) == (State.QUARANTINED, 3)
    assert "3 workers died" in row.reason
    assert work.claim_next(Graph.objects.all(), "w") is None


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
    settings: pytest.FixtureRequest,
) -> None:
    settings.WORK_LEASE_S = 1
    factories.graph()
    row = claimed()
    expire(row)
    with work.heartbeat(row) as lease_lost:
        while not Graph.objects.filter(pk=row.pk, lease_until__gt=timezone.now()).exists():
            assert not lease_lost.wait(0.02)
        assert work.give_on_expired() == 0
        Graph.objects.filter(pk=row.pk).update(
            state=State.CANCELLED, claim="", lease_until=None, reason="cancelled"
        )
        assert lease_lost.wait(30)
