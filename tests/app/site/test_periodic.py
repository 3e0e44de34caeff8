"""The periodic round: done by one worker at a time, by any that lives, and silent when idle."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import DatabaseError, connection
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from codegen_app.graphs.models import Graph
from codegen_app.platform.models import Round
from codegen_app.site import periodic, periodic_jobs
from codegen_app.workers import work
from codegen_app.workers.models import State, Worker
from tests.app import factories
from tests.support.patience import PATIENCE_S

MINUTE = timedelta(minutes=1)


@pytest.mark.django_db
def test_a_turn_is_taken_once_and_comes_again() -> None:
    assert periodic.take_turn("look after", MINUTE)
    assert not periodic.take_turn("look after", MINUTE)
    Round.objects.update(begun_at=F("begun_at") - 2 * MINUTE)
    assert periodic.take_turn("look after", MINUTE)
    assert not periodic.take_turn("look after", MINUTE)
    assert periodic.take_turn("clear out", MINUTE)


@pytest.mark.django_db
def test_a_clock_that_was_set_back_does_not_end_the_rounds() -> None:
    Round.objects.create(name="look after", begun_at=timezone.now() + timedelta(days=1))
    assert periodic.take_turn("look after", MINUTE)
    assert not periodic.take_turn("look after", MINUTE)


@pytest.mark.django_db(transaction=True)
def test_of_many_workers_one_has_the_turn() -> None:
    taken: list[bool] = []

    def ask() -> None:
        taken.append(periodic.take_turn("look after", MINUTE))
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [False, False, False, True]


@pytest.mark.django_db(transaction=True)
def test_whichever_worker_lives_gives_on_what_a_dead_one_held() -> None:
    """No process of its own, and no message, is needed for it."""
    graph = factories.graph()
    assert work.claim_next(Graph.objects.all(), "dead") is not None
    Graph.objects.update(lease_until=Now() - MINUTE)
    living = periodic.PeriodicThread()
    living.start()
    try:
        while Graph.objects.get(pk=graph.pk).state != State.QUEUED:
            assert living._thread.is_alive()
    finally:
        living.stop()
        living._thread.join(PATIENCE_S)
    assert not living._thread.is_alive()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("error", [DatabaseError("it is away"), ValueError("a bug")])
def test_a_round_that_fails_is_not_the_last(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = threading.Event()

    def fails_once() -> None:
        if not tries:
            tries.append(1)
            raise error
        done.set()

    tries: list[int] = []
    monkeypatch.setattr(periodic, "EVERY", timedelta(milliseconds=1))
    monkeypatch.setattr(periodic_jobs, "run_maintenance", fails_once)
    living = periodic.PeriodicThread()
    living.start()
    assert done.wait(PATIENCE_S)
    living.stop()
    living._thread.join(PATIENCE_S)


@pytest.mark.django_db
def test_a_step_that_fails_takes_no_other_along(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise ValueError("a bug")

    graph = factories.graph()
    assert work.claim_next(Graph.objects.all(), "dead") is not None
    Graph.objects.update(lease_until=Now() - MINUTE)
    monkeypatch.setattr(periodic_jobs, "_STEPS", (broken, *periodic_jobs._STEPS))
    periodic_jobs.run_maintenance()
    assert Graph.objects.get(pk=graph.pk).state == State.QUEUED
    assert "a step of the round failed: broken" in caplog.text


@pytest.mark.django_db
def test_a_round_without_work_says_and_sends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    periodic.run_due()
    assert caplog.records == []


@pytest.mark.django_db
def test_workers_that_went_and_sessions_that_ran_out_are_removed() -> None:
    facts = {"host": "h", "pid": 1, "started_at": timezone.now()}
    Worker.objects.create(name="here", seen_at=timezone.now(), **facts)
    Worker.objects.create(name="gone", seen_at=timezone.now() - timedelta(days=2), **facts)
    old, new = SessionStore(), SessionStore()
    old.set_expiry(-60)
    for session in (old, new):
        session.save()
    periodic_jobs.clean_up()
    assert [worker.name for worker in Worker.objects.all()] == ["here"]
    assert [row.session_key for row in Session.objects.all()] == [new.session_key]
