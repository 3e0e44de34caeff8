"""Old points of which each day keeps its median, and what still knows about the others."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import connection
from django.db.models import F
from django.test import Client

from codegen_app.tracking.compare_revisions.comparison import compare_sides
from codegen_app.tracking.models import (
    Annotation,
    Change,
    Datum,
    DaySummary,
    RetentionPolicy,
    Series,
    Source,
)
from codegen_app.tracking.queries import histories
from codegen_app.tracking.services import (
    day_rollup,
    detection,
    point_storage,
    rollup,
    thresholds,
)
from scheduler.results.points.model import Point, RevisionKey, SeriesKey
from scheduler.track.compared_series import Status

pytestmark = pytest.mark.django_db

BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
DAYS = 40
A_DAY = 24
EVERY = timedelta(hours=1)


@pytest.fixture(autouse=True)
def few_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two days of the latest points, and half a day at each change."""
    monkeypatch.setattr(day_rollup, "KEPT_LATEST", 48)
    monkeypatch.setattr(day_rollup, "KEPT_AT_BORDER", 12)


def points(values: Sequence[float], problem: str = "mm") -> list[Point]:
    """Points of a series, one each hour, each of its own revision."""
    key = SeriesKey(problem, {}, "", "H200", "", "time", "ns")
    moments = [BEGIN + n * EVERY for n in range(len(values))]
    return [
        Point(key, value, at, RevisionKey(f"r{n}", at))
        for n, (value, at) in enumerate(zip(values, moments, strict=True))
    ]


def history(values: Sequence[float], problem: str = "mm") -> Series:
    """The series of these points, which the detector has checked."""
    point_storage.store(points(values, problem), Source.API)
    detect()
    return Series.objects.get(problem=problem)


def noisy(level: float, count: int) -> list[float]:
    rng = np.random.default_rng(count)
    return [float(value) for value in level * (1 + 0.004 * rng.standard_normal(count))]


def policy(**fields: object) -> RetentionPolicy:
    RetentionPolicy.objects.all().delete()
    defaults = {"name": "days", "what": "points", "days": 30, "active": True}
    return RetentionPolicy.objects.create(**defaults | fields)


def detect() -> None:
    while detection.detect_changes():
        pass


def days_of(series: Series) -> list[int]:
    """The number of stored points of each day."""
    counts = [0] * DAYS
    for at in series.data.values_list("at", flat=True):
        counts[(at - BEGIN).days] += 1
    return counts


def test_each_old_day_keeps_its_median_and_says_for_how_many() -> None:
    values = [float(100 + (7 * n) % A_DAY) for n in range(DAYS * A_DAY)]
    series = history(values)
    row = policy()
    assert rollup.format_due(row, rollup.count_due(row)) == "960 points (one a day stays)"
    rollup.roll_up(row)
    # The first point of the series stays, and the latest 48 are the last two days.
    assert days_of(series) == [2] + [1] * (DAYS - 3) + [A_DAY] * 2
    summary = DaySummary.objects.select_related("datum").order_by("datum__at")[1]
    assert (summary.points, summary.low, summary.high) == (A_DAY, 100.0, 123.0)
    assert summary.datum.value == 111.0, "the lower median, as it was measured"
    series.refresh_from_db()
    assert series.points == series.data.count()
    assert series.points + series.rolled_up == len(values)
    row.refresh_from_db()
    assert (row.last_rows, row.begun_at, row.last_series) == (series.rolled_up, None, 0)
    assert rollup.roll_up(row) == 0, "nothing is rolled up twice"


def test_without_an_active_policy_or_before_its_days_nothing_goes() -> None:
    history([100.0] * (DAYS * A_DAY))
    policy(active=False)
    assert rollup.roll_up_due() == 0
    policy(days=36_000)
    assert rollup.roll_up_due() == 0
    assert not DaySummary.objects.exists()


def test_what_a_change_is_shown_by_stays_and_so_does_the_change() -> None:
    series = history(noisy(100, 480) + noisy(120, 480))
    change = Change.objects.get()
    around = series.data.filter(
        at__gte=change.at - 12 * EVERY, at__lt=change.at + 12 * EVERY
    ).values_list("pk", flat=True)
    kept = set(around)
    assert len(kept) == 24
    before = Change.objects.values().get()
    rollup.roll_up(policy())
    assert kept <= set(series.data.values_list("pk", flat=True))
    assert series.data.count() < 200
    # Nothing finds or loses a change in what was rolled up.
    detection.recheck(series)
    detect()
    assert Change.objects.values().get() == before
    series.refresh_from_db()
    assert series.unchecked_from is None
    assert thresholds.dry_run(series, thresholds.Proposal()).changes == ()


