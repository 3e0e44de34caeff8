"""What a remote worker may send: held to its task, its device and the bounds, and taken once."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client

from codegen_app.accounts import tokens
from codegen_app.platform import artifacts, files
from codegen_app.remote.models import LeaseEnd, RemoteLease
from codegen_app.tuning.models import BenchmarkResult, Candidate, TuningRun, TuningTask
from codegen_app.tuning.services import ledger
from codegen_app.workers import controls, work
from codegen_app.workers.models import Control, State, Worker
from scheduler.errors import MachineError
from tests.app import factories
from tests.support.remote_worker import (
    CHECK,
    Remote,
    kernels,
    line,
    refused,
    result,
    samples,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def lead() -> User:
    return User.objects.create_superuser("lead")


@pytest.fixture
def token(lead: User) -> str:
    return tokens.create_token(lead, "bench", ["worker"], None, worker_name="bench")[1]


@pytest.fixture
def remote(client: Client, token: str) -> Remote:
    made = Remote(client, token)
    assert made.hello().status_code == 200
    return made


@pytest.fixture
def task() -> TuningTask:
    """Of a run with two kernels that are built."""
    made = factories.task(title="mm")
    for _ in range(2):
        factories.candidate(made, build=factories.done_build(target="cpu"))
    return made


def test_a_task_is_leased_measured_and_decided(remote: Remote, task: TuningTask) -> None:
    first, second = kernels(task)
    work_given = remote.lease()
    given = work_given["task"]
    assert (work_given["say"], given["title"], given["device"]) == ("go on", "mm", "cpu")
    assert [one["kernel"] for one in given["libraries"]] == [first, second]
    assert remote.lease()["task"]["lease"] == given["lease"], "the answer may not have arrived"
    key = given["lease"]

    assert remote.progress(key).json() == {"say": "go on", "why": ""}
    for _ in range(2):  # the answer to the first may not have arrived
        assert remote.progress(key, result(first, 300.0)).json()["say"] == "go on"
    row = BenchmarkResult.objects.get()
    assert (row.median_ns, row.samples_ns, row.environment.device) == (300.0, [300.0], "cpu")
    remote.progress(key, result(first, 1.0))
    assert BenchmarkResult.objects.get().median_ns == 300.0, "what is known is not overwritten"
    loss = {"stage": "check", "reason": "wrong result: error 2", "detail": "at [0]"}
    remote.progress(key, {"kernel": second, "measured": None, "loss": loss})
    assert RemoteLease.objects.get().results == 2

    lines = (line(first, "chosen"), line(second, "wrong", loss=loss))
    for _ in range(2):
        assert remote.finish(key, *lines).status_code == 200
    task.refresh_from_db()
    assert (task.state, task.attempts) == (State.DONE, 1)
    assert TuningRun.objects.get().state == State.DONE
    rows = {row.kernel.name: row for row in task.candidates.all()}
    assert rows[first].chosen and rows[first].state == State.DONE
    assert (rows[second].state, rows[second].stage) == (State.REJECTED, "check")
    assert RemoteLease.objects.get().end == LeaseEnd.FINISHED
    assert remote.lease()["task"] is None


def test_the_last_rounds_take_the_place_of_a_first_impression(
    remote: Remote, task: TuningTask
) -> None:
    first, second = kernels(task)
    key = remote.lease()["task"]["lease"]
    remote.progress(key, result(first, 300.0), result(second, 200.0))
    lines = (
        line(first, "measured", tied=True),
        line(second, "chosen", tied=True, measured=samples(210.0, 211.0, 212.0)),
    )
    assert remote.finish(key, *lines).status_code == 200
    assert BenchmarkResult.objects.get(kernel__name=second).median_ns == 211.0
    assert BenchmarkResult.objects.get(kernel__name=first).median_ns == 300.0


def test_what_the_worker_does_not_make_is_said_to_be_unknown(
    remote: Remote, task: TuningTask
) -> None:
    first, second = kernels(task)
    key = remote.lease()["task"]["lease"]
    remote.progress(key, result(first, 300.0))
    assert remote.finish(key, line(first, "chosen")).status_code == 200
    row = Candidate.objects.get(kernel__name=second)
    assert (row.state, row.stage) == (State.REJECTED, "render")


@pytest.mark.full(but=7)
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"samples_ns": [float("nan")]}, "finite"),
        ({"samples_ns": [float("inf")]}, "finite"),
        ({"samples_ns": []}, "at least 1"),
        ({"samples_ns": [0.0]}, "greater than 0"),
        ({"samples_ns": [-1.0]}, "greater than 0"),
        ({"samples_ns": ["1.0"]}, "valid number"),
        ({"samples_ns": [1.0] * 2_001}, "at most 2000"),
        ({"samples_ns": {"0": 1.0}}, "valid list"),
        ({"batch": 0}, "greater than or equal to 1"),
        ({"batch": True}, "valid integer"),
        ({"check": CHECK | {"passed": False}}, "True"),
        ({"check": CHECK | {"ratio": 1.5}}, "less than or equal to 1"),
        ({"check": CHECK | {"bound": float("nan")}}, "finite"),
        ({"check": CHECK | {"detail": "x" * 20_001}}, "at most 20000"),
        ({"check": CHECK | {"detail": "a\0b"}}, "pattern"),
        ({"readings": {"a b": [1.0]}}, "pattern"),
        ({"readings": {f"r{n}": [1.0] for n in range(17)}}, "at most 16"),
        ({"readings": {"mhz": [float("-inf")]}}, "finite"),
        ({"rejected": [["x", 1.0]]}, "a time and a reason"),
        ({"rejected": [[1.0, "x", 2.0]]}, "at most 2"),
        ({"metrics": {}}, "not permitted"),
    ],
    ids=repr,
)
def test_samples_that_are_none_are_turned_down(
    remote: Remote, task: TuningTask, changed: dict[str, Any], words: str
) -> None:
    key = remote.lease()["task"]["lease"]
    sent = result(kernels(task)[0])
    sent["measured"] |= changed
    assert refused(remote.progress(key, sent), 422, words)
    assert not BenchmarkResult.objects.exists()
    assert TuningTask.objects.get().state == State.RUNNING, "it is still the worker's"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("progress", "{", 400),
        ("progress", "[" * 100_000, 400),
        ("progress", '{"lease": 1e999}', 422),
        ("progress", "null", 422),
        ("progress", "9" * 10_000, 400),
        ("lease", '{"task": 1}', 422),
        ("finish", '{"lease": "x", "device": "cpu", "lines": []}', 422),
        ("give-up", '{"lease": "' + "0" * 32 + '", "why": "because"}', 422),
        ("give-up", '{"lease": "' + "0" * 32 + '", "why": "stopped"}', 409),
        ("progress", '{"lease": "' + "0" * 32 + '", "device": "cpu", "results": []}', 409),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bodies_that_are_none_get_one_line(
    remote: Remote, path: str, body: str, status: int
) -> None:
    assert refused(remote.post(path, body), status, "")


def test_more_than_may_be_sent_is_not_read(remote: Remote, task: TuningTask) -> None:
    key = remote.lease()["task"]["lease"]
    long = json.dumps({"lease": key, "device": "cpu", "results": []}) + " " * 2**20
    assert remote.post("progress", long).status_code == 413
    many = [result(kernels(task)[0])] * 33
    assert refused(remote.progress(key, *many), 422, "at most 32")


def test_results_are_of_the_task_and_its_device_alone(remote: Remote, task: TuningTask) -> None:
    first, second = kernels(task)
    other = factories.candidate(factories.task(), build=factories.done_build(target="cpu"))
    assert other.kernel is not None
    key = remote.lease()["task"]["lease"]
    answer = remote.progress(key, result(first), result(other.kernel.name))
    assert refused(answer, 422, "not a kernel of this task")
    assert not BenchmarkResult.objects.exists(), "the message whole or not at all"
    assert refused(remote.progress(key, result(first), device="rocm:0"), 422, "not what the task")
    assert remote.progress(key, result(first)).status_code == 200

    assert refused(remote.finish(key, line(other.kernel.name, "untried")), 422, "not a kernel of")
    assert refused(remote.finish(key, line(second, "chosen")), 422, "was not measured")
    two = (line(first, "chosen"), line(second, "chosen", measured=samples()))
    assert refused(remote.finish(key, *two), 422, "two kernels are marked chosen")
    assert refused(remote.finish(key, line(first, "chosen"), line(first, "wrong")), 422, "")
    assert refused(remote.finish(key, line(first, "served")), 422, "served")
    assert refused(
        remote.finish(key, line(first, "untried", measured=samples())), 422, "must not have"
    )
    assert TuningTask.objects.get(pk=task.pk).state == State.RUNNING
    assert not Candidate.objects.filter(chosen=True).exists()


def test_files_are_those_of_the_lease_alone(remote: Remote, task: TuningTask) -> None:
    stored = artifacts.store(b"a library", ".so")
    build = task.candidates.order_by("position").first().build
    build.library = stored
    build.save()
    secret = artifacts.store(b"another's model", ".pt2")
    key = remote.lease()["task"]["lease"]
    answer = remote.get(f"leases/{key}/files/{stored.digest}")
    assert b"".join(answer.streaming_content) == b"a library"
    assert remote.get(f"leases/{key}/files/..%2f..%2fetc").status_code == 404
    for digest in (secret.digest, "0" * 64, "..", "x"):
        assert refused(remote.get(f"leases/{key}/files/{digest}"), 404, "names no such file")
    assert remote.get(f"leases/{'0' * 32}/files/{stored.digest}").status_code == 409
    remote.finish(key)
    assert remote.get(f"leases/{key}/files/{stored.digest}").status_code == 409


def test_a_library_that_is_gone_is_built_again(remote: Remote, task: TuningTask) -> None:
    given = remote.lease()["task"]
    answer = remote.get(f"leases/{given['lease']}/files/{given['libraries'][0]['digest']}")
    assert refused(answer, 409, "is missing from the storage")
    task.refresh_from_db()
    assert (task.state, "missing" in task.reason) == (State.QUEUED, True)
    first, second = task.candidates.order_by("position")
    assert (first.build.state, second.build.state) == (State.QUEUED, State.DONE)
    TuningTask.objects.update(again_at=None)
    assert remote.lease()["task"] is None, "it waits for the build"


def test_a_storage_that_is_away_is_asked_again(
    remote: Remote, task: TuningTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No fault of the task's, nor of what the worker asked."""

    def away(*_: str) -> None:
        raise MachineError("the storage does not answer")

    given = remote.lease()["task"]
    monkeypatch.setattr(files, "open_file", away)
    answer = remote.get(f"leases/{given['lease']}/files/{given['libraries'][0]['digest']}")
    assert refused(answer, 503, "does not answer")
    assert TuningTask.objects.get().state == State.RUNNING


