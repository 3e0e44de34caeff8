"""Points sent as CI does, with the detector at work on what arrived."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from django.contrib.auth.models import User
from django.db import connection

from codegen_app.accounts import tokens
from codegen_app.tracking.models import Alert, Change, Series
from tests.benchmarks.printing import say
from tests.benchmarks.tracking.content import NOISE, SAMPLES, Content, Suite
from tests.benchmarks.tracking.goals import Figure, percentile
from tests.benchmarks.tracking.naming import facts, series_key

RATE = 1_000  # points a second
BATCH, BATCH_S = 10_000, 2.0
_BATCHES = 5
_SLOWER, _STEP = 0.02, 1.2  # of the series, from the middle of what is sent on
_PATIENCE_S = 30
_LOOK_S = 0.2


class Sender:
    """Sends batches with a token."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        owner = User.objects.filter(is_superuser=True).order_by("pk")[0]
        _, self._token = tokens.create_token(owner, "benchmark", ["ingest"], None)
        self._run = time.time_ns()
        self._sent = 0

    def body(self, points: Sequence[dict[str, Any]], name: str) -> bytes:
        """A batch of the revision of that name."""
        now = datetime.now(UTC).isoformat()
        revision = {"name": f"{self._run} {name}", "at": now, "branch": "main"}
        defaults = {"metric": "time", "unit": "ns", "revision": revision, "measured_at": now}
        document = {"kind": "kiln points", "schema": 1, "defaults": defaults, "points": points}
        return json.dumps(document).encode()

    def send(self, body: bytes) -> float:
        """Seconds from the request to its answer."""
        self._sent += 1
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Idempotency-Key": f"{self._run} {self._sent}",
            "Content-Type": "application/json",
        }
        server = http.client.HTTPConnection(self._parts.hostname or "", self._parts.port)
        begun = time.perf_counter()
        server.request("POST", "/api/v1/results", body, headers)
        answer = server.getresponse()
        text = answer.read()
        seconds = time.perf_counter() - begun
        server.close()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {text[:500]!r}")
        return seconds


def points_of(suite: Suite, seed: int, slower: bool) -> list[dict[str, Any]]:
    """A point for each series of a suite, at the level where its history ended."""
    rng = np.random.default_rng(seed)
    levels = suite.levels[-1].copy()
    if slower:
        levels[: int(_SLOWER * suite.n_series)] *= _STEP
    drawn = rng.standard_normal((suite.n_series, SAMPLES))
    samples = np.round(np.sort(levels[:, None] * (1 + NOISE * drawn), axis=1), 1)
    return [
        _point(suite.first_series + place, row.tolist(), int(suite.epochs[-1, place]))
        for place, row in enumerate(samples)
    ]


def _point(number: int, samples: list[float], epoch: int) -> dict[str, Any]:
    key = series_key(number)
    value = (samples[SAMPLES // 2 - 1] + samples[SAMPLES // 2]) / 2
    return {
        **{"problem": key.problem, "sizes": key.sizes, "target": key.target, "device": key.device},
        **{"toolchain": key.toolchain, "value": value, "low": samples[4], "high": samples[-5]},
        **{"samples": samples, "conditions": facts(number, epoch)},
    }


def sustained(url: str, content: Content, points: int) -> Iterator[Figure]:
    """Batches one after the other, and how long until the detector has looked at all of them: what
    is sent faster than it looks waits, and counts."""
    sender, suites = Sender(url), content.suites[1:5]
    count = max(points // suites[0].n_series, 2 * len(suites))
    bodies = []
    for n in range(count):
        is_late = n >= count // 2
        bodies.append(sender.body(points_of(suites[n % len(suites)], n, is_late), f"sustained {n}"))
    _wait_until_looked_at()
    changes, alerts = Change.objects.count(), Alert.objects.count()
    begun = time.perf_counter()
    taken = [sender.send(body) for body in bodies]
    sending = time.perf_counter() - begun
    waiting = Series.objects.exclude(unchecked_from=None).count()
    is_done = _wait_until_looked_at()
    whole = time.perf_counter() - begun
    sent = count * suites[0].n_series
    found = Change.objects.count() - changes, Alert.objects.count() - alerts
    yield Figure(
        "ingest until the detector has looked at it",
        sent / whole if is_done else 0.0,
        "points/s",
        sent,
        goal=RATE,
        at_least=True,
        note=(
            f"{count} batches, p95 {1000 * percentile(taken, 0.95):.0f} ms; {waiting:,} series"
            f" waited at the end, all looked at {whole - sending:.1f} s later;"
            f" {found[0]} changes, {found[1]} alerts"
        ),
    )


def batches(url: str, content: Content) -> Iterator[Figure]:
    """Batches of 10,000 points: the first one after the database was started, which reads its pages
    anew, then of known series, and of as many new ones."""
    sender = Sender(url)
    known = [point for suite in content.suites[5:9] for point in points_of(suite, 11, False)]
    kinds: tuple[tuple[str, Callable[[int], list[dict[str, Any]]]], ...] = (
        ("known series", lambda _: known[:BATCH]),
        ("new series", lambda turn: _renamed(known[:BATCH], f"{sender._run} {turn}")),
    )
    _wait_until_looked_at()
    first = sender.send(sender.body(known[:BATCH], "first"))
    yield Figure("the first batch of 10,000 points after a start", first, "s", 1)
    for name, make in kinds:
        taken = []
        for turn in range(_BATCHES):
            body = sender.body(make(turn), f"{name} {turn}")
            _wait_until_looked_at()
            taken.append(sender.send(body))
        yield Figure(
            f"a batch of 10,000 points of {name}, longest",
            max(taken),
            "s",
            len(taken),
            BATCH_S,
            note=f"median {percentile(taken, 0.5):.2f} s",
        )


def _renamed(points: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [point | {"problem": f"{point['problem']} of {name}"} for point in points]


def _wait_until_looked_at() -> bool:
    """Until the detector's queue is empty; False where nothing has moved in it for long."""
    moved, before = time.monotonic(), -1
    while waiting := Series.objects.exclude(unchecked_from=None).count():
        if waiting != before:
            moved, before = time.monotonic(), waiting
        if time.monotonic() - moved > _PATIENCE_S:
            say(f"  {waiting:,} series are still to be looked at: no detector is at work")
            return False
        time.sleep(_LOOK_S)
    connection.close()
    return True
