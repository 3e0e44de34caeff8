"""From an alert: tune again, measure both sides again here, or ask those who send the series."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from codegen_app.accounts import tokens
from codegen_app.kernels.models import Build
from codegen_app.kernels.services import engine
from codegen_app.tasks import measure
from codegen_app.tracking.alerting.retuning import retune
from codegen_app.tracking.models import (
    Alert,
    AlertRun,
    Datum,
    MeasurementRequest,
    RemeasuredPoint,
    Remeasurement,
    Revision,
    Series,
    Source,
)
from codegen_app.tracking.pages.alert.actions_query import alert_actions
from codegen_app.tracking.remeasuring import jobs, requests, suspicions
from codegen_app.tuning.models import Selection, TuningRun
from codegen_app.workers import work
from codegen_app.workers.models import State, Worker
from scheduler.clients import kiln_client
from scheduler.codegen.recorded_call import RecordedCall
from scheduler.errors import UserError
from scheduler.runtime.device import DeviceInfo
from scheduler.runtime.devices import probe_devices
from tests.app import factories, track_factories
from tests.support.own_alert import own_alert
from tests.support.queries import assert_steady, queries_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def person() -> User:
    return User.objects.create_superuser("a")


def worker() -> None:
    """A living one with this host's devices."""
    cpu = next(one for one in probe_devices() if isinstance(one, DeviceInfo) and one.id == "cpu")
    now = timezone.now()
    device = {"id": cpu.id, "target": cpu.target, "name": cpu.name}
    Worker.objects.create(
        name="w", host="h", pid=1, started_at=now, seen_at=now, devices=[device], queues=["measure"]
    )


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Alert:
    alert = own_alert(monkeypatch)
    worker()
    return alert


@pytest.mark.full
def test_both_sides_are_measured_again_in_one_environment(own: Alert, person: User) -> None:
    chosen = list(Selection.objects.values_list("pk", "result"))
    (answer,) = requests.request_remeasurement(own, person)
    (same,) = requests.request_remeasurement(own, person)
    assert same.remeasurement == answer.remeasurement, "pressed twice, done once"
    measure("cpu")
    row = Remeasurement.objects.get()
    assert (row.state, row.reason) == (State.DONE, "")
    assert 0 < row.samples <= row.samples_due
    points = list(row.points.select_related("datum", "original"))
    assert len(points) == 2
    for point in points:
        new, old = point.datum, point.original
        assert new is not None
        assert (new.series, new.revision, new.at) == (old.series, old.revision, old.at)
        assert new.measured_at > old.measured_at
        assert (new.source, new.build, new.kernel) == (Source.AGAIN, old.build, old.kernel)
        assert new.samples
    first, second = (point.datum for point in points)
    assert first is not None
    assert second is not None
    facts = [one.conditions.facts for one in (first, second)]
    assert facts[0]["driver"] == facts[1]["driver"]
    series = Series.objects.get()
    assert series.points == 4
    assert list(Selection.objects.values_list("pk", "result")) == chosen, "nothing else serves now"
    measure("cpu")
    assert Datum.objects.count() == 4


@pytest.mark.full
def test_a_suspected_step_is_measured_again_without_an_alert(own: Alert) -> None:
    series = Series.objects.get()
    after = series.data.order_by("at").last()
    assert after is not None
    step = {"suspected_n": 1, "suspected_ratio": 1.3, "suspected_from": after.at}
    Series.objects.update(**step)
    assert suspicions.request_remeasurements() == 1
    assert suspicions.request_remeasurements() == 0, "once"
    measure("cpu")
    row = Remeasurement.objects.get()
    assert (row.alert, row.state, row.reason) == (None, State.DONE, "")
    assert [point.side(row) for point in row.points.all()] == ["before", "after"]
    # Without a device that is online nobody measures.
    Worker.objects.all().delete()
    Series.objects.update(**step, suspicion_handled=False)
    assert suspicions.request_remeasurements() == 1
    assert Remeasurement.objects.count() == 1


