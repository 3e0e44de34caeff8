"""Two revisions of 3,000 series each, through the database and the page.

    python -m pytest -s tests/benchmarks/comparing_revisions.py

The goal that was set, on 2 cores: 1 s for 3,000 with 3,000 series, rendering of the page's first
part included. Each series has points of eight revisions, three of them at each of the two that are
compared, of 20 samples; each point has conditions of its own, with resources. A tenth of the series
became 5% slower.
"""

from __future__ import annotations

import statistics
import time
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from codegen_app.accounts import tokens
from codegen_app.tracking.compare_revisions.comparison import compare_sides
from codegen_app.tracking.models import Datum, Source
from codegen_app.tracking.services import point_storage
from scheduler.results.points.model import Point, RevisionKey, SeriesKey

SERIES, REVISIONS, POINTS, SAMPLES, TRIES, GOAL_S = 3_000, 8, 3, 20, 5, 1.0
BEFORE, AFTER = "r6", "r7"
START = datetime(2026, 11, 1, tzinfo=UTC)

pytestmark = pytest.mark.django_db(transaction=True)


def points(revision: int) -> list[Point]:
    """Every series at a revision."""
    rng = np.random.default_rng(revision)
    at = START + timedelta(days=revision)
    key = RevisionKey(f"r{revision}", at, "main")
    made = []
    for number in range(SERIES):
        of = SeriesKey(f"mm {number}", {"M": 64}, "sm_90", "NVIDIA H200", "nvcc", "time", "ns")
        slower = 1.05 if revision == REVISIONS - 1 and number % 10 == 0 else 1.0
        facts = {
            "toolchain_version": "13.0",
            "driver": "580.95",
            "runtime": "CUDA 13.0",
            "code_digest": f"{revision} {number}".ljust(64, "0"),
            "config": {"BLOCK_M": 64, "BLOCK_N": 128, "STAGES": 3},
            "resources": {f"kernel_{number}_device": {"registers": 64 + revision}},
            "clocks": {"sm_clock_mhz": 1980},
            "attributes": {"uuid": "GPU-1"},
        }
        for turn in range(POINTS if revision >= REVISIONS - 2 else 1):
            samples = 1000 * (1 + number) * slower * np.exp(0.005 * rng.standard_normal(SAMPLES))
            ordered = sorted(samples)
            made.append(
                Point(
                    of,
                    float(np.median(samples)),
                    at + timedelta(hours=turn),
                    key,
                    float(ordered[5]),
                    float(ordered[14]),
                    SAMPLES,
                    tuple(map(float, samples)),
                    conditions=facts,
                )
            )
    return made


def timed(what: str, tries: list[float], cpu: list[float]) -> None:
    median, longest = statistics.median(tries), max(tries)
    print(  # noqa: T201
        f"{what}: median {median:.2f} s, longest {longest:.2f} s (goal {GOAL_S:.0f} s);"
        f" of it {statistics.median(cpu):.2f} s of this process, the rest the database's"
    )


def test_three_thousand_series_with_three_thousand(client: Client) -> None:
    for revision in range(REVISIONS):
        point_storage.store(points(revision), Source.API)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    owner = User.objects.create_superuser("bench")
    client.force_login(owner)
    _, token = tokens.create_token(owner, "bench", ["read"], None)
    print(f"\n{SERIES:,} series on each side, {Datum.objects.count():,} points in all")  # noqa: T201

    query = f"before={BEFORE}&after={AFTER}"
    headers = {"Authorization": f"Bearer {token}"}
    for what, ask in (
        ("read and compared", lambda: compare_sides(BEFORE, AFTER)),
        ("page", lambda: client.get(f"/compare/revisions?{query}")),
        ("Markdown", lambda: client.get(f"/compare/revisions.md?{query}")),
        ("API, 1,000 rows", lambda: client.get(f"/api/v1/compare?{query}", headers=headers)),
    ):
        tries: list[float] = []
        cpu: list[float] = []
        for _ in range(TRIES):
            begun, used = time.perf_counter(), time.process_time()
            answer = ask()
            tries.append(time.perf_counter() - begun)
            cpu.append(time.process_time() - used)
        assert getattr(answer, "status_code", 200) == 200
        timed(what, tries, cpu)
    counts = compare_sides(BEFORE, AFTER).counts
    assert counts["slower"] == SERIES / 10, counts
