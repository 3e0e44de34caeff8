"""What a remote worker may send of builds that it measures again: by hand, against the API."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from codegen_app.accounts import tokens
from codegen_app.platform.models import Artifact
from codegen_app.remote.models import LeaseEnd, RemoteLease
from codegen_app.tracking.models import Alert, Datum, Remeasurement, Series, Source
from codegen_app.tracking.queries.remeasurable import device_models
from codegen_app.tracking.remeasuring import requests
from codegen_app.workers import controls, work
from codegen_app.workers.models import Control, State, Worker
from tests.support.own_alert import own_alert
from tests.support.remote_worker import DEVICE, Remote, refused, result

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lead() -> User:
    return User.objects.create_superuser("lead")


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Alert:
    return own_alert(monkeypatch)


def joined(client: Client, lead: User, name: str) -> Remote:
    """A worker with a device of the series' model."""
    token = tokens.create_token(lead, name, ["worker"], None, worker_name=name)[1]
    made = Remote(client, token)
    device = DEVICE | {"name": Series.objects.get().device_name}
    assert made.hello(devices=[device]).status_code == 200
    return made


@pytest.fixture
def remote(client: Client, own: Alert, lead: User) -> Remote:
    return joined(client, lead, "bench")


@pytest.fixture
def again(remote: Remote, own: Alert, lead: User) -> dict[str, Any]:
    """Both builds of the change, leased."""
    requests.request_remeasurement(own, lead)
    answer = remote.lease()
    assert answer["task"] is None
    found: dict[str, Any] = answer["again"]
    return found


def finish(remote: Remote, key: str, *results: Any, **other: Any) -> Any:
    body = {"lease": key, "device": "cpu", "lines": [], "results": list(results)}
    return remote.post("finish", body | other)


def again_datums() -> list[Datum]:
    return list(Datum.objects.filter(source=Source.AGAIN).order_by("at"))


def keys(again: dict[str, Any]) -> list[str]:
    return [one["key"] for one in again["repeats"]]


def row() -> Remeasurement:
    return Remeasurement.objects.get()


@pytest.mark.full
def test_builds_are_leased_measured_and_recorded_once(
    remote: Remote, again: dict[str, Any]
) -> None:
    assert remote.lease()["again"] == again, "the answer may not have arrived"
    assert (again["device"], again["target"], len(keys(again))) == ("cpu", "cpu", 2)
    key, first, second = again["lease"], *keys(again)
    for repeat in again["repeats"]:
        answer = remote.get(f"leases/{key}/files/{repeat['library']['digest']}")
        assert answer.status_code == 200
        assert len(answer.getvalue()) == repeat["library"]["size_bytes"]
    assert remote.get(f"leases/{key}/files/{again['places'][0]['graph']}").status_code == 200

    body = {"lease": key, "device": "cpu", "results": [], "samples": 7, "samples_due": 30}
    for _ in range(2):  # the answer to the first may not have arrived
        assert remote.post("progress", body).json() == {"say": "go on", "why": ""}
    assert (row().state, row().samples, row().samples_due) == (State.RUNNING, 7, 30)

    results = (result(first, 100.0, 101.0), result(second, 130.0, 131.0))
    for _ in range(2):
        answer = finish(remote, key, *results, samples=30, samples_due=30)
        assert answer.status_code == 200, answer.content
    assert (row().state, row().attempts, row().worker) == (State.DONE, 1, "bench")
    assert row().samples == 30
    points = list(row().points.select_related("datum__build", "original"))
    assert [point.datum for point in points] == again_datums()
    for point in points:
        new, old = point.datum, point.original
        assert new is not None
        assert (new.series, new.revision, new.at) == (old.series, old.revision, old.at)
        assert (new.build, new.kernel) == (old.build, old.kernel)
        assert new.conditions.facts["driver"] == DEVICE["driver"]
        assert new.result is not None
        assert new.result.bindings == old.series.sizes
        assert "bandwidth" in new.result.metrics
    assert [new.samples for new in again_datums()] == [[100.0, 101.0], [130.0, 131.0]]
    lease = RemoteLease.objects.get()
    assert (lease.end, lease.results, lease.device) == (LeaseEnd.FINISHED, 2, "cpu")
    assert remote.lease()["again"] is None


@pytest.mark.full
def test_a_side_without_a_time_and_points_that_nothing_is_said_of(
    remote: Remote, again: dict[str, Any]
) -> None:
    loss = {"stage": "check", "reason": "wrong result: error 2", "detail": ""}
    first = {"kernel": keys(again)[0], "measured": None, "loss": loss}
    assert finish(remote, again["lease"], first).status_code == 200
    assert row().state == State.REJECTED
    assert row().reason.endswith("before the change could be measured: wrong result: error 2")
    reasons = [point.reason for point in row().points.all()]
    assert reasons == ["wrong result: error 2", "the worker reported no result"]
    assert not again_datums()