def test_a_lease_is_its_workers_alone(
    remote: Remote, client: Client, lead: User, task: TuningTask
) -> None:
    key = remote.lease()["task"]["lease"]
    text = tokens.create_token(lead, "other", ["worker"], None, worker_name="other")[1]
    other = Remote(client, text)
    other.hello()
    assert other.lease()["task"] is None, "it is held"
    assert refused(other.progress(key, result(kernels(task)[0])), 409, "no such lease")
    assert refused(other.finish(key), 409, "no such lease")
    assert refused(other.post("give-up", {"lease": key, "why": "stopped"}), 409, "no such lease")
    other.session = remote.session
    assert refused(other.post("lease", {}), 409, "this session is over")


def test_a_lease_that_ran_out_is_over(remote: Remote, task: TuningTask) -> None:
    key = remote.lease()["task"]["lease"]
    TuningTask.objects.update(lease_until=Now() - timedelta(seconds=1))
    assert work.requeue_expired() == 1
    reply = remote.progress(key, result(kernels(task)[0])).json()
    assert (reply["say"], "lease expired" in reply["why"]) == ("stop", True)
    assert refused(remote.finish(key, line(kernels(task)[0], "untried")), 409, "lease")
    assert not BenchmarkResult.objects.exists()
    assert RemoteLease.objects.get().end == LeaseEnd.EXPIRED
    task.refresh_from_db()
    assert (task.state, task.deaths) == (State.QUEUED, 0)
    again = remote.lease()["task"]["lease"]
    assert again != key