@pytest.mark.full
def test_revisions_between_the_sides_are_filled_in_from_builds_of_other_series(
    own: Alert, person: User
) -> None:
    series = Series.objects.get()
    before, after = series.data.order_by("at")
    same = {"own_problem": series.own_problem, "target": series.target}
    other = track_factories.series(toolchain=series.toolchain, device_name="another", **same)
    otherwise = track_factories.series(toolchain="another compiler", **same)
    built = {"build": before.build, "kernel": before.kernel, "source": Source.TUNING}
    middle = track_factories.revision(name="middle")
    step = (after.at - before.at) / 4
    for of, at, revision in (
        (other, before.at + step, before.revision),
        *((other, before.at + step * place, middle) for place in (2, 3)),
        (other, after.at + step, track_factories.revision()),
        (otherwise, before.at + step * 2, track_factories.revision()),
    ):
        track_factories.datum(series=of, at=at, revision=revision, **built)
    requests.request_remeasurement(own, person)
    measure("cpu")
    row = Remeasurement.objects.get()
    assert (row.state, row.reason) == (State.DONE, "")
    [new] = series.data.filter(revision=middle)
    assert (new.at, new.source) == (before.at + step * 2, Source.AGAIN)
    assert [one.side(row) for one in row.points.all()] == ["before", "between", "after"]
    [shown] = alert_actions(own.pk).measured
    assert shown.points[1].original is None
    assert shown.n_before + shown.n_after == sum(
        one.n for one in shown.points if one.side != "between"
    )


