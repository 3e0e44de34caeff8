"""The way from a POST to a webhook, with real processes: what tests and benchmarks of it share."""

from __future__ import annotations

import hashlib
import hmac
import json
import random
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from kombu import Connection, Producer

from codegen_app.platform.broker import transport
from codegen_app.platform.config.celery import app
from tests.support.receivers import Request

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
BEFORE, AFTER = 30, 12  # points of the old level, and of the new one


def send_by_the_database(patch: pytest.MonkeyPatch) -> None:
    """What this process says to workers goes through the default broker, as in an installation."""

    @contextmanager
    def producer(given: Producer | None = None) -> Iterator[Producer]:
        if given is not None:
            yield given
            return
        options = settings.CELERY_BROKER_TRANSPORT_OPTIONS
        with Connection(transport.DEFAULT_URL, transport_options=options) as connection:
            yield Producer(connection)

    patch.setattr(app, "producer_or_acquire", producer)


def points(problem: str, first: int, count: int, level: float, code: str) -> list[dict[str, Any]]:
    """Points of one series, one revision a day from the day ``first`` on."""
    noise = random.Random(f"{problem} {first}")
    return [
        {
            "problem": problem,
            "value": level * noise.gauss(1, 0.003),
            "revision": {"name": f"r{day}", "at": (BEGIN + timedelta(days=day)).isoformat()},
            "measured_at": (BEGIN + timedelta(days=day, minutes=5)).isoformat(),
            "conditions": {
                "driver": "580.95",
                "toolchain_version": "13.0",
                "code_digest": code * 64,
                "source_digest": code * 64,
            },
        }
        for day in range(first, first + count)
    ]


def history(problem: str) -> list[dict[str, Any]]:
    """The level before."""
    return points(problem, 0, BEFORE, 1000.0, "a")


def slower(problem: str) -> list[dict[str, Any]]:
    """Another code object takes a quarter longer."""
    return points(problem, BEFORE, AFTER, 1250.0, "b")


def post(site: str, token: str, key: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Send points as a program does; the answer."""
    defaults = {"device": "NVIDIA H200", "target": "sm_90", "toolchain": "nvcc"}
    defaults |= {"metric": "time", "unit": "ns"}
    document = {"kind": "kiln points", "schema": 1, "defaults": defaults, "points": list(rows)}
    request = urllib.request.Request(
        f"{site}/api/v1/results",
        json.dumps(document).encode(),
        {
            "Authorization": f"Bearer {token}",
            "Idempotency-Key": key,
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return dict(json.load(answer))


# What the documentation tells receivers to do, and nothing of ours.
def is_genuine(key: str, request: Request, now: float) -> bool:
    timestamp = request.headers["kiln-timestamp"]
    signed = timestamp.encode() + b"." + request.body
    expected = "v1=" + hmac.new(key.encode(), signed, hashlib.sha256).hexdigest()
    fresh = abs(now - int(timestamp)) < 300
    return fresh and hmac.compare_digest(expected, request.headers["kiln-signature"])
