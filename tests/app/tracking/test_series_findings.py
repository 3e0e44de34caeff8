"""Drifts, changes of spread and second modes: one quiet alert each, closed when they are over."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from codegen_app.accounts import tokens
from codegen_app.tracking.alerting import series_findings, triage
from codegen_app.tracking.models import (
    Alert,
    AlertKind,
    AlertState,
    Channel,
    Datum,
    Delivery,
    Series,
    SeriesFinding,
    SeriesRule,
    Source,
)
from codegen_app.tracking.notifying import email
from codegen_app.tracking.notifying.message import build_message
from codegen_app.tracking.pages.alert.query import alert_page
from codegen_app.tracking.pages.alerts.query import AlertFilter, alert_list
from codegen_app.tracking.pages.history.query import history_page
from codegen_app.tracking.queries.alert_rows import open_regressions
from codegen_app.tracking.queries.series_findings import findings_raised
from codegen_app.tracking.services import point_storage, withdrawals
from scheduler.results.points.model import Point, RevisionKey, SeriesKey
from tests.support.queries import queries_of

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def noise(n: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 0.01, n)


def drifting(n: int = 200, change: float = 0.3, begin: int = 100, seed: int = 0) -> Any:
    ramp = np.maximum(np.arange(n) - begin, 0) / (n - begin)
    return 100 * np.exp(noise(n, seed)) * (1 + change * ramp)


def two_modes(n: int = 180, seed: int = 0) -> Any:
    is_other = (np.random.default_rng(seed + 1).random(n) < 0.4) & (np.arange(n) >= 100)
    return 100 * np.exp(noise(n, seed)) * np.where(is_other, 1.06, 1.0)


def wide(n: int = 200, seed: int = 0) -> Any:
    return 100 * np.exp(noise(n, seed) * np.where(np.arange(n) < 110, 1, 3))


def send(values: Any, problem: str = "gemm", first: int = 0) -> None:
    """A point an hour, up to now."""
    begin = timezone.now() - 1000 * HOUR
    point_storage.store(
        [
            Point(
                SeriesKey(problem, {}, "sm_90", "NVIDIA H200", "nvcc", "time", "ns"),
                float(value),
                begin + (first + at) * HOUR,
                RevisionKey(f"r{first + at}", begin + (first + at) * HOUR),
            )
            for at, value in enumerate(values)
        ],
        Source.API,
    )


def open_kinds() -> list[tuple[str, str]]:
    rows = Alert.objects.order_by("pk").values_list("kind", "state")
    return [(str(kind), str(state)) for kind, state in rows]


@pytest.fixture
def ada(client: Client) -> User:
    user = User.objects.create_user("ada")
    names = ("triage", "make_tokens")
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    client.force_login(user)
    return user


def test_a_drift_is_one_quiet_alert_with_its_size_and_start(client: Client, ada: User) -> None:
    Channel.objects.create(name="c", kind="email", address="a@b.example", alerts=["regression"])
    send(drifting())
    assert series_findings.examine_due() == 1
    assert series_findings.examine_due() == 0, "not before more points"
    alert = Alert.objects.get()
    finding = alert.series_finding
    assert (alert.kind, alert.state) == (AlertKind.DRIFT, AlertState.NEW)
    assert finding.ratio == pytest.approx(1.3, abs=0.03)
    assert finding.low < finding.ratio < finding.high
    assert 85 <= finding.n_before <= 110
    assert finding.n_before + finding.n_after == 200
    assert alert.at == Datum.objects.get(revision=finding.revision).at
    assert finding.before == pytest.approx(100, rel=0.02)
    assert not Delivery.objects.exists(), "nobody is notified"
    assert open_regressions() == 0, "not in the count"

    page = client.get(f"/series/{alert.series_id}").content.decode()
    assert f"reeping, {finding.ratio - 1:+.1%} since {alert.at:%Y-%m-%d}" in page
    assert f"/alerts/{alert.pk}" in page
    page = client.get(f"/alerts/{alert.pk}").content.decode()
    assert finding.interval in page
    assert "Missing data" not in page
    assert f"#{alert.pk}" not in client.get("/alerts").content.decode()
    assert "/alerts?kind=drift" in client.get("/alerts").content.decode()
    listed = client.get("/alerts?kind=drift").content.decode()
    assert f"{finding.ratio - 1:+.1%} since" in listed
    assert client.get(f"/series/{alert.series_id}.json").json()["findings"][0]["kind"] == "drift"


def test_a_program_reads_the_figures(client: Client, ada: User) -> None:
    send(drifting())
    series_findings.examine_due()
    alert = Alert.objects.get()
    _, token = tokens.create_token(ada, "grafana", ["read"], None)
    headers = {"Authorization": f"Bearer {token}"}
    [item] = client.get("/api/v1/alerts?kind=drift", headers=headers).json()["alerts"]
    assert item["id"] == alert.pk
    assert item["finding"]["ratio"] == alert.series_finding.ratio
    assert item["finding"]["revision"] == alert.series_finding.revision.name
    assert item["finding"]["summary"].startswith("creeping, +")


@pytest.mark.parametrize(
    ("values", "kind", "ratio"), [(two_modes(), "mode", 1.06), (wide(), "spread", 3.0)]
)
def test_a_second_mode_and_another_spread_are_kinds_of_their_own(
    values: Any, kind: str, ratio: float
) -> None:
    send(values)
    series_findings.examine_due()
    finding = SeriesFinding.objects.get()
    assert finding.kind == kind
    assert finding.ratio == pytest.approx(ratio, rel=0.4 if kind == "spread" else 0.01)
    assert (finding.share is not None) == (kind == "mode")
    [row] = history_page(finding.series_id).findings
    assert row.kind == kind
    assert row.before and row.after


def test_a_steady_series_and_a_short_one_have_no_findings() -> None:
    send(100 * np.exp(noise(200)), "steady")
    send(drifting(59, begin=0), "short")
    assert series_findings.examine_due() == 1
    assert not Alert.objects.exists()


def test_a_series_that_always_had_two_modes_is_as_it_was() -> None:
    other = np.random.default_rng(3).random(180) < 0.4
    send(100 * np.exp(noise(180)) * np.where(other, 1.06, 1))
    series_findings.examine_due()
    assert not Alert.objects.exists()


def test_a_finding_is_updated_and_closed_by_itself_when_it_is_over() -> None:
    send(drifting())
    series_findings.examine_due()
    finding = SeriesFinding.objects.get()
    send(130 * np.exp(noise(19, 1)), first=200)
    assert series_findings.examine_due() == 0
    send(130 * np.exp(noise(61, 1)), first=219)
    series_findings.examine_due()
    assert open_kinds() == [("drift", "new")], "one miss may be chance"
    send(130 * np.exp(noise(20, 2)), first=280)
    series_findings.examine_due()
    assert open_kinds() == [("drift", "fixed")]
    finding.refresh_from_db()
    assert finding.ended_at is not None
    assert finding.alert.recovered_at == Datum.objects.order_by("at").last().at  # type: ignore[union-attr]
    assert [event.kind for event in finding.alert.events.all()] == ["raised", "recovered"]
    assert history_page(finding.series_id).findings == ()


def test_an_alert_that_somebody_closed_stays_closed_while_the_finding_lasts(ada: User) -> None:
    send(drifting(240, 0.4)[:200])
    series_findings.examine_due()
    alert = Alert.objects.get()
    triage.set_state([alert.pk], AlertState.EXPECTED, ada)
    send(drifting(240, 0.4)[200:], first=200)
    assert series_findings.examine_due() == 1
    assert open_kinds() == [("drift", "expected")]
    assert SeriesFinding.objects.get().n_after > 120, "its figures are those of now"


def test_a_closed_alert_that_is_opened_again_goes_on(ada: User) -> None:
    send(drifting())
    series_findings.examine_due()
    finding = SeriesFinding.objects.get()
    SeriesFinding.objects.update(ended_at=timezone.now())
    Alert.objects.update(state=AlertState.INVESTIGATING)
    send(drifting(220, 0.36)[200:], first=200)
    series_findings.examine_due()
    assert SeriesFinding.objects.get(pk=finding.pk).ended_at is None
    assert open_kinds() == [("drift", "investigating")]


def test_a_muted_series_raises_nothing_and_a_baseline_begins_anew(ada: User) -> None:
    send(drifting())
    row = Series.objects.get()
    SeriesRule.objects.create(series=row, muted=True, reason="known")
    series_findings.examine_due()
    assert not Alert.objects.exists()
    row.baselines.create(at=timezone.now() - 830 * HOUR, reason="moved")
    SeriesRule.objects.all().delete()
    send(130 * np.exp(noise(20)), first=200)
    series_findings.examine_due()
    assert not Alert.objects.exists(), "fewer than 60 points since the baseline"


def test_withdrawn_points_count_no_longer(ada: User) -> None:
    send(two_modes())
    series_findings.examine_due()
    alert = Alert.objects.get()
    last = Datum.objects.filter(value__lt=103).latest("at")
    for datum in (*Datum.objects.filter(value__gt=103), last):
        withdrawals.withdraw(datum, "another tenant", ada)
    assert series_findings.examine_due() == 1
    withdrawals.restore(last, ada)
    assert series_findings.examine_due() == 1
    alert.refresh_from_db()
    assert alert.state == AlertState.FIXED


def test_a_channel_that_selects_drifts_is_told_with_the_figures() -> None:
    Channel.objects.create(name="c", kind="email", address="a@b.example", alerts=["drift"])
    send(drifting())
    series_findings.examine_due()
    message = build_message(Delivery.objects.get())
    assert message.finding is not None
    assert message.finding.ratio == pytest.approx(1.3, abs=0.03)
    assert b'"n_before"' in message.as_json()
    assert email.subject(message) == "[Kiln] drift of gemm on NVIDIA H200"
    text = email.text(message)
    assert "creeping, +" in text
    assert "no new point" not in text


def test_the_weekly_list_has_the_open_findings_of_the_week() -> None:
    send(drifting(change=0.2), "a")
    send(drifting(change=0.4, seed=1), "b")
    send(two_modes(), "c")
    series_findings.examine_due()
    week = timezone.now() - timedelta(days=7)
    rows = findings_raised(week, timezone.now())
    assert [(row.kind, row.series.problem) for row in rows] == [
        ("drift", "b"),
        ("drift", "a"),
        ("mode", "c"),
    ]
    Alert.objects.filter(kind="mode").update(state=AlertState.EXPECTED)
    Alert.objects.filter(series__problem="a").update(created_at=week - HOUR)
    assert [row.series.problem for row in findings_raised(week, timezone.now())] == ["b"]


def test_two_open_alerts_of_one_kind_are_refused_by_name(ada: User) -> None:
    send(drifting())
    series_findings.examine_due()
    alert = Alert.objects.get()
    triage.set_state([alert.pk], AlertState.FIXED, ada)
    Alert.objects.create(kind="drift", series=alert.series, n_series=1, at=alert.at)
    with pytest.raises(Exception, match="already has an open alert of this kind"):
        triage.set_state([alert.pk], AlertState.NEW, ada)


def test_the_number_of_queries_does_not_grow_with_series() -> None:
    def steady(names: list[str]) -> None:
        for name in names:
            send(100 * np.exp(noise(70)), name)

    steady(["a"])
    one = queries_of(series_findings.examine_due)
    steady([f"b{n}" for n in range(5)])
    assert queries_of(series_findings.examine_due) == one <= 12

    send(drifting(), "d0")
    series_findings.examine_due()
    filters = AlertFilter(kind="drift")
    listed = queries_of(alert_list, filters)
    for n in range(3):
        send(drifting(seed=n), f"e{n}")
    series_findings.examine_due()
    assert Alert.objects.count() == 4
    assert queries_of(alert_list, filters) == listed <= 6
    assert queries_of(alert_page, Alert.objects.latest("pk").pk) <= 11


def test_the_longest_waiting_are_examined_first_and_a_pass_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(series_findings, "BATCH_SIZE", 2)
    monkeypatch.setattr(series_findings, "MAX_BATCHES", 1)
    for name in "abc":
        send(100 * np.exp(noise(60)), name)
    assert series_findings.examine_due() == 2
    for name in "ab":
        send(100 * np.exp(noise(20)), name, first=60)
    assert series_findings.examine_due() == 2
    done: list[datetime] = list(
        Series.objects.filter(problem="c").values_list("examination__examined_at", flat=True)
    )
    assert done[0] is not None


def test_a_series_that_cannot_be_examined_does_not_keep_others_waiting() -> None:
    send(np.exp(np.linspace(-700, 700, 200)), "wild")
    send(np.where(np.arange(200) % 3 == 0, 1e-300, 1e300) * np.exp(noise(200)), "wilder")
    send(drifting(), "gemm")
    assert series_findings.examine_due() == 3
    assert series_findings.examine_due() == 0
    assert [alert.series.problem for alert in Alert.objects.all() if alert.series] == ["gemm"]