@pytest.mark.full
def test_what_is_none_of_the_work_is_turned_down(
    client: Client, remote: Remote, again: dict[str, Any], lead: User
) -> None:
    key, first = again["lease"], keys(again)[0]
    alien = result("999999", 1.0)
    assert refused(finish(remote, key, alien), 422, "is no point of this work")
    twice = (result(first, 1.0), result(first, 2.0))
    assert refused(finish(remote, key, *twice), 422, "has two")
    line = {"kernel": "k", "state": "chosen", "tied": False, "reason": ""}
    lines = [line | {"measured": None, "loss": None}]
    assert refused(finish(remote, key, lines=lines), 422, "takes results only")
    assert refused(finish(remote, key, result(first, 1.0), device="other"), 422, "device")
    assert refused(remote.progress(key, result(first, 1.0)), 422, "when the task ends")
    assert remote.progress(key, device="").status_code == 200, "it waits for its device"
    assert refused(remote.post("builds", {"lease": key, "kernels": []}), 422, "not for a search")
    strange = Artifact.objects.exclude(
        digest__in=[
            *(one["library"]["digest"] for one in again["repeats"]),
            *(one["graph"] for one in again["places"]),
        ]
    ).first()
    digest = strange.digest if strange else "0" * 64
    assert remote.get(f"leases/{key}/files/{digest}").status_code == 404
    many = [result(str(n), 1.0) for n in range(65)]
    assert finish(remote, key, *many).status_code == 422
    assert remote.post("progress", {"lease": key, "samples": -1}).status_code == 422

    other = joined(client, lead, "other")
    assert refused(other.progress(key), 409, "no such lease")
    assert refused(finish(other, key, result(first, 1.0)), 409, "no such lease")
    assert other.lease()["again"] is None, "it is in the hands of the first"
    assert (row().state, again_datums()) == (State.RUNNING, [])


@pytest.mark.full
def test_what_was_cancelled_is_dropped(remote: Remote, again: dict[str, Any], lead: User) -> None:
    assert work.cancel(row(), lead)
    key = again["lease"]
    said = remote.progress(key).json()
    assert said == {"say": "stop", "why": "the remeasurement was cancelled"}
    answer = finish(remote, key, result(keys(again)[0], 1.0))
    assert refused(answer, 409, "the remeasurement was cancelled")
    assert (row().state, again_datums()) == (State.CANCELLED, [])
    assert RemoteLease.objects.get().end == LeaseEnd.EXPIRED


@pytest.mark.full
def test_a_lease_that_ran_out_is_handed_out_again(
    client: Client, remote: Remote, again: dict[str, Any], lead: User
) -> None:
    work.requeue_orphans()  # as for a lease that was not heard of
    Remeasurement.objects.update(again_at=None)
    other = joined(client, lead, "other")
    given = other.lease()["again"]
    assert given["repeats"] == again["repeats"]
    late = finish(remote, again["lease"], *(result(key, 1.0) for key in keys(again)))
    assert refused(late, 409, "the lease expired")
    done = finish(other, given["lease"], *(result(key, 2.0) for key in keys(given)))
    assert done.status_code == 200
    assert [one.samples for one in again_datums()] == [[2.0], [2.0]]
    assert (row().worker, row().attempts) == ("other", 2)


@pytest.mark.full
@pytest.mark.parametrize(
    ("why", "state", "end"),
    [
        ("stopped", State.QUEUED, LeaseEnd.GIVEN_BACK),
        ("machine", State.QUEUED, LeaseEnd.FAILED),
        ("died", State.QUEUED, LeaseEnd.FAILED),
        ("rejected", State.REJECTED, LeaseEnd.FAILED),
        ("bug", State.QUARANTINED, LeaseEnd.FAILED),
    ],
)
def test_a_worker_gives_it_up(
    remote: Remote, again: dict[str, Any], why: str, state: State, end: LeaseEnd
) -> None:
    body = {"lease": again["lease"], "why": why, "reason": "the room burns"}
    for _ in range(2):
        assert remote.post("give-up", body).status_code == 200
    assert (row().state, RemoteLease.objects.get().end) == (state, end)
    assert row().attempts == (0 if why == "stopped" else 1)


@pytest.mark.full
def test_a_paused_worker_gives_it_back_and_gets_none(
    remote: Remote, again: dict[str, Any], lead: User
) -> None:
    worker = Worker.objects.get(name="bench")
    controls.set_control(worker, Control.PAUSE, lead, "hot")
    assert remote.progress(again["lease"]).json() == {"say": "pause", "why": "hot"}
    remote.post("give-up", {"lease": again["lease"], "why": "stopped"})
    assert remote.lease()["again"] is None
    controls.set_control(worker, Control.GO, lead, "cool")
    assert keys(remote.lease()["again"]) == keys(again)


@pytest.mark.full
def test_a_file_that_the_storage_lost_is_not_there(
    remote: Remote, again: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = again["repeats"][0]["library"]["digest"]
    Artifact.objects.filter(digest=digest).update(path="elsewhere/library.so")
    answer = remote.get(f"leases/{again['lease']}/files/{digest}")
    assert refused(answer, 404, "is missing")
    assert row().state == State.RUNNING, "the others are measured"


@pytest.mark.full
def test_devices_of_joined_workers_count_where_they_serve_their_queue(remote: Remote) -> None:
    series = Series.objects.get()
    assert device_models() == {(series.target, series.device_name)}
    Worker.objects.update(queues=["measure.gfx950"])
    assert device_models() == set()
