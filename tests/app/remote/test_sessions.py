"""Who may join as a remote worker, with which token, and what is said to others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from codegen_app.accounts import tokens
from codegen_app.accounts.models import ApiToken, Scope
from codegen_app.platform.models import Artifact
from codegen_app.workers.models import Worker
from scheduler.agent.version import PROTOCOL
from scheduler.errors import UserError
from tests.support.remote_worker import (
    DEVICE,
    Remote,
    refused,
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


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"protocol": PROTOCOL + 1}, "install the same version on both"),
        ({"generator": "0" * 64}, "install the same version on both"),
        ({"name": "other"}, "this token is for the worker bench"),
        ({"queue": "measure.gfx942"}, "no queue to serve"),
        ({"devices": []}, "no queue to serve"),
        ({"devices": [DEVICE | {"target": "gfx1"}]}, "no queue to serve"),
        ({"devices": [DEVICE | {"id": "isa:cpu"}]}, "no queue to serve"),
        ({"devices": [DEVICE | {"id": "model:MI300X", "target": "gfx942"}]}, "no queue to serve"),
        ({"devices": [DEVICE] * 65}, "at most 64"),
        ({"devices": [DEVICE | {"memory_bytes": -1}]}, "greater than or equal"),
        ({"devices": [DEVICE | {"name": "a\nb"}]}, "pattern"),
        ({"host": "a\0b"}, "pattern"),
        ({"host": "\ud800"}, "host"),
        ({"devices": [DEVICE | {"attributes": {"a": "\0"}}]}, "pattern"),
        ({"slot": 0}, "greater than or equal"),
        ({"pid": 2**40}, "less than or equal"),
        ({"surprise": 1}, "not permitted"),
    ],
    ids=repr,
)
def test_who_cannot_work_is_told_why_when_it_joins(
    client: Client, token: str, changed: dict[str, Any], words: str
) -> None:
    answer = Remote(client, token).hello(**changed)
    assert refused(answer, 422, words)
    assert not Worker.objects.exists()


def test_a_tokens_queue_and_slots_bound_what_is_served(client: Client, lead: User) -> None:
    text = tokens.create_token(
        *(lead, "b", ["worker"], None), worker_name="two-gpus", worker_queue="measure.cpu"
    )[1]
    remote = Remote(client, text)
    gpu = DEVICE | {"id": "rocm:0", "target": "gfx942", "emulated": False}
    assert remote.hello(devices=[DEVICE, gpu], slot=2).json()["queues"] == ["measure.cpu"]
    assert Worker.objects.get().name == "two-gpus.2"


def others(remote: Remote) -> list[Callable[[], Any]]:
    empty = [lambda path=path: remote.post(path, {}) for path in ("lease", "leave", "hello")]
    return [*empty, lambda: remote.get(f"leases/{'0' * 32}/files/x")]


def test_only_a_workers_valid_token_is_let_in(client: Client, lead: User, token: str) -> None:
    reading = tokens.create_token(lead, "r", ["read", "ingest"], None)[1]
    for ask in others(Remote(client, reading)):
        assert refused(ask(), 403, "lacks the scope “worker”")
    row = ApiToken.objects.get(worker_name="bench")
    answer = client.get("/api/v1/series", headers={"Authorization": f"Bearer {token}"})
    assert refused(answer, 403, "lacks the scope “read”")
    tokens.revoke(row, lead)
    for ask in others(Remote(client, token)):
        assert refused(ask(), 401, "expected a valid API token")


def test_a_workers_token_is_made_by_who_may_and_for_that_alone(lead: User) -> None:
    plain = User.objects.create_user("plain")
    plain.user_permissions.add(Permission.objects.get(codename="make_tokens"))
    both = [Scope.WORKER, Scope.READ]
    for owner, scopes, fields, words in (
        (plain, ["worker"], {"worker_name": "a"}, "Can pause, drain and pin workers"),
        (lead, both, {"worker_name": "a"}, "has no other scopes"),
        (lead, ["worker"], {}, "a letter, then"),
        (lead, ["worker"], {"worker_name": "a b"}, "a letter, then"),
        (lead, ["worker"], {"worker_name": "a", "worker_queue": "compile"}, "measure.gfx942"),
        (lead, ["read"], {"worker_name": "a"}, "only worker tokens have a name"),
    ):
        with pytest.raises(UserError, match=words):
            tokens.create_token(owner, "t", scopes, None, **fields)
    made, text = tokens.create_token(lead, "t", ["worker"], None, worker_name="a")
    with pytest.raises(UserError, match="another valid token is for a"):
        tokens.create_token(lead, "t", ["worker"], None, worker_name="a")
    lead.is_superuser = False
    lead.save()
    lead.user_permissions.add(Permission.objects.get(codename="make_tokens"))
    assert tokens.find_token(text) is None, "its owner may not steer workers any more"
    tokens.revoke(made, None)


def test_the_page_makes_a_workers_token(client: Client, lead: User) -> None:
    client.force_login(lead)
    form = {"name": "bench", "scopes": ["worker"], "days": 30}
    answer = client.post("/tokens", form)
    assert answer.status_code == 422
    assert "a letter, then" in answer.content.decode()
    answer = client.post("/tokens", form | {"worker_name": "bench", "worker_queue": "measure.cpu"})
    assert answer.status_code == 201
    row = ApiToken.objects.get()
    assert (row.worker_name, row.worker_queue, row.scopes) == ("bench", "measure.cpu", ["worker"])
    assert "bench measure.cpu" in " ".join(client.get("/tokens").content.decode().split())


def test_a_worker_has_a_rate_of_its_own(remote: Remote, settings: Any) -> None:
    settings.API_REQUESTS_A_MINUTE, settings.WORKER_REQUESTS_A_MINUTE = 1, 10
    ApiToken.objects.update(requests_left=None, allowed_at=None)
    statuses = [remote.post("lease", {}).status_code for _ in range(11)]
    assert statuses == [200] * 10 + [429]


def test_the_description_has_every_address_and_its_bodies(client: Client, lead: User) -> None:
    client.force_login(lead)
    described = client.get("/api/v1/openapi.json").json()
    paths = {path for path in described["paths"] if "/worker/" in path}
    ends = ("hello", "lease", "builds", "progress", "finish", "give-up", "leave")
    assert paths == {f"/api/v1/worker/{end}" for end in ends} | {
        "/api/v1/worker/leases/{key}/files/{digest}"
    }
    assert "SentSamples" in described["components"]["schemas"]
    assert not Artifact.objects.exists()