def test_points_that_something_refers_to_stay() -> None:
    series = history([100.0] * (DAYS * A_DAY))
    noted, other = series.data.order_by("at")[30:32]
    Annotation.objects.create(series=series, datum=noted, text="a new fan")
    Datum.objects.filter(pk=other.pk).update(value=-1.0)
    rollup.roll_up(policy())
    assert series.data.filter(pk__in=[noted.pk, other.pk]).count() == 2
    assert DaySummary.objects.order_by("datum__at")[1].points == A_DAY - 2


def test_a_late_point_before_rolled_up_ones_is_stored_and_not_judged() -> None:
    series = history(noisy(100, DAYS * A_DAY))
    rollup.roll_up(policy())
    late = [replace(one, value=200.0) for one in points([100.0] * 120)[100:]]
    point_storage.store(late, Source.API)
    detect()
    assert series.data.filter(value=200.0).count() == 20
    assert not Change.objects.exists()


def test_series_with_unchecked_old_points_wait() -> None:
    series = history([100.0] * (DAYS * A_DAY))
    Series.objects.update(unchecked_from=F("first_at"))
    row = policy()
    assert rollup.roll_up(row) == 0
    detect()
    assert rollup.roll_up(row) > 0
    assert Series.objects.get(pk=series.pk).rolled_up > 0


def test_a_pass_continues_with_the_next_series(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [history([100.0] * (DAYS * A_DAY), problem) for problem in ("a", "b")]
    monkeypatch.setattr(rollup, "STEP_ROWS", 10)
    row = policy()
    _, is_over = rollup.step(row.pk)
    assert not is_over
    row.refresh_from_db()
    assert row.last_series == both[0].pk
    assert row.begun_at is not None
    rollup.roll_up_due()
    first, second = (days_of(row) for row in both)
    assert first == second
    assert max(first[1:-2]) == 1


def test_pages_files_and_views_say_what_a_point_stands_for(client: Client) -> None:
    client.force_login(User.objects.create_user("reader"))
    series = history([float(100 + (7 * n) % A_DAY) for n in range(DAYS * A_DAY)])
    [chart] = client.get(f"/series/{series.pk}/points.json").json()["series"]
    assert chart["columns"]["day_points"] == []
    rollup.roll_up(policy())
    [chart] = client.get(f"/series/{series.pk}/points.json").json()["series"]
    columns = chart["columns"]
    assert columns["day_points"] == [0, A_DAY - 1] + [A_DAY] * (DAYS - 3) + [0] * 2 * A_DAY
    assert (columns["low"][2], columns["value"][2], columns["high"][2]) == (100.0, 111.0, 123.0)
    page = " ".join(client.get(series.get_absolute_url()).content.decode().split())
    series.refresh_from_db()
    assert f"Rolled up to {series.rolled_up_to:%Y-%m-%d}" in page
    assert f"{series.rolled_up} others were deleted" in page
    point = client.get(f"/series/{series.pk}/points/{columns['id'][2]}.json").json()
    assert point["day"] == {"points": A_DAY, "low": 100.0, "high": 123.0, "unit": "ns"}
    file = b"".join(client.get(f"/series/{series.pk}.csv")).decode()  # type: ignore[call-overload]
    rows = list(csv.DictReader(file.splitlines()))
    day = {"day_points": "24", "day_low": "100.0", "day_high": "123.0"}
    assert rows[2] | day == rows[2]
    assert rows[-1]["day_points"] == ""
    rows, _ = histories.data_page(series.pk, None, 3, with_samples=False)
    day = {"points": A_DAY, "low": 100.0, "high": 123.0}
    assert [row["day"] for row in rows[::2]] == [None, day]
    with connection.cursor() as cursor:
        cursor.execute("SELECT day_points, day_low, day_high FROM kiln_read.points ORDER BY at")
        assert cursor.fetchall()[2] == (A_DAY, 100.0, 123.0)


def test_a_revision_whose_point_was_deleted_is_not_taken_for_one_without() -> None:
    history([float(100 + (7 * n) % A_DAY) for n in range(DAYS * A_DAY)])
    rollup.roll_up(policy())
    for before, status, why in (
        ("r29", Status.UNKNOWN, "insufficient data"),
        ("r31", Status.UNKNOWN, "one point a day is left up to 2024-02-07, none of r31"),
    ):
        [row] = compare_sides(before, "r955").comparison.rows
        assert row.status is status
        assert row.reason.startswith(why)


def test_young_points_cannot_be_rolled_up() -> None:
    with pytest.raises(ValidationError, match="keep all of them for 30 days or more"):
        RetentionPolicy(name="days", what="points", days=29).full_clean()
