"""How fast batches of points are taken, through the whole application, on a database of its own.

    python -m pytest -s tests/benchmarks/ingest.py

The goal that was set, on 2 cores: a batch of 10,000 points in at most 2 s. Each batch is sent as
a program sends it: token, rates, reading, checks, rows and commit are in the time. The worst case
has a series, a revision and conditions for each point.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from codegen_app.accounts import tokens
from codegen_app.tracking.models import Datum

POINTS, BATCHES, GOAL_S = 10_000, 5, 2.0

pytestmark = pytest.mark.django_db(transaction=True)


def of_one_night(turn: int, place: int) -> dict[str, Any]:
    """3,000 series of one revision, about three points each, with 20 samples."""
    noise = random.Random(f"{turn} {place}")
    samples = [round(noise.gauss(1000, 5), 1) for _ in range(20)]
    return {
        "problem": f"mm {place % 3000}",
        "sizes": {"M": 64, "N": 64},
        "value": statistics.median(samples),
        "low": min(samples),
        "high": max(samples),
        "samples": samples,
        "revision": f"r{turn}",
        "conditions": {"driver": "580.95", "code_digest": f"{place % 3000:064}"},
    }


def nothing_shared(turn: int, place: int) -> dict[str, Any]:
    """Everything new in each point."""
    return of_one_night(turn, place) | {
        "problem": f"{turn} {place}",
        "revision": f"{turn} {place}",
        "conditions": {"code_digest": f"{turn} {place}"},
    }


@pytest.mark.parametrize("kind", [of_one_night, nothing_shared])
def test_a_batch_of_ten_thousand_points(
    kind: Callable[[int, int], dict[str, Any]], settings: Any, client: Client
) -> None:
    settings.API_POINTS_A_MINUTE = POINTS * BATCHES * 2
    owner = User.objects.create_superuser("bench")
    _, token = tokens.create_token(owner, "bench", ["ingest"], None)
    defaults = {"device": "NVIDIA H200", "target": "sm_90", "metric": "time", "unit": "ns"}
    times = []
    for turn in range(BATCHES):
        points = [kind(turn, place) for place in range(POINTS)]
        document = {"kind": "kiln points", "schema": 1, "defaults": defaults, "points": points}
        body = json.dumps(document)
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": f"{turn}"}
        begun = time.perf_counter()
        answer = client.post(
            "/api/v1/results", body, content_type="application/json", headers=headers
        )
        times.append(time.perf_counter() - begun)
        assert answer.status_code == 200, answer.content[:500]
    assert Datum.objects.count() == POINTS * BATCHES
    print(  # noqa: T201
        f"\n{kind.__name__}: {POINTS} points, {len(body) / 1e6:.1f} MB:"
        f" median {statistics.median(times):.2f} s, longest {max(times):.2f} s"
        f" (goal {GOAL_S:.0f} s), {POINTS / statistics.median(times):.0f} points/s"
    )