@pytest.mark.parametrize("sends", ["progress", "finish", "file"])
def test_a_lease_is_over_once_another_worker_has_the_task(
    remote: Remote, client: Client, lead: User, task: TuningTask, sends: str
) -> None:
    """Whatever the first one still sends is not taken for what the other one found."""
    given = remote.lease()["task"]
    key, first = given["lease"], kernels(task)[0]
    TuningTask.objects.update(lease_until=Now() - timedelta(seconds=1))
    assert work.requeue_expired() == 1
    other = Remote(
        client, tokens.create_token(lead, "other", ["worker"], None, worker_name="other")[1]
    )
    other.hello()
    taken = other.lease()["task"]["lease"]
    if sends == "progress":
        assert remote.progress(key, result(first, 1.0)).json()["say"] == "stop"
    elif sends == "finish":
        lines = (line(first, "chosen", measured=samples(1.0)), line(kernels(task)[1], "untried"))
        assert refused(remote.finish(key, *lines), 409, "the task was reassigned")
    else:
        answer = remote.get(f"leases/{key}/files/{given['libraries'][0]['digest']}")
        assert refused(answer, 409, "the task was reassigned")
    assert not BenchmarkResult.objects.exists()
    assert other.progress(taken, result(first, 300.0)).json()["say"] == "go on"
    assert BenchmarkResult.objects.get().median_ns == 300.0


