"""A large step at its first values: shown as suspected, without an alert, and measured again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from codegen_app.tracking.models import (
    Alert,
    Change,
    Datum,
    MeasurementRequest,
    Series,
    SeriesRule,
)
from codegen_app.tracking.queries.histories import requests_page
from codegen_app.tracking.remeasuring import suspicions
from codegen_app.tracking.services import alert_pipeline, detection, withdrawals
from scheduler.results.points.model import Point
from tests.support import team
from tests.support.queries import assert_steady, queries_of

pytestmark = pytest.mark.django_db
LEVEL = 20


def suspected(problem: str = "gemm") -> tuple[int, float | None]:
    series = Series.objects.get(problem=problem)
    ratio = series.suspected_ratio
    assert (series.suspected_from is None) == (series.suspected_n == 0)
    return series.suspected_n, ratio and round(ratio, 1)


def values(problem: str, *later: float, before: int = LEVEL, noise: float = 0.005) -> list[Point]:
    """Points at 100, and then these."""
    trunk = team.commits(before + len(later))
    return [
        *team.history(problem, trunk[:before], 100.0, noise=noise),
        *(
            team.point(problem, commit, value, team.MACHINE.with_code("b"), noise=noise)
            for commit, value in zip(trunk[before:], later, strict=True)
        ),
    ]


def test_a_step_is_suspected_until_it_is_a_change() -> None:
    points = values("gemm", *[150.0] * 6)
    team.push(points[:LEVEL])
    assert suspected() == (0, None)
    for n in (1, 2, 3):
        team.push(points[LEVEL + n - 1 : LEVEL + n])
        assert suspected() == (n, 1.5)
        first = Datum.objects.get(revision__name=points[LEVEL].revision.name)
        assert Series.objects.get().suspected_from == first.at
        assert (Alert.objects.count(), team.messages()) == (0, [])
    team.push(points[LEVEL + 3 :])
    assert suspected() == (0, None)
    assert [alert.kind for alert in team.alerts()] == ["regression"]


def test_a_spike_is_suspected_and_then_cleared() -> None:
    points = values("gemm", 150.0, 100.0, 60.0)
    team.push(points[: LEVEL + 1])
    assert suspected() == (1, 1.5)
    team.push(points[LEVEL + 1 : LEVEL + 2])
    assert suspected() == (0, None)
    team.push(points[LEVEL + 2 :])
    assert suspected() == (1, 0.6)
    assert not Change.objects.exists()


def test_late_points_and_withdrawals_are_followed() -> None:
    """The end of the history counts, in whatever order its points come."""
    points = values("gemm", 150.0, 100.0)
    team.push([*points[:10], *points[11 : LEVEL + 1]])
    assert suspected() == (1, 1.5)
    team.push([points[10]])
    assert suspected() == (1, 1.5)
    last = Datum.objects.order_by("-at")[0]
    withdrawals.withdraw(last, "another tenant", User.objects.create_superuser("lead"))
    alert_pipeline.process_pending()
    assert suspected() == (0, None)


def test_short_noisy_and_old_histories_are_not_suspected(settings: Any) -> None:
    team.push(values("short", 150.0, before=7))
    team.push(values("noisy", 115.0, noise=0.05))
    settings.HISTORY_DAYS = 14
    month = timedelta(days=30)
    old = [
        replace(
            point,
            measured_at=point.measured_at - month,
            revision=replace(point.revision, name=f"old {n}", at=point.revision.at - month),
        )
        for n, point in enumerate(values("old", 150.0))
    ]
    team.push(old)
    assert [suspected(name) for name in ("short", "noisy", "old")] == [(0, None)] * 3


def test_branches_do_not_make_the_trunk_suspected() -> None:
    points = values("gemm")
    branch = team.commits(1, prefix="t", branch="topic")
    team.push([*points, *team.history("gemm", branch, 200.0)])
    assert suspected() == (0, None)


# ── measuring again ──────────────────────────────────────────────────────────────────────────────


def test_senders_are_asked_for_the_first_suspected_revision_once(reader: Client) -> None:
    points = values("gemm", 150.0, 150.0)
    team.push(points[: LEVEL + 1])
    (request,) = MeasurementRequest.objects.all()
    assert (request.alert, request.requested_by) == (None, None)
    assert request.revision.name == points[LEVEL].revision.name
    team.push(points[LEVEL + 1 :])
    assert MeasurementRequest.objects.count() == 1
    # The answer is another value there: the step was a spike.
    again = replace(points[LEVEL], value=100.0, measured_at=timezone.now())
    latest = replace(points[LEVEL + 1], value=100.0, measured_at=timezone.now())
    team.push([again, latest])
    assert suspected() == (0, None)


def test_so_many_an_hour_and_none_of_muted_or_generated_series(settings: Any) -> None:
    settings.SUSPICIONS_AN_HOUR = 3
    for n in range(5):
        team.push(values(f"gemm {n}"))
    muted = Series.objects.get(problem="gemm 0")
    SeriesRule.objects.create(series=muted, muted=True, reason="noisy")
    for n in range(5):
        team.push(values(f"gemm {n}", 150.0)[-1:])
    asked = list(
        MeasurementRequest.objects.order_by("pk").values_list("series__problem", flat=True)
    )
    assert asked == ["gemm 1", "gemm 2", "gemm 3"]
    assert not suspicions.unhandled_suspicions().exists()
    assert alert_pipeline.has_pending() is False
    settings.SUSPICIONS_AN_HOUR = 0
    team.push(values("other", 150.0))
    assert suspected("other") == (1, 1.5)
    assert MeasurementRequest.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_a_series_that_others_lock_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """They lock series in another order: each might wait for a row of the other."""
    monkeypatch.setattr(suspicions, "_request", lambda _: 0)
    for problem in ("busy", "free"):
        team.push(values(problem, 150.0))
    Series.objects.update(suspicion_handled=False)

    def request() -> int:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '5s'")
            return suspicions.request_remeasurements()
        finally:
            connection.close()

    with ThreadPoolExecutor() as pool, transaction.atomic():
        Series.objects.select_for_update().get(problem="busy")
        assert pool.submit(request).result() == 1
    assert suspicions.unhandled_suspicions().get().problem == "busy"


def test_a_new_suspicion_is_asked_for_anew() -> None:
    points = values("gemm", 150.0, 100.0, 101.0, 200.0)
    for point in (points[: LEVEL + 1], points[LEVEL + 1 : LEVEL + 3], points[LEVEL + 3 :]):
        team.push(point)
    names = MeasurementRequest.objects.order_by("pk").values_list("revision__name", flat=True)
    assert list(names) == [points[LEVEL].revision.name, points[LEVEL + 3].revision.name]


def test_the_list_of_requests_names_no_alert(reader: Client) -> None:
    team.push(values("gemm", 150.0))
    (shown,), following = requests_page({}, 0, 10)
    assert (shown["alert"], shown["problem"], following) == (None, "gemm", None)


# ── pages ────────────────────────────────────────────────────────────────────────────────────────


def test_pages_show_what_is_suspected(reader: Client) -> None:
    team.push([*values("gemm", 150.0), *values("softmax")])
    series = Series.objects.get(problem="gemm")
    page = reader.get(f"/series/{series.pk}").content.decode()
    assert re.search(r">suspected \S+, n = 1<", page)
    assert "Too few values for a change" in page
    listed = reader.get("/series?suspected=1")
    assert "gemm" in listed.content.decode()
    assert "softmax" not in listed.content.decode()
    (row,) = reader.get("/series.json?suspected=1").json()["rows"]
    assert (row["head"]["suspected_n"], round(row["head"]["suspected_ratio"], 1)) == (1, 1.5)
    assert "1 suspected" in reader.get("/").content.decode()
    assert (
        "Too few values"
        not in reader.get(f"/series/{Series.objects.get(problem='softmax').pk}").content.decode()
    )
    assert reader.get("/series?suspected=2").status_code == 200


def test_detection_takes_as_many_queries_with_suspicions_as_without() -> None:
    def queries(step: Sequence[float], names: range) -> int:
        for n in names:
            team.push(values(f"gemm {step} {n}"))
            Series.objects.filter(problem=f"gemm {step} {n}").update(
                unchecked_from=timezone.now() - timedelta(days=2)
            )
        return queries_of(detection.detect_changes)

    assert_steady([queries((), range(1))], [queries((), range(9))], usual=[12])
