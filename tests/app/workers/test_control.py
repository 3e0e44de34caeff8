"""Workers are paused, drained and pinned from the page of devices, and do as they are asked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from codegen_app import tasks
from codegen_app.accounts.models import AuditEntry
from codegen_app.graphs.models import Graph
from codegen_app.site import periodic_jobs, queued_work
from codegen_app.tuning.models import TuningTask
from codegen_app.workers import controls
from codegen_app.workers.liveness import STUCK_AFTER, Progress, StallDetector
from codegen_app.workers.models import Control, State, Worker
from tests.app import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def worker() -> Iterator[Worker]:
    """This process, for as long as the test takes."""
    now = timezone.now()
    queues = ["prepare", "measure.cpu"]
    yield Worker.objects.create(
        name="bench-1", host="h", pid=1, queues=queues, started_at=now, seen_at=now
    )
    controls._worker_name.clear()


def ask(
    client: Client, worker: Worker, do: str, why: str = "to look at it", queue: str = ""
) -> int:
    given = {"worker": worker.pk, "do": do, "why": why, "queue": queue}
    return client.post("/workers/steer", given).status_code


def state(worker: Worker) -> tuple[str, str]:
    worker.refresh_from_db()
    return worker.control, worker.pinned_to


def test_what_is_asked_is_kept_noted_and_shown(tuner: Client, worker: Worker) -> None:
    assert ask(tuner, worker, "pause") == 302
    assert state(worker) == (Control.PAUSE, "")
    entry = AuditEntry.objects.get(action="pause worker")
    assert (entry.actor_name, entry.why) == ("tuner", "to look at it")
    text = " ".join(tuner.get("/devices").content.decode().split())
    assert "paused" in text and "by tuner" in text and ": to look at it" in text
    (row,) = tuner.get("/devices.json").json()["workers"]
    assert (row["control"], row["control_by"], row["pinned_to"]) == ("pause", "tuner", "")

    assert ask(tuner, worker, "pause") == 302
    assert AuditEntry.objects.filter(action="pause worker").count() == 1, "it is so already"
    assert ask(tuner, worker, "drain") == 302
    assert state(worker) == (Control.DRAIN, "")
    assert ask(tuner, worker, "pin", queue="measure.cpu") == 302
    assert ask(tuner, worker, "go") == 302
    assert state(worker) == (Control.GO, "measure.cpu")
    assert ask(tuner, worker, "pin") == 302
    assert state(worker) == (Control.GO, "")
    acts = ["drain worker", "pin worker", "resume worker", "unpin worker"]
    assert sorted(set(AuditEntry.objects.values_list("action", flat=True)) & {*acts}) == acts


def test_what_cannot_be_asked_is_said_beside_the_form(tuner: Client, worker: Worker) -> None:
    answer = tuner.post("/workers/steer", {"worker": worker.pk, "do": "pause"})
    assert answer.status_code == 422
    assert "Enter a reason" in answer.content.decode()
    assert ask(tuner, worker, "pin", queue="measure.gfx942") == 422
    assert ask(tuner, worker, "stop") == 422
    given = {"worker": 10**6, "do": "pause", "why": "x"}
    answer = tuner.post("/workers/steer", given)
    assert "This worker no longer exists." in answer.content.decode()
    assert state(worker) == (Control.GO, "")


def test_who_may_not_ask_sees_what_was_asked(reader: Client, worker: Worker) -> None:
    controls.set_control(worker, Control.DRAIN, User.objects.create_user("lead"), "new fans")
    assert ask(reader, worker, "go") == 403
    text = reader.get("/devices").content.decode()
    assert "new fans" in text and 'id="steer"' not in text
    assert state(worker) == (Control.DRAIN, "")


@pytest.mark.parametrize("control", [Control.PAUSE, Control.DRAIN])
def test_a_worker_that_is_paused_takes_nothing_until_it_goes_on(
    worker: Worker, control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    controls.set_worker_name(worker.name)
    factories.graph()
    done: list[int] = []
    monkeypatch.setattr(tasks.preparation, "prepare", lambda graph: done.append(graph.pk))
    controls.set_control(worker, control, None, "")
    tasks.prepare()
    assert not done
    assert Graph.objects.get().state == State.QUEUED

    idle, limit_s = Progress(received=3, busy=False), STUCK_AFTER.total_seconds()
    watch = StallDetector(["prepare"], queued_work.has_work)
    assert not any(watch.is_stuck(idle, at) for at in (0.0, 1.0, 2 * limit_s)), "it is to be idle"

    controls.set_control(worker, Control.GO, None, "")
    tasks.prepare()
    assert done == [Graph.objects.get().pk]


def test_a_pinned_worker_serves_its_queue_alone(worker: Worker) -> None:
    controls.set_worker_name(worker.name)
    controls.pin(worker, "measure.cpu", None, "")
    assert controls.may_take("measure.cpu")
    assert not controls.may_take("prepare")
    controls.pin(worker, "", None, "")
    assert controls.may_take("prepare")


def test_a_paused_worker_takes_no_task(worker: Worker) -> None:
    controls.set_worker_name(worker.name)
    task = factories.task()
    controls.set_control(worker, Control.PAUSE, None, "")
    tasks.measure("cpu")
    assert TuningTask.objects.get(pk=task.pk).attempts == 0


def test_what_was_asked_outlives_a_worker_that_is_away_for_long(worker: Worker) -> None:
    long_ago = timezone.now() - timedelta(days=30)
    other = Worker.objects.create(
        name="gone", host="h", pid=2, started_at=long_ago, seen_at=long_ago
    )
    Worker.objects.filter(pk=worker.pk).update(seen_at=long_ago)
    controls.set_control(worker, Control.PAUSE, None, "")
    periodic_jobs.clean_up()
    assert Worker.objects.filter(pk=worker.pk).exists()
    assert not Worker.objects.filter(pk=other.pk).exists()


def test_why_devices_are_not_there_is_said_once(tuner: Client) -> None:
    """However many workers have the same reason; one that is gone says nothing any more."""
    now = timezone.now()
    absent = [{"kind": "rocm", "reason": "libamdhip64.so is not there"}]
    seen = {"a": now, "b": now, "gone": now - timedelta(days=1)}
    for name, at in seen.items():
        Worker.objects.create(
            name=name, host=name, pid=1, started_at=at, seen_at=at, absent=absent
        )  # fmt: skip
    text = " ".join(tuner.get("/devices").content.decode().split())
    assert text.count("for a, b: libamdhip64.so is not there") == 1
