"""A machine whose series move together with equal code: one alert, its points set aside until it is
back; and everything that only looks like it."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client

from codegen_app.tracking.alerting import triage
from codegen_app.tracking.alerting.shared_series import check_shared_series
from codegen_app.tracking.models import (
    AlertState,
    Change,
    Channel,
    Delivery,
    MachineFinding,
    Series,
    SeriesRule,
    Source,
    Withdrawal,
)
from codegen_app.tracking.notifying import email
from codegen_app.tracking.notifying.message import build_message
from codegen_app.tracking.pages.alert.query import alert_page
from codegen_app.tracking.services import alert_pipeline, point_storage, withdrawals
from scheduler.results.points.model import Point, RevisionKey
from tests.support import team
from tests.support.queries import queries_of
from tests.support.team import MACHINE, Machine

pytestmark = pytest.mark.django_db
PROBLEMS = [f"gemm {n}" for n in range(12)]
LEVELS = {problem: 100.0 + 10 * n for n, problem in enumerate(PROBLEMS)}
COMMITS = team.commits(40)


def measured(
    revisions: list[RevisionKey],
    factor: float = 1.0,
    machine: Machine = MACHINE,
    problems: list[str] = PROBLEMS,
) -> list[Point]:
    return [
        point
        for problem in problems
        for point in team.history(problem, revisions, factor * LEVELS.get(problem, 100), machine)
    ]


def slow_machine() -> None:
    team.push(measured(COMMITS[:20]))
    team.push(measured(COMMITS[20:24], 1.3))


@pytest.fixture
def channel() -> Channel:
    return Channel.objects.create(
        name="all", kind="email", address="a@example.org", alerts=["regression", "machine"]
    )


@pytest.fixture
def ada(client: Client) -> User:
    user = User.objects.create_user("ada")
    user.user_permissions.add(Permission.objects.get(codename="triage"))
    client.force_login(user)
    return user


def levels() -> set[int]:
    """How many changes each series shows."""
    live = Change.objects.filter(withdrawn_at=None)
    return {live.filter(series=series).count() for series in Series.objects.all()}


def test_the_overview_names_machines_whose_points_are_set_aside(client: Client, ada: User) -> None:
    assert "are not compared" not in client.get("/").content.decode()
    slow_machine()
    page = client.get("/").content.decode()
    assert "?kind=machine" in page and "are not compared" in page


def test_a_slow_machine_is_one_alert_and_its_points_are_set_aside(channel: Channel) -> None:
    slow_machine()
    [alert] = team.alerts()
    assert (alert.kind, alert.machine, alert.n_series) == ("machine", "host-1", 12)
    assert alert.at == COMMITS[20].at
    assert alert.worst_ratio == pytest.approx(1.3, abs=0.02)
    assert Withdrawal.objects.filter(alert=alert, restored_at=None).count() == 48
    assert set(Series.objects.values_list("withdrawn", flat=True)) == {4}
    assert levels() == {0}
    assert team.messages() == [(alert.pk, "raised")]
    assert team.open_count() == 0

    team.push(measured(COMMITS[24:27], 1.3))
    assert Withdrawal.objects.filter(alert=alert, restored_at=None).count() == 84
    assert levels() == {0}
    assert [row.state for row in team.alerts()] == ["new"]


def test_the_alert_is_closed_when_the_machine_is_back(channel: Channel) -> None:
    slow_machine()
    team.push(measured(COMMITS[24:26], 1.3))
    team.push(measured(COMMITS[26:28]))
    [alert] = team.alerts()
    assert (alert.state, alert.recovered_at) == ("fixed", COMMITS[26].at)
    assert alert.n_series == 12
    assert Withdrawal.objects.filter(alert=alert, restored_at=None).count() == 72
    assert set(Series.objects.values_list("withdrawn", flat=True)) == {6}
    assert team.messages() == [(alert.pk, "raised")], "one message that is not sent yet"

    team.push(measured(COMMITS[28:40]))
    assert levels() == {0}
    assert len(team.alerts()) == 1


def test_points_of_a_slow_time_that_come_when_the_machine_is_back_are_set_aside(
    channel: Channel,
) -> None:
    late = measured(COMMITS[20:24], 1.3, problems=PROBLEMS[6:])
    team.push(measured(COMMITS[:20]))
    team.push(measured(COMMITS[20:24], 1.3, problems=PROBLEMS[:6]))
    team.push(measured(COMMITS[24:28]))
    [alert] = team.alerts()
    assert alert.state == "fixed"
    team.push(late)
    assert [row.pk for row in team.alerts()] == [alert.pk]
    assert Withdrawal.objects.filter(alert=alert, restored_at=None).count() == 48
    assert levels() == {0}


def test_a_machine_that_slows_down_again_has_an_alert_again() -> None:
    slow_machine()
    team.push(measured(COMMITS[24:28]))
    team.push(measured(COMMITS[28:32], 1.2))
    first, second = team.alerts()
    assert (first.state, second.state) == ("fixed", "new")
    assert second.at == COMMITS[28].at
    assert second.worst_ratio == pytest.approx(1.2, abs=0.02)


def test_points_of_an_old_revision_and_of_new_series_are_set_aside_on_arrival() -> None:
    slow_machine()
    early = team.commits(1, prefix="old", last=COMMITS[3].at)[0]
    late = [team.point("gemm 0", early, 130.0, measured_at=COMMITS[25].at)]
    team.push([*late, *measured(COMMITS[24:25], 1.3, problems=["another"])])
    assert Withdrawal.objects.filter(restored_at=None).count() == 50


def test_one_noisy_series_is_no_machine() -> None:
    team.push(measured(COMMITS[:20]))
    for n, problem in enumerate(PROBLEMS):
        team.push(measured(COMMITS[20:25], 1.3 if n == 3 else 1.0, problems=[problem]))
    assert team.alerts() == []


def test_few_series_of_many_are_no_machine() -> None:
    team.push(measured(COMMITS[:20]))
    team.push(
        measured(COMMITS[20:25], 1.3, problems=PROBLEMS[:5])
        + measured(COMMITS[20:25], problems=PROBLEMS[5:])
    )
    assert team.alerts() == []


def test_a_machine_of_muted_series_raises_no_alert(channel: Channel) -> None:
    team.push(measured(COMMITS[:20]))
    muted = Series.objects.order_by("problem")
    SeriesRule.objects.bulk_create(
        [SeriesRule(series=row, muted=True, reason="moving house") for row in muted]
    )
    team.push(measured(COMMITS[20:24], 1.3))
    assert (team.alerts(), team.messages()) == ([], [])
    SeriesRule.objects.filter(series=muted[0]).delete()
    team.push(measured(COMMITS[24:25], 1.3))
    assert [alert.kind for alert in team.alerts()] == ["machine"], "one of its series is not muted"


def test_a_driver_update_is_no_machine() -> None:
    team.push(measured(COMMITS[:20]))
    team.push(measured(COMMITS[20:25], 1.3, replace(MACHINE, driver="590.10")))
    assert {alert.kind for alert in team.alerts()} == {"regression"}
    assert {alert.cause for alert in team.alerts()} == {"environment"}


def test_a_commit_that_slows_all_series_is_code() -> None:
    hosts = [MACHINE, replace(MACHINE, host="host-2", device="NVIDIA H100")]
    team.push([point for host in hosts for point in measured(COMMITS[:20], 1.0, host)])
    slower = [
        point for host in hosts for point in measured(COMMITS[20:25], 1.3, host.with_code("b"))
    ]
    team.push(slower)
    assert {alert.kind for alert in team.alerts()} == {"regression"}
    assert not Withdrawal.objects.exists()


def test_only_the_slow_one_of_two_hosts_is_set_aside() -> None:
    other = replace(MACHINE, host="host-2", device="NVIDIA H100")
    team.push(measured(COMMITS[:20]) + measured(COMMITS[:20], 1.0, other))
    team.push(measured(COMMITS[20:25], 1.3) + measured(COMMITS[20:25], 1.0, other))
    [alert] = team.alerts()
    assert alert.machine == "host-1"
    devices = Withdrawal.objects.values_list("series__device_name", flat=True)
    assert set(devices) == {"NVIDIA H200"}


def test_without_hosts_the_device_model_is_the_machine() -> None:
    unnamed = replace(MACHINE, host="")
    team.push(measured(COMMITS[:20], 1.0, unnamed))
    team.push(measured(COMMITS[20:24], 1.3, unnamed))
    [alert] = team.alerts()
    assert (alert.kind, alert.machine) == ("machine", "NVIDIA H200")
    assert Withdrawal.objects.filter(alert=alert).count() == 48


def test_points_count_again_if_somebody_says_so(ada: User) -> None:
    slow_machine()
    [alert] = team.alerts()
    action = triage.set_state([alert.pk], AlertState.INVALID, ada)
    alert_pipeline.process_pending()
    assert not Withdrawal.objects.filter(restored_at=None).exists()
    assert levels() == {1}
    team.push(measured(COMMITS[24:28], 1.3))
    assert [row.state for row in team.alerts()] == ["invalid"]
    assert levels() == {1}

    assert action.key is not None
    triage.undo(action.key, ada)
    alert_pipeline.process_pending()
    assert Withdrawal.objects.filter(restored_at=None).count() == 12 * 8
    assert levels() == {0}
    assert [row.state for row in team.alerts()] == ["new"]


def test_a_point_that_a_person_restored_stays_restored(ada: User) -> None:
    slow_machine()
    row = Withdrawal.objects.select_related("datum").first()
    assert row is not None
    withdrawals.restore(row.datum, ada)
    alert_pipeline.process_pending()
    team.push(measured(COMMITS[24:25], 1.3))
    standing = Withdrawal.objects.filter(restored_at=None)
    assert standing.count() == 59
    assert not standing.filter(datum=row.datum).exists()


def test_an_imported_history_raises_no_alert(settings: Any) -> None:
    settings.HISTORY_DAYS = 14
    old = team.commits(40, last=COMMITS[0].at - 30 * team.DAY)
    team.push(measured(old[:20]) + measured(old[20:30], 1.3) + measured(old[30:]))
    assert team.alerts() == []


def test_pages_and_messages_name_the_machine(channel: Channel, ada: User, client: Client) -> None:
    clocks = {"clocks": {"sm_clock_mhz": 1980}, "readings": {"temperature_c": 60}}
    throttled = {"clocks": {"sm_clock_mhz": 1400}, "readings": {"temperature_c": 91}}
    for revisions, factor, facts in ((COMMITS[:20], 1.0, clocks), (COMMITS[20:24], 1.3, throttled)):
        points = measured(revisions, factor)
        team.push([replace(one, conditions={**one.conditions, **facts}) for one in points])
    [alert] = team.alerts()
    page = client.get(f"/alerts/{alert.pk}").content.decode()
    for text in (
        "12 of 12 series measured on it",
        "SM clock 1,980 → 1,400 MHz",
        "temperature 60 → 91 °C",
        "Compare its points",
        "48 points",
        "All series",
    ):
        assert text in page, text
    data = client.get(f"/alerts/{alert.pk}.json").json()
    assert data["alert"]["subject"] == "host-1"
    assert data["machine"]["readings"][0]["n_series"] == 12
    assert len(data["machine"]["points"]) == 48
    [row] = client.get("/alerts.json?kind=machine&q=host-1").json()["alerts"]
    assert row["worst"]["ratio"] == pytest.approx(1.3, abs=0.02)
    [delivery] = Delivery.objects.select_related(
        "channel", "event__alert__revision", "event__alert__finding"
    )
    message = build_message(delivery)
    assert message.machine is not None
    assert len(message.series) == 12
    assert email.subject(message).startswith("[Kiln] machine host-1 in 12 series x1.30")
    assert "Machine:  host-1, 12 of 12 series measured there" in email.text(message)
    assert "temperature 60 -> 91" in email.text(message)
    series = Series.objects.earliest("pk")
    [chart] = client.get(f"/series/{series.pk}/points.json").json()["series"]
    assert (len(chart["columns"]["id"]), len(chart["set_aside"]["id"])) == (20, 4)
    [change] = alert.changes.filter(series=series)
    both_sides = client.get(f"/changes/{change.pk}").content.decode()
    assert "temperature" in both_sides
    history = client.get(f"/series/{series.pk}").content.decode()
    assert f"machine host-1 changed: alert {alert.pk}" in history
    assert "Later points are set aside with their machine" in history
    assert "No changes found" not in history.partition("data-history")[0]
    assert "The latest is" in history
    rows = client.get("/series.json").json()["rows"]
    assert {(row["machine"], row["machine_url"]) for row in rows} == {
        ("host-1", f"/alerts/{alert.pk}")
    }
    assert "host-1 changed: its points are set aside" in client.get("/series").content.decode()


def test_a_channel_selects_machines_and_their_series() -> None:
    for name, kinds, search in (
        ("regressions", ["regression"], ""),
        ("machines", ["machine"], "gemm"),
        ("others", ["machine"], "softmax"),
    ):
        Channel.objects.create(
            name=name, kind="email", address="a@example.org", alerts=kinds, search=search
        )
    slow_machine()
    assert [row.channel.name for row in Delivery.objects.all()] == ["machines"]


def test_a_page_of_a_machine_has_as_many_queries_for_one_point_as_for_many(
    ada: User, client: Client
) -> None:
    slow_machine()
    [alert] = team.alerts()
    many = queries_of(lambda: alert_page(alert.pk))
    extra = Withdrawal.objects.filter(alert=alert).values_list("pk", flat=True)[1:]
    Withdrawal.objects.filter(pk__in=list(extra)).delete()
    assert queries_of(lambda: alert_page(alert.pk)) == many


FLEET = [replace(MACHINE, host=f"host-{n}") for n in range(4)]


def in_turns(revisions: list[RevisionKey], slow: float = 1.0) -> list[Point]:
    """Each revision measured by the next of four hosts, of which the second may be slow."""
    return [
        point
        for revision in revisions
        for host in [FLEET[int(revision.name[1:]) % 4]]
        for point in measured([revision], slow if host == FLEET[1] else 1.0, host)
    ]


def test_the_slow_one_of_a_fleet_that_measures_series_in_turn() -> None:
    trunk = team.commits(84)
    team.push(in_turns(trunk[:56]))
    team.push(in_turns(trunk[56:76], slow=1.3))
    assert team.alerts() == []
    assert check_shared_series() == 1
    assert check_shared_series() == 0
    alert_pipeline.process_pending()
    [alert] = team.alerts()
    assert (alert.kind, alert.machine, alert.n_series) == ("machine", "host-1", 12)
    assert alert.at == trunk[57].at
    assert Withdrawal.objects.filter(alert=alert, restored_at=None).count() == 12 * 5
    team.push(in_turns(trunk[76:84]))
    [alert] = team.alerts()
    assert (alert.state, alert.recovered_at) == ("fixed", trunk[77].at)
    assert levels() == {0}
    assert check_shared_series() == 0


def test_a_commit_that_slows_a_fleet_is_no_machine() -> None:
    trunk = team.commits(80)
    team.push(in_turns(trunk[:56]))
    slower = [replace(point, value=point.value * 1.3) for point in in_turns(trunk[56:])]
    team.push(slower)
    assert check_shared_series() == 0
    assert not Withdrawal.objects.exists()


@pytest.mark.parametrize("facts", [{"driver": "590.10"}, {"toolchain_version": "13.1"}])
def test_a_host_of_a_fleet_with_another_driver_or_compiler_is_no_machine(
    facts: dict[str, str],
) -> None:
    trunk = team.commits(80)
    team.push(in_turns(trunk[:56]))
    team.push(
        [
            replace(point, conditions={**point.conditions, **facts})
            if point.conditions["host"] == "host-1"
            else point
            for point in in_turns(trunk[56:], slow=1.3)
        ]
    )
    assert check_shared_series() == 0


@pytest.mark.django_db(transaction=True)
def test_of_several_pipelines_one_raises_and_one_closes_the_alert(channel: Channel) -> None:
    """Three workers process the same points."""
    team.push(measured(COMMITS[:20]))
    for start, factor in ((20, 1.3), (24, 1.3), (28, 1.0), (32, 1.0)):
        for revision in COMMITS[start : start + 4]:
            point_storage.store(measured([revision], factor), Source.API)
            process_in_threads()
    [alert] = team.alerts()
    assert (alert.state, alert.recovered_at) == ("fixed", COMMITS[28].at)
    kinds = list(alert.events.values_list("kind", flat=True))
    assert kinds == ["raised", "recovered"]
    assert team.messages() == [(alert.pk, "raised")]
    assert Withdrawal.objects.filter(restored_at=None).count() == 12 * 8
    assert set(Series.objects.values_list("withdrawn", flat=True)) == {8}
    assert levels() == {0}


def process_in_threads() -> None:
    def process() -> None:
        try:
            alert_pipeline.process_pending()
        finally:
            connection.close()

    threads = [threading.Thread(target=process) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alert_pipeline.process_pending()


def test_a_machine_may_have_the_longest_name() -> None:
    named = replace(MACHINE, host="\N{WAVING WHITE FLAG}\N{GRINNING FACE}" * 500)
    team.push(measured(COMMITS[:20], 1.0, named))
    team.push(measured(COMMITS[20:24], 1.3, named))
    [alert] = team.alerts()
    assert len(alert.machine) == 200
    assert MachineFinding.objects.get(alert=alert).host == named.host
    assert Withdrawal.objects.filter(alert=alert).count() == 48
