"""The machine's clock is set back or forward an hour: work goes on within its usual times."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from codegen_app.graphs.models import Graph
from codegen_app.tuning.models import Selection
from codegen_app.tuning.services import selections
from codegen_app.workers import work
from codegen_app.workers.models import State, Worker
from tests.app import factories

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def test_a_row_whose_worker_died_before_the_clock_was_set_back_is_given_on() -> None:
    """Its lease would run for an hour more."""
    factories.graph()
    row = work.claim_next(Graph.objects.all(), "host:77")
    assert row is not None
    Graph.objects.update(lease_until=F("lease_until") + HOUR, heartbeat_at=F("heartbeat_at") + HOUR)
    assert work.requeue_expired() == 1
    row.refresh_from_db()
    assert (row.state, row.deaths) == (State.QUEUED, 0)


def test_a_pause_of_before_the_clock_was_set_back_is_over() -> None:
    factories.graph()
    Graph.objects.update(again_at=timezone.now() + timedelta(seconds=60))
    assert work.claim_next(Graph.objects.all(), "w") is None, "a pause like any other"
    Graph.objects.update(again_at=timezone.now() + HOUR)
    assert work.claim_next(Graph.objects.all(), "w") is not None


def test_a_clock_that_is_set_forward_costs_a_claim_and_no_blame() -> None:
    factories.graph()
    row = work.claim_next(Graph.objects.all(), "host:77")
    assert row is not None
    Graph.objects.update(lease_until=F("lease_until") - HOUR)
    assert work.requeue_expired() == 1
    row.refresh_from_db()
    assert (row.state, row.deaths) == (State.QUEUED, 0)


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
def test_a_worker_whose_sign_is_of_another_time_is_not_alive(ahead: timedelta) -> None:
    now = timezone.now()
    worker = Worker(name="w", host="h", pid=1, started_at=now, seen_at=now)
    assert worker.is_alive
    worker.seen_at = now + ahead
    assert not worker.is_alive


def test_a_choice_replaces_one_that_seems_to_be_of_the_future() -> None:
    environment, task = factories.environment(), factories.task()
    common = {"problem": task.problem, "environment": environment}
    first, second = factories.build(toolchain_digest="c"), factories.build(toolchain_digest="c")
    selections.offer(factories.result(first, 900.0, **common), "run 1")
    Selection.objects.update(since=timezone.now() + HOUR)
    chosen, _ = selections.offer(factories.result(second, 400.0, **common), "run 2")
    assert chosen.kernel == second.kernel
    old = Selection.objects.get(kernel=first.kernel)
    assert old.until == old.since == chosen.since
