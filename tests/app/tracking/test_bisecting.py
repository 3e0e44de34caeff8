"""Bisection: few of the revisions in between are measured, and the one that made the change is
named."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from codegen_app.accounts import tokens
from codegen_app.tracking.bisecting import walk
from codegen_app.tracking.models import (
    Alert,
    Batch,
    Bisection,
    BisectionMeans,
    BisectionState,
    MeasurementRequest,
    Revision,
    Series,
    Source,
)
from codegen_app.tracking.remeasuring import requests
from codegen_app.tracking.services import alert_pipeline, point_storage
from scheduler.errors import UserError
from scheduler.results.points.model import RevisionKey
from tests.support import team

pytestmark = pytest.mark.django_db
STEP = 153  # the first slow commit


@pytest.fixture
def trunk() -> list[RevisionKey]:
    return team.commits(240, every=timedelta(minutes=10))


@pytest.fixture
def person() -> User:
    return User.objects.create_superuser("a")


@pytest.fixture
def alert(trunk: list[RevisionKey]) -> Alert:
    """Of a series that is measured at every tenth commit; the others are known from a series that
    does not change."""
    team.push(team.history("other", trunk, 50.0))
    team.push([value(revision) for revision in trunk[::10]])
    (row,) = team.alerts()
    return row


def value(revision: RevisionKey, noise: float = 0.005) -> team.Point:
    slow = int(revision.name[1:]) >= STEP
    machine = team.MACHINE.with_code("b" if slow else "a")
    now = timezone.now() + timedelta(seconds=1)
    return team.point(
        "gemm", revision, 125.0 if slow else 100.0, machine, noise=noise, measured_at=now
    )


def answer(trunk: list[RevisionKey], noise: float = 0.005) -> str:
    """Measure the revision that is requested, as a CI job does; return its name."""
    request = MeasurementRequest.objects.get(answered_at=None, withdrawn_at=None)
    batch = Batch.objects.create(key=f"request {request.pk}")
    revision = next(key for key in trunk if key.name == request.revision.name)
    point_storage.store([value(revision, noise)], Source.API, batch)
    assert requests.close_answered(batch) == 1
    alert_pipeline.process_pending()
    return revision.name


def test_the_revision_that_made_the_change_is_found_by_few_measurements(
    alert: Alert, trunk: list[RevisionKey], person: User
) -> None:
    bisection = walk.start(alert, 20, person)
    assert walk.start(alert, 20, person) == bisection, "pressed twice"
    measured = []
    while Bisection.objects.get().is_open:
        measured.append(answer(trunk))
    found = Bisection.objects.get()
    assert (found.state, found.culprit) == (BisectionState.DONE, revision(f"c{STEP}"))
    window = walk.window_of(found)
    assert len(measured) <= len(window).bit_length(), measured
    assert not MeasurementRequest.objects.filter(answered_at=None).exists()


def revision(name: str) -> Revision:
    return Revision.objects.get(name=name)


def test_a_revision_that_does_not_build_is_skipped(
    alert: Alert, trunk: list[RevisionKey], person: User
) -> None:
    walk.start(alert, 20, person)
    request = MeasurementRequest.objects.get()
    with pytest.raises(UserError, match="reason: state why"):
        walk.skip(request, " ", person)
    walk.skip(request, "does not compile", person)
    with pytest.raises(UserError, match="no longer open"):
        walk.skip(request, "again", person)
    assert MeasurementRequest.objects.get(withdrawn_at=None).revision != request.revision
    while Bisection.objects.get().is_open:
        answer(trunk)
    assert Bisection.objects.get().culprit == revision(f"c{STEP}")


def test_suspects_that_cannot_be_measured_are_left(
    alert: Alert, trunk: list[RevisionKey], person: User
) -> None:
    walk.start(alert, 20, person)
    while Bisection.objects.get().is_open:
        request = MeasurementRequest.objects.get(answered_at=None, withdrawn_at=None)
        if abs(int(request.revision.name[1:]) - STEP) < 3:
            walk.skip(request, "does not compile", person)
        else:
            answer(trunk)
    row = Bisection.objects.get()
    assert (row.state, row.culprit) == (BisectionState.STOPPED, None)
    assert "that could not be measured" in row.reason
    remaining = {part.revision.name for part in walk.remaining(walk.window_of(row))}
    assert remaining == {f"c{n}" for n in range(STEP - 2, STEP + 4)}


def test_a_ci_job_skips_by_the_api(alert: Alert, person: User, client: Client) -> None:
    walk.start(alert, 20, person)
    _, token = tokens.create_token(person, "ci", ["ingest", "read"], None)
    headers = {"Authorization": f"Bearer {token}"}
    (asked,) = client.get("/api/v1/requests", headers=headers).json()["requests"]
    assert asked["bisection"] == Bisection.objects.get().pk
    body = {"reason": "no build"}
    sent = {"content_type": "application/json", "headers": headers}
    answer = client.post(f"/api/v1/requests/{asked['id']}/skip", body, **sent)
    (following,) = client.get("/api/v1/requests", headers=headers).json()["requests"]
    assert answer.json() == {
        "bisection": asked["bisection"], "state": "open", "next_request": following["id"],
    }  # fmt: skip
    assert client.post(f"/api/v1/requests/{asked['id']}/skip", body, **sent).status_code == 422
    assert client.post("/api/v1/requests/999999/skip", body, **sent).status_code == 404


def test_it_stops_at_its_limit_and_says_what_is_left(
    alert: Alert, trunk: list[RevisionKey], person: User
) -> None:
    walk.start(alert, 1, person)
    answer(trunk)
    row = Bisection.objects.get()
    assert (row.state, row.reason) == (
        BisectionState.STOPPED, "the limit of 1 revisions is reached",
    )  # fmt: skip
    remaining = [part.revision.name for part in walk.remaining(walk.window_of(row))]
    assert f"c{STEP}" in remaining


def test_cancelling_withdraws_the_request(alert: Alert, person: User) -> None:
    row = walk.start(alert, 20, person)
    assert walk.cancel(row, person)
    assert not walk.cancel(row, person)
    assert not MeasurementRequest.objects.filter(withdrawn_at=None).exists()
    assert walk.start(alert, 20, person) != row


def test_a_series_is_bisected_once_at_a_time(alert: Alert, person: User) -> None:
    first = walk.start(alert, 20, person)
    other = Alert.objects.create(
        kind=alert.kind, at=alert.at, good_revision=alert.good_revision, revision=alert.revision
    )
    alert.changes.update(alert=other)
    with pytest.raises(UserError, match=f"alert {alert.pk} already bisects this series"):
        walk.start(other, 20, person)
    assert walk.advance() == 0, "neither takes the other's request"
    assert MeasurementRequest.objects.get().bisection == first


def test_commits_of_one_second_are_in_the_window(
    alert: Alert, trunk: list[RevisionKey], person: User
) -> None:
    """A rebase gives all its commits one time."""
    walk.start(alert, 20, person)
    row = Bisection.objects.get()
    for end, neighbours in ((row.good, (1, 2)), (row.bad, (-2, -1))):
        number = int(end.name[1:])
        names = [f"c{number + offset}" for offset in neighbours]
        Revision.objects.filter(name__in=names).update(at=end.at)
    inner = [part.revision.name for part in walk.window_of(row)[1:-1]]
    assert inner == [f"c{n}" for n in range(int(row.good.name[1:]) + 1, int(row.bad.name[1:]))]


def test_commits_without_a_branch_are_in_the_window(alert: Alert, person: User) -> None:
    walk.start(alert, 20, person)
    row = Bisection.objects.get()
    before = [part.revision.name for part in walk.window_of(row)]
    Revision.objects.filter(name=before[1]).update(branch="")
    assert row.bad.at is not None
    Revision.objects.create(
        name="fork",
        repository=row.bad.repository,
        branch="x",
        at=row.bad.at - timedelta(seconds=1),
        is_trunk=False,
    )
    assert [part.revision.name for part in walk.window_of(row)] == before


def test_requests_that_a_bisection_needs_are_not_withdrawn_with_others(
    alert: Alert, person: User
) -> None:
    walk.start(alert, 20, person)
    requests.request_remeasurement(alert, person)
    requests.withdraw(alert, person)
    assert [row.bisection for row in MeasurementRequest.objects.filter(withdrawn_at=None)] == [
        Bisection.objects.get()
    ]


def test_a_request_for_a_suspected_step_can_be_skipped(
    alert: Alert, person: User, client: Client
) -> None:
    walk.start(alert, 20, person)
    request = MeasurementRequest.objects.get()
    MeasurementRequest.objects.update(alert=None)  # taken over from a suspicion
    client.force_login(person)
    sent = client.post(f"/requests/{request.pk}/skip", {"reason": "no build"})
    assert sent.headers["Location"] == f"/alerts/{alert.pk}/actions"


def test_a_window_that_is_too_long_is_refused(
    alert: Alert, person: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "MAX_REVISIONS", 8)
    with pytest.raises(UserError, match="more than 8 revisions are in between"):
        walk.start(alert, 20, person)
    monkeypatch.setattr(walk, "MAX_REVISIONS", 9)
    assert walk.start(alert, 20, person).is_open


def test_what_cannot_be_bisected_says_why(alert: Alert, person: User) -> None:
    Revision.objects.update(at=None)
    with pytest.raises(UserError, match="the times of both revisions are unknown"):
        walk.start(alert, 20, person)
    Series.objects.update(device_name="generated: H200")
    with pytest.raises(UserError, match="generated series cannot be measured"):
        walk.start(alert, 20, person)


def test_neighbouring_revisions_are_not_offered(trunk: list[RevisionKey], client: Client) -> None:
    client.force_login(User.objects.create_superuser("b"))
    team.push([value(revision) for revision in trunk[STEP - 40 : STEP + 20]])
    (row,) = team.alerts()
    page = client.get(f"/alerts/{row.pk}").content.decode()
    assert f"no revision between c{STEP - 1} and c{STEP} is known" in page
    assert '<button type="submit" disabled>Bisect</button>' in page


def test_recorded_points_decide_without_measuring(
    alert: Alert, trunk: list[RevisionKey], person: User
) -> None:
    """Nothing is requested; what the points cannot tell apart is said."""
    revisions = trunk[STEP - 3 : STEP + 3]
    row = walk.start(alert, 20, person, BisectionMeans.RECORDED)
    assert (row.state, row.culprit) == (BisectionState.STOPPED, None)
    assert "without clear recorded values" in row.reason
    point_storage.store([value(revision) for revision in revisions], Source.API)
    row = walk.start(alert, 20, person, BisectionMeans.RECORDED)
    assert (row.state, row.culprit) == (BisectionState.DONE, revision(f"c{STEP}"))
    assert not MeasurementRequest.objects.exists()
    Series.objects.update(device_name="generated: H200")
    assert walk.start(alert, 20, person, BisectionMeans.RECORDED).culprit == row.culprit


def test_a_lead_follows_it_on_the_page(
    alert: Alert, trunk: list[RevisionKey], person: User, client: Client
) -> None:
    client.force_login(person)
    address = f"/alerts/{alert.pk}/actions"
    options = client.get(f"{address}.json").json()["bisect"]
    assert [(row["means"], row["series"]) for row in options] == [
        ("worker", 0), ("senders", 1), ("recorded", 1),
    ]  # fmt: skip
    assert options[0]["reasons"] == [f"no worker that builds {team.REPOSITORY} is online"]
    body = {"limit": "20", "means": "senders"}
    assert client.post(f"/alerts/{alert.pk}/bisect", body).status_code == 302
    (row,) = client.get(f"{address}.json").json()["bisections"]
    assert (row["state"], row["measured"]) == ("open", 0)
    before, asked, after = row["steps"]
    assert [step["state"] for step in row["steps"]] == ["before", "requested", "after"]
    assert before["ratio"] < after["ratio"], "the ends have their recorded values"
    skip = client.post(f"/requests/{asked['request']}/skip", {"reason": "no <b> build"})
    assert skip.status_code == 302
    page = client.get(address).content.decode()
    assert "no &lt;b&gt; build" in page and "Cancel bisection" in page
    while Bisection.objects.get().is_open:
        answer(trunk)
    (row,) = client.get(f"{address}.json").json()["bisections"]
    assert (row["culprit"], row["reason"]) == (f"c{STEP}", "")
    assert row["culprit_url"] == f"{team.REPOSITORY}/commit/c{STEP}"
    assert client.get(address).status_code == 200
    assert (
        "limit"
        in client.post(
            f"/alerts/{alert.pk}/bisect", {**body, "limit": "many"}, follow=True
        ).content.decode()
    )
