"""From a POST to a delivery, and what our own rows say of a change beside what was recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db.models import QuerySet
from django.test import Client
from django.utils import timezone

from codegen_app import tasks
from codegen_app.accounts import tokens
from codegen_app.platform import artifacts
from codegen_app.platform.models import Artifact
from codegen_app.site import periodic_jobs, queued_work
from codegen_app.tracking.models import (
    Alert,
    Change,
    Channel,
    ChannelKind,
    Datum,
    Delivery,
    Series,
    Source,
)
from codegen_app.tracking.services import alert_pipeline, explanations, point_storage
from codegen_app.workers import queue
from codegen_app.workers.models import State
from scheduler.results.points.model import Point
from tests.app import factories
from tests.app.tracking.test_detection import LEVELS, facts, look_all, points, values

pytestmark = pytest.mark.django_db


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queues that workers are woken for."""
    sent: list[str] = []
    monkeypatch.setattr(queue, "_send", lambda kind, name, *_: sent.append(name))
    return sent


def as_json(point: Point) -> dict[str, Any]:
    revision = {"name": point.revision.name, "at": point.at.isoformat()}
    return {"value": point.value, "revision": revision, "conditions": dict(point.conditions)}


def test_what_is_sent_is_an_alert_with_its_cause_and_deliveries(
    client: Client, messages: list[str], django_capture_on_commit_callbacks: Any
) -> None:
    Channel.objects.create(name="c", kind=ChannelKind.EMAIL, address="a@b", alerts=["regression"])
    owner = User.objects.create_user("ci")
    owner.user_permissions.add(Permission.objects.get(codename="make_tokens"))
    token = tokens.create_token(owner, "CI", ["ingest", "read"], None)[1]
    defaults = {"problem": "mm", "device": "NVIDIA H200", "metric": "time", "unit": "ns"}
    body = {
        **{"kind": "kiln points", "schema": 1},
        "defaults": defaults | {"toolchain": "nvcc"},
        "points": [as_json(one) for one in points(values(LEVELS))],
    }
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "1"}
    for _ in range(2):  # sent twice, as a client does that heard no answer
        with django_capture_on_commit_callbacks(execute=True):
            answer = client.post(
                "/api/v1/results",
                json.dumps(body),
                content_type="application/json",
                headers=headers,
            )
        assert answer.status_code == 200, answer.content
    assert messages == ["detect"]
    assert not Alert.objects.exists(), "nothing is looked at while the sender waits"
    with django_capture_on_commit_callbacks(execute=True):
        tasks.detect()
    assert messages == ["detect", "notify"]
    assert Alert.objects.get().cause == "code"
    assert Delivery.objects.count() == 1
    tasks.detect()
    assert Delivery.objects.count() == 1, "a message that comes twice tells nobody twice"


def test_a_message_that_never_came_is_sent_again_by_the_round(
    messages: list[str], django_capture_on_commit_callbacks: Any
) -> None:
    point_storage.store(points(values(LEVELS)), Source.API)
    assert queued_work.has_work("detect")
    for step in (look_all, explanations.explain, alert_pipeline.process_pending):
        messages.clear()
        with django_capture_on_commit_callbacks(execute=True):
            periodic_jobs.run_maintenance()
        assert "detect" in messages
        step()
    messages.clear()
    with django_capture_on_commit_callbacks(execute=True):
        periodic_jobs.run_maintenance()
    assert "detect" not in messages
    assert not queued_work.has_work("detect")


def found(first: dict[str, Any], second: dict[str, Any]) -> Change:
    """A change from the 30th point on that nobody has explained."""
    made = points(values(LEVELS), conditions=lambda n: first if n < 30 else second)
    point_storage.store(made, Source.API)
    look_all()
    return Change.objects.get()


def sides(change: Change) -> tuple[QuerySet[Datum], QuerySet[Datum]]:
    """The points on both sides, the nearest first."""
    rows = change.series.data.all()
    return rows.filter(at__lt=change.at).order_by("-at"), rows.filter(at__gte=change.at)


def test_another_choice_is_told_from_other_code_by_what_was_built_and_not_chosen() -> None:
    """The earlier configuration is still made of the same source: only the choice is another."""
    configs = ({"BLOCK_M": 64}, {"BLOCK_M": 128})
    made = [
        (config, digest * 64, factories.kernel(config=config, source_digest=digest * 64))
        for config, digest in zip(configs, "ab", strict=True)
    ]
    builds = [factories.build(kernel=kernel, code_digest=digest) for _, digest, kernel in made]
    change = found(*(facts(digest[0], config=config) for config, digest, _ in made))
    for chosen, side in zip(builds, sides(change), strict=True):
        task = factories.task()
        result = factories.result(
            chosen,
            100.0,
            task=task,
            problem=task.problem,
            environment=factories.environment(),
        )
        for build in builds:
            done = {"result": result, "state": State.DONE, "finished_at": timezone.now()}
            factories.candidate(task, build=build, **done if build == chosen else {})
        Datum.objects.filter(pk=side[0].pk).update(result=result)
    explanations.explain()
    change.refresh_from_db()
    assert (change.cause, change.rule) == ("tuning choice", "another choice")


def test_the_same_instructions_in_another_file_are_the_same_code() -> None:
    """A comment makes another file of them, and no other code."""
    change = found(facts("a"), facts("b"))
    for digest, side in zip("ab", sides(change), strict=True):
        text = listing(f"kernel_{digest}")
        build = factories.build(target="gfx942", code_digest=digest * 64, listing=text)
        side.update(build=build)
    Series.objects.update(target="gfx942")
    explanations.explain()
    change.refresh_from_db()
    assert (change.cause, change.rule) == ("noise", "same code, same environment")


def listing(kernel: str) -> Artifact:
    lines = (f"\t.type {kernel},@function", f"{kernel}:", "\tv_add_f32 v0, v1, v2", "\ts_endpgm")
    text = "\n".join((*lines, ".Lfunc_end0:", ""))
    return artifacts.store(text.encode(), ".s")


def test_a_listing_that_the_storage_does_not_have_is_no_error() -> None:
    change = found(facts("a"), facts("b"))
    missing = factories.build(
        target="gfx942",
        code_digest="a" * 64,
        listing=Artifact.objects.create(digest="9" * 64, size_bytes=9, path="sha256/99/none"),
    )
    Datum.objects.update(build=missing)
    explanations.explain()
    change.refresh_from_db()
    assert change.cause == "code"


def test_a_fault_in_one_explanation_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = points(values(LEVELS), "a") + points(values(LEVELS, 1), "b")
    point_storage.store(made, Source.API)
    look_all()
    right = explanations.causes.explain
    failed: list[int] = []

    def once(*of: Any) -> Any:
        if not failed:
            failed.append(1)
            raise ValueError("a bug")
        return right(*of)

    monkeypatch.setattr(explanations.causes, "explain", once)
    alert_pipeline.process_pending()
    assert sorted(Change.objects.values_list("cause", flat=True)) == ["cannot be said", "code"]
    assert "could not be explained" in caplog.text
    assert Alert.objects.get().n_series == 2
