"""How fast new points become changes, causes and alerts, on a database of its own.

    python -m pytest -s tests/benchmarks/detection_speed.py

3,000 series with 130 points each are there. A batch of 10,000 points is stored and looked at: of
points in which nothing changes, and of ones with which every third series becomes slower by a
tenth. The goal that was set, on 2 cores: 1,000 points/s sustained with detection on, so that a
batch of 10,000 has 10 s for both together.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

import pytest

from codegen_app.tracking.alerting import creation
from codegen_app.tracking.models import Alert, Change, Series, Source
from codegen_app.tracking.services import detection, explanations, point_storage
from scheduler.results.points.model import Point, RevisionKey, SeriesKey

SERIES, BEFORE, NEW = 3_000, 130, 10_000

pytestmark = pytest.mark.django_db(transaction=True)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def points(days: Iterable[int], slower: Callable[[int], bool], code: str) -> list[Point]:
    noise = random.Random(f"{code} {days}")
    return [
        Point(
            SeriesKey(f"mm {place}", {}, "sm_90", "NVIDIA H200", "nvcc", "time", "ns"),
            (1100 if slower(place) else 1000) * noise.gauss(1, 0.005),
            BEGIN + timedelta(days=day),
            RevisionKey(f"r{day}", BEGIN + timedelta(days=day)),
            conditions={
                "driver": "580.95",
                "toolchain_version": "13.0",
                "code_digest": f"{code} {place}",
                "source_digest": f"{code} {place}",
            },
        )
        for day in days
        for place in range(SERIES)
    ]


def timed(step: Callable[[], int]) -> tuple[float, int]:
    begun, count = time.perf_counter(), 0
    while done := step():
        count += done
    return time.perf_counter() - begun, count


def test_a_batch_of_ten_thousand_points() -> None:
    for day in range(0, BEFORE, 2):
        point_storage.store(points(range(day, day + 2), lambda _: False, "a"), Source.API)
    Series.objects.update(unchecked_from=None)  # as if each had been looked at when it came
    days = -(-NEW // SERIES)
    for name, slower in (("steady", lambda _: False), ("a third slower", lambda n: n % 3 == 0)):
        begins = BEFORE + days * (name != "steady")
        batch = points(range(begins, begins + days), slower, name)[:NEW]
        begun = time.perf_counter()
        point_storage.store(batch, Source.API)
        stored = time.perf_counter() - begun
        times = [
            timed(step)
            for step in (detection.detect_changes, explanations.explain, creation.raise_alerts)
        ]
        both = stored + sum(took for took, _ in times)
        print(  # noqa: T201
            f"\n{name}: {NEW} points of {times[0][1]} series stored in {stored:.2f} s,"
            f" looked at in {times[0][0]:.2f} s, {times[1][1]} changes explained in"
            f" {times[1][0]:.2f} s, alerts in {times[2][0]:.2f} s: {NEW / both:.0f} points/s"
        )
    print(Change.objects.count(), "changes,", Alert.objects.count(), "alerts")  # noqa: T201
