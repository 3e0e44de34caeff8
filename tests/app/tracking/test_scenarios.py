"""What a team of twenty meets in its first weeks, each with the alerts that it should get."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from threading import Event, Thread
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import F
from django.test import Client

from codegen_app.tracking.alerting import (
    creation,
    missing_data,
    recovered,
    series_findings,
    shared_series,
    triage,
)
from codegen_app.tracking.models import (
    Alert,
    AlertEvent,
    AlertState,
    Change,
    Delivery,
    Revision,
    Series,
    Source,
)
from codegen_app.tracking.notifying import email
from codegen_app.tracking.notifying.message import build_message
from codegen_app.tracking.pages.alerts.feed import feed_entries
from codegen_app.tracking.services import (
    alert_pipeline,
    detection,
    explanations,
    point_storage,
    withdrawals,
)
from scheduler.errors import UserError
from scheduler.results.points import native
from scheduler.results.points.model import ImportContext, Point, RevisionKey
from tests.app.track_factories import channel
from tests.support.patience import PATIENCE_S
from tests.support.team import (
    DAY,
    MACHINE,
    REPOSITORY,
    Machine,
    alerts,
    commits,
    history,
    messages,
    open_count,
    push,
    push_by_revision,
)

pytestmark = pytest.mark.django_db
SLOWER = MACHINE.with_code("b")


@pytest.fixture(autouse=True)
def _history_is_history(settings: Any) -> None:
    settings.HISTORY_DAYS = 14


def in_turn(
    count: int, trunk: Sequence[RevisionKey], step: int, after: Machine, ratio: float = 1.3
) -> list[Point]:
    """Series that are measured in turn, one at each commit; slower on another machine from the
    commit ``step`` on."""
    points = []
    for n, commit in enumerate(trunk):
        problem, is_after = f"softmax {n % count}", n >= step
        value, machine = (100.0 * ratio, after) if is_after else (100.0, MACHINE)
        points += history(problem, [commit], value, machine)
    return points


def test_a_commit_that_moves_two_hundred_series_is_one_alert() -> None:
    channel()
    trunk = commits(23)
    points = [
        point
        for n in range(200)
        for point in (
            *history(f"gemm {n}", trunk[:18], 100.0),
            *history(f"gemm {n}", trunk[18:], 125.0, SLOWER),
        )
    ]
    push(points)
    [alert] = alerts()
    assert (alert.kind, alert.n_series, alert.cause) == ("regression", 200, "code")
    assert alert.revision is not None
    assert alert.revision.name == "c18"
    assert open_count() == 1
    assert messages() == [(alert.pk, "raised")]


@pytest.mark.parametrize(
    ("after", "cause"),
    [
        pytest.param(replace(MACHINE, driver="590.10"), "environment", id="driver"),
        pytest.param(replace(MACHINE, compiler="13.1"), "compiler", id="compiler"),
    ],
)
def test_an_update_seen_by_series_that_are_measured_in_turn_is_one_alert(
    after: Machine, cause: str
) -> None:
    channel()
    trunk = commits(80)
    points = in_turn(4, trunk, 62, after)
    push(points[:62])
    push_by_revision(points[62:])
    [alert] = alerts()
    assert (alert.kind, alert.n_series, alert.cause) == ("regression", 4, cause)
    assert alert.revision is not None
    assert alert.good_revision is not None
    assert (alert.good_revision.name, alert.revision.name) == ("c61", "c62")
    assert [kind for _, kind in messages()] == ["raised"], "one message that is not sent yet"


def test_regressions_of_two_commits_in_a_row_are_two_alerts() -> None:
    trunk = commits(60)
    points = history("gemm", trunk[:40], 100.0) + history("gemm", trunk[40:], 125.0, SLOWER)
    points += history("conv", trunk[:41], 100.0) + history("conv", trunk[41:], 125.0, SLOWER)
    push(points)
    names = [alert.revision.name for alert in alerts() if alert.revision is not None]
    assert names == ["c40", "c41"]


def test_regressions_days_apart_are_two_alerts() -> None:
    trunk = commits(96)
    first, second = SLOWER, MACHINE.with_code("c")
    points = history("gemm", trunk[:40], 100.0) + history("gemm", trunk[40:], 125.0, first)
    points += history("conv", trunk[:70], 100.0) + history("conv", trunk[70:], 125.0, second)
    for first, last in pairwise((0, 40, 48, 70, 78, 96)):
        push([point for point in points if point.revision in trunk[first:last]])
    names = [alert.revision.name for alert in alerts() if alert.revision is not None]
    assert names == ["c40", "c70"]


def test_a_driver_and_a_commit_of_one_day_are_two_alerts() -> None:
    trunk = commits(60)
    driver = replace(MACHINE, driver="590.10")
    points = history("gemm", trunk[:40], 100.0) + history("gemm", trunk[40:], 125.0, driver)
    points += history("conv", trunk[:40], 100.0) + history("conv", trunk[40:], 125.0, SLOWER)
    push(points)
    assert sorted(alert.cause for alert in alerts()) == ["code", "environment"]
    assert open_count() == 2, "neither is a duplicate of the other"


def test_points_late_and_out_of_order_narrow_a_window_and_send_nothing_more() -> None:
    channel()
    trunk = commits(60)
    everything = history("gemm", trunk[:40], 100.0) + history("gemm", trunk[40:], 125.0, SLOWER)
    late = everything[36:43]
    push([point for point in everything if point not in late])
    [alert] = alerts()
    assert alert.good_revision is not None
    assert alert.revision is not None
    assert (alert.good_revision.name, alert.revision.name) == ("c35", "c43")
    for point in (late[5], late[0], late[3], late[6], late[1], late[4], late[2]):
        push([point])
    [alert] = alerts()
    assert alert.good_revision is not None
    assert alert.revision is not None
    assert (alert.good_revision.name, alert.revision.name) == ("c39", "c40")
    assert (alert.state, messages()) == (AlertState.NEW, [(alert.pk, "raised")])


def test_windows_that_late_points_separate_are_two_alerts() -> None:
    trunk = commits(60)
    gemm, conv = trunk[:40:2], trunk[1:41:2]
    points = history("gemm", gemm, 100.0) + history("gemm", trunk[42::2], 125.0, SLOWER)
    points += history("conv", conv, 100.0) + history("conv", trunk[43::2], 125.0, SLOWER)
    push(points)
    [alert] = alerts()
    assert alert.n_series == 2
    push(history("gemm", [trunk[41]], 125.0, SLOWER) + history("conv", [trunk[42]], 100.0))
    assert [alert.n_series for alert in alerts("new")] == [1, 1]


def test_windows_that_noise_moved_apart_at_once_are_two_alerts() -> None:
    trunk = commits(60)
    points = history("gemm", trunk[:36], 100.0) + history("gemm", trunk[42:], 125.0, SLOWER)
    points += history("conv", trunk[:38], 100.0) + history("conv", trunk[44:], 125.0, SLOWER)
    push(points + history("softmax", trunk, 100.0))
    assert [alert.n_series for alert in alerts()] == [2]
    rows = {row.name: row for row in Revision.objects.all()}
    conv, gemm = Change.objects.order_by("series__problem")
    for change, good, bad in ((gemm, "c35", "c39"), (conv, "c40", "c44")):
        change.good_revision, change.since = rows[good], rows[good].at
        change.bad_revision, change.until = rows[bad], rows[bad].at
        change.raised_at = None
        change.save()
    alert_pipeline.process_pending()
    assert [alert.n_series for alert in alerts("new")] == [1, 1]


def test_a_cause_that_more_points_correct_decides_which_alert_a_change_is_in() -> None:
    trunk = commits(60)
    driver = replace(MACHINE, driver="590.10")
    for problem in ("gemm", "conv"):
        push(history(problem, trunk[:40], 100.0) + history(problem, trunk[40:], 125.0, SLOWER))
    [alert] = alerts()
    assert alert.cause_class == "code"
    Change.objects.update(cause="environment", raised_at=None)
    creation.raise_alerts()
    push(history("softmax", trunk[:40], 100.0) + history("softmax", trunk[40:], 125.0, driver))
    assert [(row.pk, row.cause_class) for row in alerts()] == [(alert.pk, "environment")]
    Change.objects.filter(series__problem="gemm").update(cause="code", raised_at=None)
    creation.raise_alerts()
    assert [(row.n_series, row.cause_class) for row in alerts()] == [
        (2, "environment"),
        (1, "code"),
    ]


def test_commits_of_one_second_are_one_window_whatever_comes_first() -> None:
    trunk = commits(60)
    trunk[40:43] = [replace(commit, at=trunk[42].at) for commit in trunk[40:43]]  # rebased at once
    points = history("gemm", trunk[:41], 100.0) + history("gemm", trunk[41:], 125.0, SLOWER)
    push(points)
    push(history("conv", trunk[:40], 100.0) + history("conv", trunk[42:], 125.0, SLOWER))
    [alert] = alerts()
    assert (alert.n_series, alert.since, alert.at) == (2, trunk[42].at, trunk[42].at)


def test_two_years_of_history_are_no_news() -> None:
    channel()
    trunk = commits(700, every=DAY, last=datetime.now(UTC) - 30 * DAY)
    points = []
    for problem in ("gemm", "conv", "softmax"):
        for n in range(7):
            value = 100.0 * (1.0, 1.3, 1.0, 0.7, 0.9, 1.2, 1.5)[n]
            part = trunk[100 * n : 100 * (n + 1)]
            points += history(problem, part, value, MACHINE.with_code(f"code {n}"))
    push(points)
    for job in (
        *(missing_data.update_alerts, series_findings.examine_due, recovered.close_alerts),
        shared_series.check_shared_series,
    ):
        job()
    assert len(alerts("history")) == len(alerts()) >= 6
    assert (open_count(), messages()) == (0, [])
    assert [entry.state for entry in feed_entries()] == []
    assert len(feed_entries("history")) == len(alerts())


def test_what_is_new_in_a_series_with_a_point_a_month_is_news() -> None:
    channel()
    months = commits(20, every=30 * DAY, last=datetime.now(UTC) - DAY)
    points = history("release", months[:16], 100.0) + history("release", months[16:], 130.0, SLOWER)
    old = commits(500, prefix="d", every=DAY, last=datetime.now(UTC) - 60 * DAY)
    imported = history("gemm", old[:460], 100.0) + history("gemm", old[460:], 125.0, SLOWER)
    push(points[:-1])
    assert alerts() == []
    push(imported + points[-1:])
    assert sorted(alert.state for alert in alerts()) == ["history", "new"]
    assert [kind for _, kind in messages()] == ["raised"]


def test_an_alert_that_is_back_for_a_week_is_closed_and_says_so() -> None:
    trunk = commits(60)
    points = history("gemm", trunk[:30], 100.0) + history("gemm", trunk[30:45], 125.0, SLOWER)
    push(points + history("gemm", trunk[45:], 100.0, MACHINE.with_code("c")))
    [alert, _] = alerts()
    assert alert.recovered_at is not None
    assert recovered.close_alerts() == 0, "for a week, it is shown as recovered"
    AlertEvent.objects.update(at=F("at") - 8 * DAY)
    assert recovered.close_alerts() == 1
    alert.refresh_from_db()
    assert alert.state == AlertState.FIXED
    last = alert.events.last()
    assert last is not None
    assert (last.by, last.note) == (None, "at the previous level for 7 days")


def test_an_alert_that_somebody_reopened_is_not_closed_again(admin_user: User) -> None:
    test_an_alert_that_is_back_for_a_week_is_closed_and_says_so()
    alert = alerts()[0]
    triage.set_state([alert.pk], AlertState.NEW, admin_user)
    assert recovered.close_alerts() == 0


def test_a_recovery_that_later_points_disprove_reopens_the_alert(admin_user: User) -> None:
    test_an_alert_that_is_back_for_a_week_is_closed_and_says_so()
    series = Series.objects.get()
    for datum in series.data.filter(at__gte=commits(60)[45].at, value__lt=110):
        withdrawals.withdraw(datum, "another tenant", admin_user)
    alert_pipeline.process_pending()
    alert = alerts()[0]
    assert (alert.state, alert.recovered_at) == (AlertState.NEW, None)


def test_a_regression_after_a_recovery_has_an_alert_of_its_own() -> None:
    trunk = commits(90)
    points = history("gemm", trunk[:30], 100.0) + history("gemm", trunk[30:45], 125.0, SLOWER)
    points += history("gemm", trunk[45:60], 100.0, MACHINE.with_code("c"))
    push(points)
    AlertEvent.objects.update(at=F("at") - 8 * DAY)
    assert recovered.close_alerts() == 1
    push(history("gemm", trunk[60:], 150.0, MACHINE.with_code("d")))
    states = [alert.state for alert in alerts() if alert.kind == "regression"]
    assert states == [AlertState.FIXED, AlertState.NEW]


@pytest.mark.parametrize(
    ("year", "reason"), [(1970, "is before 2000: check the clock"), (2099, "is in the future")]
)
@pytest.mark.parametrize("field", ["measured_at", "revision.at"])
def test_points_of_a_wrong_clock_are_refused_by_row_and_field(
    year: int, reason: str, field: str
) -> None:
    rows: list[dict[str, Any]] = [
        {"problem": "gemm", "value": 1.0, "revision": {"name": f"r{n}"}} for n in range(3)
    ]
    moment = f"{year}-01-01T00:00:00Z"
    if field == "measured_at":
        rows[2]["measured_at"] = moment
    else:
        rows[2]["revision"] = {"name": "r2", "at": moment}
    defaults = {"device": "NVIDIA H200", "metric": "time", "unit": "ns"}
    content = {"kind": "kiln points", "schema": 1, "defaults": defaults, "points": rows}
    with pytest.raises(UserError, match=re.escape(f"points[2].{field}: {year}")) as refused:
        native.read(content, ImportContext(now=datetime.now(UTC)))
    assert reason in str(refused.value)


def test_the_window_of_an_alert_is_shown_with_its_commits(reader: Client) -> None:
    trunk = commits(60)
    named = [
        replace(commit, subject=f"Change <{commit.name}>", author="Ada Lovelace")
        for commit in trunk
    ]
    gemm = [commit for n, commit in enumerate(named) if n not in (40, 41, 42)]
    points = history("gemm", gemm[:40], 100.0) + history("gemm", gemm[40:], 125.0, SLOWER)
    channel()
    push(points + history("conv", named, 100.0))
    [alert] = alerts()
    page = reader.get(alert.get_absolute_url()).content.decode()
    section = page[page.index('id="window"') :].partition("</section>")[0]
    for text in (
        "c39",
        "c43",
        "measured in between",
        "commits after the last good one",
        "Change &lt;c41&gt;",
        "Ada",
    ):
        assert text in section, text
    assert f"{REPOSITORY}/compare/c39...c43" in page
    window = reader.get(f"{alert.get_absolute_url()}.json").json()["window"]
    assert (window["good"], window["bad"], window["n_between"]) == ("c39", "c43", 3)
    assert [commit["name"] for commit in window["commits"]] == ["c43", "c42", "c41", "c40"]
    message = build_message(Delivery.objects.get())
    assert message.window is not None
    assert (message.window.good, message.window.n_commits) == ("c39", 4)
    text = email.text(message)
    assert "After:    c39, 3 measured revisions in between\n" in text
    assert "Commit:   c42 Change <c42> (Ada Lovelace)\n" in text


def test_the_same_commit_twice_and_a_rewritten_branch_raise_nothing_more() -> None:
    channel()
    trunk = commits(60)
    points = history("gemm", trunk[:40], 100.0) + history("gemm", trunk[40:50], 125.0, SLOWER)
    push(points)
    push(points[38:44])
    rewritten = [replace(commit, name=f"rebased {commit.name}") for commit in trunk[36:60]]
    push(history("gemm", rewritten[:4], 100.0) + history("gemm", rewritten[4:], 125.0, SLOWER))
    [alert] = alerts()
    assert (alert.state, alert.n_series) == (AlertState.NEW, 1)
    assert alert.at == trunk[40].at
    assert messages() == [(alert.pk, "raised")]


@pytest.mark.django_db(transaction=True)
def test_two_workers_raise_one_alert_for_one_window() -> None:
    trunk = commits(60)
    for problem, begin in (("gemm", 0), ("conv", 1)):
        before, after = trunk[begin:40:2], trunk[40 + begin :: 2]
        point_storage.store(
            history(problem, before, 100.0) + history(problem, after, 125.0, SLOWER), Source.API
        )
    while detection.detect_changes() or explanations.explain():
        pass
    first, second = Change.objects.order_by("pk")
    Change.objects.filter(pk=second.pk).update(raised_at=second.found_at)
    raised = Event()

    def raise_second() -> None:
        Change.objects.filter(pk=second.pk).update(raised_at=None)
        raised.set()
        creation.raise_alerts()
        connection.close()

    other = Thread(target=raise_second)
    with transaction.atomic():
        assert creation.raise_alerts() == 1
        other.start()
        assert raised.wait(PATIENCE_S)
    other.join()
    alert = Alert.objects.get()
    assert {first.series_id, second.series_id} == set(
        alert.changes.values_list("series", flat=True)
    )
    assert alert.n_series == 2


def test_history_may_be_reopened_and_is_set_by_kiln_alone(admin_user: User) -> None:
    trunk = commits(60, every=DAY, last=datetime.now(UTC) - 30 * DAY)
    push(history("gemm", trunk[:40], 100.0) + history("gemm", trunk[40:], 125.0, SLOWER))
    [alert] = alerts("history")
    with pytest.raises(UserError, match="history is set by Kiln alone"):
        triage.set_state([alert.pk], AlertState.HISTORY, admin_user)
    act = triage.set_state([alert.pk], AlertState.NEW, admin_user)
    assert open_count() == 1
    assert act.key is not None
    triage.undo(act.key, admin_user)
    assert [alert.state for alert in alerts()] == [AlertState.HISTORY]
