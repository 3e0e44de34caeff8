"""Points that do not count: withdrawn, deleted, or at or below 0. What is found in a history is
what would be found without them, and nobody has to guess that they were left out."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db.models.deletion import ProtectedError
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codegen_app.accounts import tokens
from codegen_app.accounts.models import AuditEntry
from codegen_app.tracking.models import (
    Alert,
    AlertEvent,
    Change,
    Conditions,
    Datum,
    Revision,
    Series,
    Source,
    Withdrawal,
)
from codegen_app.tracking.pages.history import plots
from codegen_app.tracking.pages.history.chart import history_chart
from codegen_app.tracking.pages.history.plots import plot_data
from codegen_app.tracking.services import alert_pipeline, detection, point_storage, withdrawals
from scheduler.errors import UserError
from scheduler.results.points.model import Point, RevisionKey, SeriesKey

pytestmark = pytest.mark.django_db
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
KEY = SeriesKey("mm", {}, "sm_90", "NVIDIA H200", "nvcc", "time", "ns")


def points(values: Iterable[float]) -> list[Point]:
    """One a day, each of a revision."""
    return [
        Point(KEY, value, BEGIN + DAY * n, RevisionKey(f"r{n}", BEGIN + DAY * n))
        for n, value in enumerate(values)
    ]


def noisy(*levels: tuple[float, int]) -> list[float]:
    rng = random.Random(5)
    return [level * rng.gauss(1, 0.005) for level, count in levels for _ in range(count)]


def work(made: Sequence[Point] = ()) -> Series:
    if made:
        point_storage.store(made, Source.API)
    alert_pipeline.process_pending()
    return Series.objects.get()


def found() -> list[tuple[Any, ...]]:
    live = Change.objects.filter(withdrawn_at=None).order_by("at")
    names = ("at", "shown_at", "before", "after", "low", "high", "n_before", "n_after")
    return [
        (one.revision.name, one.previous and one.previous.name, *(getattr(one, n) for n in names))
        for one in live.select_related("revision", "previous")
    ]


def counts() -> tuple[Any, ...]:
    names = ("points", "not_positive", "withdrawn", "first_at", "last_at", "unchecked_from")
    return Series.objects.values_list(*names).get()


def forget() -> None:
    for model in (AlertEvent, Change, Alert, Datum, Series, Revision, Conditions):
        model.objects.all().delete()


@pytest.fixture
def ada() -> User:
    user = User.objects.create_user("ada")
    names = ("triage", "make_tokens")
    user.user_permissions.add(*Permission.objects.filter(codename__in=names))
    return user


@pytest.fixture
def site(client: Client, ada: User) -> Client:
    client.force_login(ada)
    return client


@pytest.mark.full
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_what_is_found_is_what_would_be_found_without_them(ada: User, data: st.DataObject) -> None:
    """Points are withdrawn, restored and deleted in any order, before and after they are looked
    at; what is left is then a history by itself."""
    forget()
    levels = data.draw(
        st.lists(
            st.tuples(st.sampled_from([80.0, 100.0, 112.0, 150.0]), st.integers(6, 24)),
            min_size=1,
            max_size=3,
        )
    )
    values = noisy(*levels)
    for place in data.draw(st.sets(st.integers(0, len(values) - 1), max_size=3)):
        values[place] = data.draw(st.sampled_from([0.0, -1.0, -values[place]]))
    made = points(values)
    work(made)
    rows = list(Datum.objects.order_by("at"))
    gone: dict[int, str] = {}
    for place in data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8)):
        if gone.get(place) == "withdrawn":
            withdrawals.restore(rows[place], ada)
            del gone[place]
        elif place not in gone:
            begins = Change.objects.filter(datum=rows[place]).exists()
            how = data.draw(st.sampled_from(["withdrawn"] if begins else ["withdrawn", "deleted"]))
            if how == "withdrawn":
                withdrawals.withdraw(rows[place], "a host that was too warm", ada)
            else:
                withdrawals.delete([rows[place]], ada)
            gone[place] = how
        if data.draw(st.booleans()):
            work()
    work()
    left = [one for n, one in enumerate(made) if n not in gone]
    stored = [one for n, one in enumerate(made) if gone.get(n) != "deleted"]
    assert counts() == (
        len(stored),
        sum(one.value <= 0 for one in left),
        len(stored) - len(left),
        min((one.at for one in stored), default=None),
        max((one.at for one in stored), default=None),
        None,
    )
    of_the_rest = found()
    forget()
    if positive := [one for one in left if one.value > 0]:
        work(positive)
        assert of_the_rest == found()
    else:
        assert of_the_rest == []


def test_a_point_is_withdrawn_with_a_reason_and_taken_back_on_its_page(
    site: Client, ada: User
) -> None:
    row = work(points(noisy((100.0, 30), (110.0, 30))))
    (change,) = Change.objects.all()
    datum = Datum.objects.get(pk=change.datum_id)
    page = datum.get_absolute_url()
    assert "enter the reason" in site.post(f"{page}/withdraw", follow=True).content.decode()
    assert not Withdrawal.objects.exists()
    site.post(f"{page}/withdraw", {"why": "another tenant"})
    again = site.post(f"{page}/withdraw", {"why": "twice"}, follow=True).content.decode()
    assert "is already withdrawn" in again
    held = Withdrawal.objects.get()
    assert (held.datum, held.by, held.reason) == (datum, ada, "another tenant")
    assert AuditEntry.objects.filter(action="withdraw", actor=ada).count() == 1
    work()
    assert [one[0] for one in found()] == ["r31"], "the level begins at the next point"
    for address in (page, row.get_absolute_url()):
        html = " ".join(site.get(address).content.decode().split())
        assert "Not compared with other points: " in html, address
        assert "another tenant" in html, address
        assert "ada" in html, address
    chart = history_chart([row.pk]).series[0]
    assert datum.pk not in chart.columns.id
    assert len(chart.columns.id) == chart.points == 59
    assert "not compared: 1 withdrawn" in plots.plot(plot_data(row.pk), "light")
    (line,) = (one for one in rows_of(site, row) if one["withdrawn"])
    assert (line["revision"], line["withdrawn"]) == ("r30", "another tenant")
    site.post(f"{page}/restore")
    work()
    assert [one[0] for one in found()] == ["r30"]
    assert "Not compared" not in site.get(page).content.decode()
    assert "another tenant" in site.get(page).content.decode(), "what was done stays"
    html = site.post(f"{page}/restore", follow=True).content.decode()
    assert "is not withdrawn" in html


def rows_of(site: Client, row: Series) -> list[dict[str, str]]:
    answer = site.get(f"/series/{row.pk}.csv")
    text = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    return list(csv.DictReader(io.StringIO(text)))


def test_the_latest_figure_is_not_one_that_was_withdrawn(site: Client, ada: User) -> None:
    row = work(points([100.0, 101.0, 5.0]))
    withdrawals.withdraw(Datum.objects.get(value=5.0), "a unit of its own", ada)
    assert site.get(f"/series/{row.pk}.json").json()["latest"]["value"] == 101.0
    assert "101 ns" in plots.badge(plot_data(row.pk), "light", 30)


def test_programs_withdraw_and_restore(client: Client, ada: User) -> None:
    row = work(points(noisy((100.0, 10))))
    datum = Datum.objects.order_by("at")[3]
    token = tokens.create_token(ada, "CI", ["ingest", "read"], None)[1]
    headers = {"Authorization": f"Bearer {token}"}
    address = f"/api/v1/series/{row.pk}/data/{datum.pk}"

    def ask(what: str, given: dict[str, str], **other: Any) -> Any:
        sent = {"content_type": "application/json", "headers": headers} | other
        return client.post(f"{address}/{what}", given, **sent)

    for bad in ({}, {"reason": ""}, {"reason": " "}, {"reason": "a\0b"}, {"reason": "x" * 501}):
        answer = ask("withdraw", bad)
        assert (answer.status_code, "reason" in answer.json()["error"]) == (422, True)
    answer = ask("withdraw", {"reason": "thermal throttling"})
    assert (answer.status_code, answer.json()["by"]) == (200, "ada")
    assert ask("withdraw", {"reason": "twice"}).status_code == 422
    listed = client.get(f"/api/v1/series/{row.pk}/data", headers=headers).json()["data"]
    held = [one["withdrawn"] for one in listed]
    assert [one and one["reason"] for one in held] == [None] * 3 + ["thermal throttling"] + [
        None
    ] * 6
    assert client.get(f"/api/v1/series/{row.pk}", headers=headers).json()["withdrawn"] == 1
    assert ask("restore", {}).status_code == 200
    assert ask("restore", {}).status_code == 422
    assert client.get(f"/api/v1/series/{row.pk}", headers=headers).json()["withdrawn"] == 0

    reading = tokens.create_token(ada, "read", ["read"], None)[1]
    refused = ask("withdraw", {"reason": "x"}, headers={"Authorization": f"Bearer {reading}"})
    assert refused.status_code == 403
    ada.user_permissions.remove(Permission.objects.get(codename="triage"))
    refused = ask("withdraw", {"reason": "x"})
    assert refused.status_code == 403
    assert "Can triage alerts" in refused.json()["error"]
    address = f"/api/v1/series/{row.pk + 1}/data/{datum.pk}"
    assert ask("restore", {}).status_code == 404
    assert Withdrawal.objects.count() == 1


def test_a_point_deleted_in_the_admin_is_counted_out_and_the_series_looked_at_again(
    admin_client: Client,
) -> None:
    work(points(noisy((100.0, 30), (110.0, 30))))
    (change,) = Change.objects.all()
    rows = list(Datum.objects.order_by("at"))
    first = "/admin/codegen_app/datum/"
    admin_client.post(f"{first}{rows[0].pk}/delete/", {"post": "yes"})
    chosen = {"action": "delete_selected", "_selected_action": [row.pk for row in rows[31:33]]}
    admin_client.post(first, chosen | {"post": "yes"})
    assert Datum.objects.count() == 57
    assert counts()[:1] == (57,)
    assert counts()[3:] == (rows[1].at, rows[-1].at, rows[0].at)
    detection.detect_changes()
    change.refresh_from_db()
    assert (change.n_before, change.n_after) == (29, 24), "of what is left"
    assert AuditEntry.objects.filter(action="delete").count() == 3
    page = admin_client.get(f"{first}{change.datum_id}/delete/").content.decode()
    assert "would require deleting the following protected related objects" in page
    with pytest.raises(ProtectedError):
        withdrawals.delete([change.datum], None)
    assert counts()[0] == 57


def test_the_last_point_of_a_series_can_be_deleted(admin_client: Client) -> None:
    row = work(points([100.0]))
    datum = Datum.objects.get()
    admin_client.post(f"/admin/codegen_app/datum/{datum.pk}/delete/", {"post": "yes"})
    work()
    assert counts() == (0, 0, 0, None, None, None)
    assert admin_client.get(row.get_absolute_url()).status_code == 200


def test_what_is_withdrawn_is_part_of_no_comparison(site: Client, ada: User) -> None:
    """Two revisions of six runs each, one of which was measured wrongly."""
    made = [
        Point(KEY, value, BEGIN + DAY + timedelta(minutes=n), RevisionKey(name, at))
        for name, level, at in (("old", 100.0, BEGIN), ("new", 200.0, BEGIN + DAY))
        for n, value in enumerate(noisy((level, 6)))
    ]
    work([*made, Point(KEY, -1.0, BEGIN + DAY, RevisionKey("new", BEGIN + DAY))])

    def compared() -> dict[str, Any]:
        (found,) = site.get("/compare/revisions.json?before=old&after=new").json()["rows"]
        row: dict[str, Any] = found["row"]
        return row

    row = compared()
    assert (row["status"], "at or below 0" in row["why"]) == ("unknown", True)
    withdrawals.withdraw(Datum.objects.get(value=-1.0), "a failed run", ada)
    row = compared()
    assert (row["status"], row["n_after"]) == ("slower", 6)


# ── values that no ratio is taken of ────────────────────────────────────────


def test_values_at_or_below_0_are_stored_shown_and_named(site: Client, ada: User) -> None:
    token = tokens.create_token(ada, "CI", ["ingest", "read"], None)[1]
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "1"}
    head = {"device": "H200", "metric": "drift", "revision": "abc", "problem": "mm"}
    rows = [
        {"value": value, "measured_at": f"2026-01-{n + 1:02}"}
        for n, value in enumerate([0.0, -2.5] + [1.0] * 8)
    ]
    body = {"kind": "kiln points", "schema": 1, "defaults": head, "points": rows}
    answer = Client().post(
        "/api/v1/results", body, content_type="application/json", headers=headers
    )
    assert (answer.json()["points"], answer.json()["not_positive"]) == (10, 2)
    row = work()
    shown = Client().get(f"/api/v1/series/{row.pk}", headers=headers).json()
    assert (shown["points"], shown["not_positive"]) == (10, 2)
    for address in (row.get_absolute_url(), f"/series/{row.pk}/thresholds"):
        html = site.get(address).content.decode()
        line = "Not compared with other points: 2 at or below 0, so no ratio can be formed."
        assert line in html, address
    html = " ".join(site.get(row.get_absolute_url()).content.decode().split())
    assert "Insufficient data: 8 points can be compared" in html
    for datum in Datum.objects.all():
        html = site.get(datum.get_absolute_url()).content.decode()
        assert ("at or below 0, so no ratio can be formed" in html) is (datum.value <= 0)
    columns = history_chart([row.pk]).series[0].columns
    assert columns.value == (0.0, -2.5, *[1.0] * 8)


def test_a_reason_says_more_than_blanks(ada: User) -> None:
    work(points([100.0]))
    with pytest.raises(UserError, match="reason: enter the reason"):
        withdrawals.withdraw(Datum.objects.get(), " \n", ada)
    assert counts()[2] == 0