def test_a_cancelled_run_stops_its_worker(remote: Remote, lead: User, task: TuningTask) -> None:
    key = remote.lease()["task"]["lease"]
    ledger.cancel(task.run, lead)
    reply = remote.progress(key, result(kernels(task)[0])).json()
    assert reply == {"say": "stop", "why": f"run {task.run.pk} was cancelled"}
    assert not BenchmarkResult.objects.exists()


def test_a_task_goes_back_by_whatever_reason_is_given(remote: Remote, task: TuningTask) -> None:
    def give_up(why: str, **other: Any) -> TuningTask:
        key = remote.lease()["task"]["lease"]
        for _ in range(2):
            body = {"lease": key, "why": why} | other
            assert remote.post("give-up", body).status_code == 200
        found = TuningTask.objects.get()
        TuningTask.objects.update(again_at=None)
        return found

    assert (give_up("stopped").state, give_up("stopped").attempts) == (State.QUEUED, 0)
    machine = give_up("machine", reason="the disk is full")
    assert "the disk is full (on bench)" in machine.reason
    died = give_up("died", reason="the process ended")
    assert (died.state, died.deaths, died.faults) == (State.QUEUED, 1, 2)
    bug = give_up("bug", reason="internal error: KeyError", detail="Traceback")
    assert (bug.state, bug.detail) == (State.QUARANTINED, "Traceback")


def test_a_task_that_cannot_be_measured_there_is_closed(remote: Remote, task: TuningTask) -> None:
    key = remote.lease()["task"]["lease"]
    body = {"lease": key, "why": "rejected", "reason": "no memory holds it\nat all"}
    assert remote.post("give-up", body).status_code == 200
    task.refresh_from_db()
    assert (task.state, task.stage) == (State.REJECTED, "load")
    assert not task.candidates.exclude(state=State.REJECTED).exists()


def test_a_process_that_comes_back_may_deliver_and_another_may_not(
    remote: Remote, task: TuningTask
) -> None:
    key = remote.lease()["task"]["lease"]
    before = remote.session
    assert remote.hello(holds=key).status_code == 200
    assert remote.progress(key, result(kernels(task)[0])).json()["say"] == "go on"
    now, remote.session = remote.session, before
    assert refused(remote.progress(key), 409, "another process joined")
    remote.session = now
    assert remote.hello().status_code == 200
    task.refresh_from_db()
    assert (task.state, task.deaths) == (State.QUEUED, 1), "it ended over the task"
    TuningTask.objects.update(again_at=None)
    (seen,) = remote.lease()["task"]["seen"]
    assert seen["kernel"] == kernels(task)[0], "it is not measured again"


def test_tasks_of_other_devices_are_left_to_others(remote: Remote, task: TuningTask) -> None:
    runs = TuningRun.objects.filter(pk=task.run_id)
    for fields in (
        {"device": "cpu-gfx942"},
        {"target": "gfx942"},
    ):
        before = runs.values(*fields).get()
        runs.update(**fields)
        assert remote.lease()["task"] is None, fields
        runs.update(**before)
    assert remote.lease()["task"] is not None


def test_a_steered_worker_hears_it_with_each_answer(
    remote: Remote, lead: User, task: TuningTask
) -> None:
    worker = Worker.objects.get()
    controls.pin(worker, "", lead, "")
    controls.set_control(worker, Control.PAUSE, lead, "hot")
    answer = remote.lease()
    assert (answer["say"], answer["why"], answer["task"]) == ("pause", "hot", None)
    controls.set_control(worker, Control.GO, lead, "cool")
    key = remote.lease()["task"]["lease"]
    for control, word in ((Control.PAUSE, "pause"), (Control.DRAIN, "drain")):
        controls.set_control(worker, control, lead, "why")
        assert remote.progress(key).json() == {"say": word, "why": "why"}
    remote.hello(holds=key)
    worker.refresh_from_db()
    assert worker.control == Control.DRAIN, "it outlives the process"


def test_leaving_gives_back_what_is_held(remote: Remote, task: TuningTask) -> None:
    remote.lease()
    assert remote.post("leave", {}).status_code == 200
    assert TuningTask.objects.get().state == State.QUEUED
    assert Worker.objects.get().is_alive is False
    assert remote.post("lease", {}).status_code == 409