@pytest.mark.full
def test_a_worker_that_dies_leaves_it_to_the_next(
    own: Alert, person: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests.request_remeasurement(own, person)
    row = work.claim_next(jobs.queued_remeasurements("cpu"), "w")
    assert row is not None

    def die(*_: Any) -> None:
        raise SystemExit

    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(jobs, "store_measurement", die)
        jobs.run(row)
    assert Datum.objects.filter(source=Source.AGAIN).count() == 0
    work.requeue_orphans()
    measure("cpu")
    assert Remeasurement.objects.get().state == State.DONE
    assert Datum.objects.filter(source=Source.AGAIN).count() == 2


@pytest.mark.full
def test_what_is_cancelled_stores_nothing(own: Alert, person: User) -> None:
    requests.request_remeasurement(own, person)
    row = work.claim_next(jobs.queued_remeasurements("cpu"), "w")
    assert row is not None
    assert work.cancel(row, person)
    with pytest.raises(work.LeaseLostError):
        jobs.run(row)
    assert Remeasurement.objects.get().state == State.CANCELLED
    assert not Datum.objects.filter(source=Source.AGAIN).exists()
    assert not work.cancel(row, person)
    requests.request_remeasurement(own, person)
    assert Remeasurement.objects.count() == 2, "it can be asked for again"


@pytest.mark.full
def test_without_a_build_or_a_device_the_reason_is_said(own: Alert, person: User) -> None:
    Worker.objects.all().delete()
    with pytest.raises(UserError, match="no worker with a"):
        requests.request_remeasurement(own, person)
    worker()
    Build.objects.update(library=None, state=State.CANCELLED)
    with pytest.raises(UserError, match="no build of the points before"):
        requests.request_remeasurement(own, person)
    assert not Remeasurement.objects.exists()


@pytest.mark.full
def test_a_file_that_the_storage_lost_is_a_reason_and_no_failure(
    own: Alert, person: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests.request_remeasurement(own, person)

    def lost(*_: Any, **__: Any) -> None:
        raise FileNotFoundError("library.so is not there")

    monkeypatch.setattr(jobs, "build_result", lost)
    measure("cpu")
    row = Remeasurement.objects.get()
    assert row.state == State.REJECTED
    assert "library.so is not there" in row.reason
    assert {point.reason for point in row.points.all()} == {"library.so is not there"}


@pytest.mark.full
def test_recorded_calls_are_those_that_the_generator_makes(own: Alert) -> None:
    """What old kernels are called by is read of their rows: of those that are made still, it is
    the very request that the generator makes."""
    run = TuningRun.objects.first()
    assert run is not None
    digest = run.graph.file.digest
    lowered = engine.scheduled(digest).schedule.lowered
    compared = 0
    for node in run.graph.template_nodes.filter(problem__isnull=False):
        for use in node.uses.select_related("kernel")[:3]:
            name = use.kernel.name
            caller = engine.find_caller(digest, node.name, engine.kernel_records([name])[name])
            assert caller is not None
            same = {name: name for name in (*node.reads, *node.writes)}
            call = RecordedCall(use.kernel.name, use.kernel.args, use.call, same)
            made = caller.benchmark_request("cpu", run.bindings)
            recorded = call.request("cpu", run.bindings, lowered.buffers)
            assert recorded.args == made.args
            assert (recorded.kernel, recorded.symbol) == (made.kernel, made.symbol)
            compared += 1
    assert compared > 10


@pytest.mark.full
def test_retuning_starts_one_run_however_often_it_is_pressed(own: Alert, person: User) -> None:
    before = TuningRun.objects.count()
    (run,) = retune(own, person)
    assert retune(own, person) == [run]
    assert TuningRun.objects.count() == before + 1
    series = Series.objects.get()
    assert run.template_node is not None
    assert run.template_node.problem == series.own_problem
    assert (run.target, run.bindings) == (series.target, series.sizes)
    assert run.budget_s
    assert f"alert {own.pk}" in run.why
    assert AlertRun.objects.get().run == run
    TuningRun.objects.filter(pk=run.pk).update(state=State.DONE, finished_at=timezone.now())
    assert retune(own, person) != [run], "that one is over"


def test_the_page_says_before_what_a_run_can_measure(own: Alert, tuner: Client) -> None:
    series = Series.objects.filter(changes__alert=own)
    assert_outlook(tuner, own, "emulated times select nothing for a GPU")
    series.update(target="gfx942", device_name="AMD Instinct MI300X")
    assert_outlook(tuner, own, "no worker with this target is online; the run will be queued")
    mi325x = {"id": "hip:0", "target": "gfx942", "name": "AMD Instinct MI325X"}
    row = Worker.objects.get()
    row.devices = [mi325x]
    row.save()
    assert_outlook(tuner, own, "measures on AMD Instinct MI325X, and selects kernels for that")
    row.devices = [{**mi325x, "name": "AMD Instinct MI300X"}]
    row.save()
    assert_outlook(tuner, own, "a worker measures on it now")


def assert_outlook(tuner: Client, alert: Alert, text: str) -> None:
    address = f"/alerts/{alert.pk}/actions"
    assert any(text in line for line in tuner.get(f"{address}.json").json()["retune_on"])
    assert text in tuner.get(address).content.decode()


def test_senders_are_asked_and_their_points_answer(person: User) -> None:
    now = timezone.now()
    moments = [now - timedelta(days=days) for days in (3, 2, 1)]
    old, between, new = (track_factories.revision(repository="r", at=one) for one in moments)
    track_factories.revision(repository="another", at=moments[1])
    alert = track_factories.regression()
    change = track_factories.change(alert=alert, revision=new, previous=old)
    (answer,) = requests.request_remeasurement(alert, person)
    requests.request_remeasurement(alert, person)
    assert answer.requests == 3
    assert set(MeasurementRequest.objects.values_list("revision", flat=True)) == {
        row.pk for row in (old, between, new)
    }
    assert Datum.objects.filter(series=change.series).count() == 1
    assert requests.withdraw(alert, person) == 3
    assert requests.withdraw(alert, person) == 0


def test_a_sender_sees_what_is_asked_and_answers_it(person: User, client: Client) -> None:
    _, token = tokens.create_token(person, "CI", ["ingest", "read"], None)
    headers = {"Authorization": f"Bearer {token}"}

    def pending(query: str = "") -> list[dict[str, Any]]:
        answer = client.get(f"/api/v1/requests{query}", headers=headers)
        assert answer.status_code == 200, answer.content
        rows: list[dict[str, Any]] = answer.json()["requests"]
        return rows

    def sent(revision: str, measured_at: str) -> None:
        body = {"kind": "kiln points", "schema": 1}
        point = {"problem": "mm", "device": "H200", "metric": "time", "unit": "ns", "value": 1.0}
        point |= {"revision": {"name": revision, "at": "2026-01-01"}, "measured_at": measured_at}
        key = {**headers, "Idempotency-Key": f"{revision} {measured_at}"}
        answer = client.post(
            "/api/v1/results",
            body | {"points": [point]},
            content_type="application/json",
            headers=key,
        )
        assert answer.status_code == 200, answer.content

    for revision in ("old", "new"):
        sent(revision, "2026-01-02")
    series = Series.objects.get()
    old, new = (Revision.objects.get(name=name) for name in ("old", "new"))
    alert = track_factories.regression()
    track_factories.change(series=series, alert=alert, revision=new, previous=old)
    requests.request_remeasurement(alert, person)
    first, second = pending()
    assert (first["problem"], first["series"], first["alert"]) == ("mm", series.pk, alert.pk)
    assert {first["revision"], second["revision"]} == {"old", "new"}
    assert [one["revision"] for one in pending("?revision=old")] == ["old"]
    assert pending("?device_name=another") == []
    sent("old", "2026-01-03")
    assert len(pending()) == 2, "measured before it was asked for"
    sent("old", (timezone.now() + timedelta(seconds=5)).isoformat())
    assert [one["revision"] for one in pending()] == ["new"]
    assert series.data.filter(revision=old).count() == 3
    requests.request_remeasurement(alert, person)
    assert len(pending()) == 2, "it can be asked for again"


def test_the_client_writes_what_is_pending(
    person: User, live_server: Any, tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "token").write_text(tokens.create_token(person, "CI", ["read"], None)[1])
    alert = track_factories.regression("gemm")
    requests.request_remeasurement(alert, person)
    given = ["--url", live_server.url, "--token-file", f"{tmp_path}/token", "--tries", "1"]
    assert kiln_client.main(["pending", *given]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    asked = MeasurementRequest.objects.values_list("revision__name", flat=True)
    assert {row["revision"] for row in rows} == set(asked)
    assert {row["problem"] for row in rows} == {"gemm"}
    assert kiln_client.main(["pending", *given, "--revision", "another"]) == 0
    assert capsys.readouterr().out == ""


def test_nothing_generated_is_measured(person: User) -> None:
    alert = track_factories.regression()
    track_factories.change(series=track_factories.series(device_name="generated: H"), alert=alert)
    with pytest.raises(UserError, match="generated"):
        requests.request_remeasurement(alert, person)
    with pytest.raises(UserError, match="nothing to tune"):
        retune(alert, person)


def test_the_page_offers_what_can_be_and_says_why_not(tuner: Client) -> None:
    alert = track_factories.regression("gemm", "softmax")
    address = f"/alerts/{alert.pk}/actions"
    page = tuner.get(address).content.decode()
    assert "no series of this alert is measured here" in page
    assert "requests the revisions of 2 series from their senders" in page
    answer = tuner.post(f"/alerts/{alert.pk}/remeasure", follow=True)
    assert "revisions requested from their senders" in answer.content.decode()
    assert (
        "nothing to tune" in tuner.post(f"/alerts/{alert.pk}/retune", follow=True).content.decode()
    )
    twin = tuner.get(f"{address}.json").json()
    assert (twin["retune"]["series"], twin["senders"]["series"]) == (0, 2)
    assert {one["state"] for one in twin["requests"]} == {"open"}
    part = tuner.get(address, headers={"HX-Request": "true"}).content.decode()
    assert part.lstrip().startswith("<section")
    assert tuner.post(f"/alerts/{alert.pk}/withdraw", follow=True).status_code == 200
    assert not MeasurementRequest.objects.filter(withdrawn_at=None).exists()
    assert tuner.get("/alerts/999999/actions").status_code == 404


def test_who_may_not_tune_reads_and_starts_nothing(reader: Client) -> None:
    alert = track_factories.regression("gemm")
    page = reader.get(f"/alerts/{alert.pk}/actions").content.decode()
    assert "<button" not in page.split('id="alert-actions"')[1].split("</section>")[0]
    for what in ("retune", "remeasure", "withdraw"):
        assert reader.post(f"/alerts/{alert.pk}/{what}").status_code == 403


def test_queries_of_the_page_do_not_grow_with_its_rows(person: User) -> None:
    def grown(alert: Alert, count: int) -> None:
        problem = factories.task().problem
        for _ in range(count):
            series = track_factories.series(own_problem=problem)
            row = Remeasurement.objects.create(alert=alert, series=series, boundary=timezone.now())
            change = track_factories.change(series=series, alert=alert)
            RemeasuredPoint.objects.create(remeasurement=row, original=change.datum)
            track_factories.change(alert=alert)
        requests.request_remeasurement(alert, person)

    counts = []
    for count in (1, 4):
        alert = track_factories.regression()
        grown(alert, count)
        counts.append([queries_of(alert_actions, alert.pk)])
        assert len(alert_actions(alert.pk).measured) == count
    assert_steady(*counts, usual=[8])


def test_the_ratio_of_both_sides_has_an_interval_or_is_insufficient() -> None:
    now = timezone.now()
    alert = track_factories.regression()

    def row(samples: int) -> Any:
        series = track_factories.series()
        again = Remeasurement.objects.create(
            alert=alert, series=series, boundary=now, state=State.DONE
        )
        for side, level in enumerate((100.0, 120.0)):
            at = now + timedelta(seconds=side * 2 - 1)
            old = track_factories.datum(series=series, at=at, value=level)
            values = [level + 0.1 * n for n in range(samples)]
            new = track_factories.datum(series=series, at=at, value=level, samples=values)
            RemeasuredPoint.objects.create(remeasurement=again, original=old, datum=new)
        return alert_actions(alert.pk).measured[0]

    few, enough = row(3), row(9)
    assert (few.ratio, few.low, few.n_before) == (None, None, 3)
    assert enough.low < enough.ratio < enough.high
    assert enough.low > 1.15
    assert [point.side for point in enough.points] == ["before", "after"]
