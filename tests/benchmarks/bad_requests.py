"""Requests that are wrong somewhere: none is answered by a failure of ours.

    python -m pytest -s tests/benchmarks/bad_requests.py

Files of every format with parts exchanged for what nobody expects, cut off, with odd parameters or
headers; and as many that schemathesis makes of the API's own description, of every operation. The
goal that was set: 10,000 requests and no status of 500 or more.
"""

from __future__ import annotations

import json
import logging
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.test import Client

from codegen_app.accounts import tokens
from tests.support.bad_calls import answers

REQUESTS = 10_000
FILES = Path(__file__).parents[1] / "unit" / "results" / "files"
TOOLS = [json.loads(file.read_text()) for file in sorted(FILES.glob("*.json"))]
OURS = {
    "kind": "kiln points",
    "schema": 1,
    "defaults": {"device": "H200", "metric": "time", "revision": {"name": "a", "at": "2026-01-01"}},
    "points": [
        {
            **{"problem": "mm", "value": 1.5, "low": 1, "high": 2, "n": 3, "sizes": {"M": 4}},
            **{"samples": [1, 2.5], "measured_at": "2026-01-01T00:00Z"},
            "conditions": {"driver": "x", "config": {"a": [1]}},
        }
    ],
}
ODD: list[Any] = [
    *(None, True, 0, -1, 1e308, 1e-320, -0.0, 2**63, 2**70, 10**400, [], {}, [[]], [None]),
    *({"": 1}, {"\0": 1}, "", " ", "\0", "\ud800", "x" * 5000, "é" * 600, "NaN"),
    *("2026-13-01", "9999-12-31T23:59:59-23:59", "0001-01-01"),
]
WORDS = ("abc", "2026-01-01", "auto", "bmf", "\x01", "x" * 400, "None", "-1", "[]")
PARAMETERS = ("format", "device", "target", "revision", "revision_at", "measured_at", "zzz")

pytestmark = pytest.mark.django_db(transaction=True)


def spoiled(chance: random.Random, value: Any, depth: int = 0) -> Any:
    """The value with some of its parts exchanged, left out or added."""
    if chance.random() < 0.12 or depth > 6:
        return chance.choice(ODD)
    if isinstance(value, dict):
        made = {
            name: spoiled(chance, part, depth + 1) if chance.random() < 0.35 else part
            for name, part in value.items()
            if chance.random() > 0.05
        }
        extra = {chance.choice(["x", "kind", "\0"]): chance.choice(ODD)}
        return made | (extra if chance.random() < 0.08 else {})
    if isinstance(value, list):
        return [spoiled(chance, part, depth + 1) for part in value[:3]] * chance.choice([1, 1, 2])
    return chance.choice(ODD) if chance.random() < 0.5 else value


@pytest.fixture(autouse=True)
def without_their_log() -> Iterator[None]:
    """Each bad request is a line of the log."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def test_requests_of_the_api_s_own_description_give_no_failure(
    settings: Any, client: Client
) -> None:
    settings.API_REQUESTS_A_MINUTE = settings.API_POINTS_A_MINUTE = 10**9
    _, token = tokens.create_token(
        User.objects.create_superuser("a"), "t", ["ingest", "read", "triage"], None
    )
    seen = answers(client, token, REQUESTS)
    print(f"\n{seen.total()} requests by schemathesis, answered: {dict(seen)}")  # noqa: T201


def test_bad_requests_give_no_failure(settings: Any, client: Client) -> None:
    settings.API_REQUESTS_A_MINUTE = settings.API_POINTS_A_MINUTE = 10**9
    _, token = tokens.create_token(
        User.objects.create_superuser("a"), "t", ["ingest", "read", "triage"], None
    )
    chance, seen = random.Random(7), Counter[int]()
    for number in range(REQUESTS):
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": f"k{number % 3000}"}
        query = {name: chance.choice(WORDS) for name in PARAMETERS if chance.random() < 0.1}
        if number % 10 == 0:
            place = chance.choice(
                ["series", "requests", "compare", "series/1", "series/1/data", f"series/{10**20}"]
            )
            names = ("after", "limit", "samples", "before", "revision")
            more = {name: chance.choice(WORDS) for name in names if chance.random() < 0.5}
            address = f"/api/v1/{place}?{urlencode(more if chance.random() < 0.5 else {})}"
            answer = client.get(address, headers=headers)
        else:
            known = {"device": "d", "revision": "r"} if chance.random() < 0.5 else {}
            file = OURS if chance.random() < 0.6 else chance.choice(TOOLS)
            body = json.dumps(spoiled(chance, file))
            cut = body[: chance.randrange(len(body) + 1)] if chance.random() < 0.05 else body
            answer = client.post(
                f"/api/v1/results?{urlencode(known | query)}",
                cut,
                content_type="application/json",
                headers=headers,
            )
        assert answer.status_code < 500, (answer.request, answer.content[:300])
        seen[answer.status_code] += 1
    assert seen[200] > REQUESTS / 100, "some are good enough to be stored"
    print(f"\n{REQUESTS} requests, answered: {dict(seen)}")  # noqa: T201
