"""Pages asked for as browsers do: by a person who has signed in, over the served application."""

from __future__ import annotations

import http.client
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext

from codegen_app.tracking.models import Alert
from tests.benchmarks.printing import say
from tests.benchmarks.tracking.content import Content
from tests.benchmarks.tracking.goals import Figure, percentile
from tests.benchmarks.tracking.naming import revision_key

_WARM_UP = 12  # requests, that each server process has imported what it needs


@dataclass(frozen=True)
class Page:
    """A page: its addresses, each of which is asked for in turn; at most ``goal_ms`` for 95%."""

    name: str
    addresses: tuple[str, ...]
    goal_ms: float | None


def pages(content: Content, requests: int) -> tuple[Page, ...]:
    """Those with a goal, and what hangs on them."""
    draw = random.Random(3)
    deep = content.suites[0]
    most = max(row.n_revisions for row in content.suites)
    longest = [1 + deep.first_series + draw.randrange(deep.n_series) for _ in range(requests)]
    compared = [_compared(content, draw) for _ in range(requests)]
    alerts = list(Alert.objects.order_by("pk").values_list("pk", flat=True))
    some = draw.choices(alerts, k=requests)
    return (
        Page(f"history of {most:,} points", tuple(f"/series/{n}" for n in longest), 300),
        Page("  its points", tuple(f"/series/{n}/points.json" for n in longest), 300),
        Page("  its data", tuple(f"/series/{n}.json" for n in longest), None),
        Page("alerts", ("/alerts",), 200),
        Page("  of every state", ("/alerts?state=all",), 200),
        Page("  by words", _searched(), 200),
        Page("  one alert", tuple(f"/alerts/{n}" for n in some), None),
        Page("overview", ("/",), 300),
        Page("compare of 3,100 with 3,100 series", tuple(compared), 1_000),
        Page("series", ("/series",), None),
    )


def _searched() -> tuple[str, ...]:
    """Words that many series have, few, and none."""
    words = ("attention", "mm mi300x time", "bench 1200 h100", "nothing-there")
    return tuple(
        f"/alerts?{urlencode({'state': state, 'q': one})}"
        for one in words
        for state in ("open", "all")
    )


def _compared(content: Content, draw: random.Random) -> str:
    place = draw.randrange(1, len(content.suites))
    suite = content.suites[place]
    first = draw.randrange(suite.n_revisions - 1)
    second = draw.randrange(first + 1, suite.n_revisions)
    names = {"before": revision_key(suite, first).name, "after": revision_key(suite, second).name}
    return f"/compare/revisions?{urlencode(names)}"


def session() -> str:
    """The cookie of somebody who has signed in and may do everything."""
    client = Client()
    client.force_login(User.objects.filter(is_superuser=True).order_by("pk")[0])
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


def measured(url: str, cookie: str, page: Page, requests: int) -> Figure | None:
    """The time from asking to the last byte, one request after the other; None where there is no
    such page."""
    with _asking(url, cookie) as ask:
        seconds, size = [], 0
        for turn in range(_WARM_UP + requests):
            begun = perf_counter()
            status, size = ask(page.addresses[turn % len(page.addresses)])
            if turn == 0 and status == 404:
                say(f"{page.name:<46} there is no {page.addresses[0]}")
                return None
            if status != 200:
                raise RuntimeError(f"{page.addresses[turn % len(page.addresses)]}: {status}")
            if turn >= _WARM_UP:
                seconds.append(perf_counter() - begun)
    median = 1000 * percentile(seconds, 0.5)
    return Figure(
        f"{page.name}, p95",
        1000 * percentile(seconds, 0.95),
        "ms",
        len(seconds),
        page.goal_ms,
        note=f"median {median:.0f} ms, {size / 1024:,.0f} KiB",
    )


@contextmanager
def _asking(url: str, cookie: str) -> Iterator[Callable[[str], tuple[int, int]]]:
    parts = urlsplit(url)
    server = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)

    def ask(address: str) -> tuple[int, int]:
        server.request("GET", address, headers={"Cookie": cookie, "Accept-Encoding": "gzip"})
        answer = server.getresponse()
        return answer.status, len(answer.read())

    try:
        yield ask
    finally:
        server.close()


def plans(page: Page) -> None:
    """The plans of a page's queries, as PostgreSQL carried them out."""
    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(User.objects.filter(is_superuser=True).order_by("pk")[0])
    with override_settings(PAGES_KEPT_BYTES=0):
        client.get(page.addresses[0])
        with CaptureQueriesContext(connection) as queries:
            begun = perf_counter()
            answer = client.get(page.addresses[0])
            seconds = perf_counter() - begun
    spent = sum(float(query["time"]) for query in queries)
    say(
        f"\n== {page.name}: {page.addresses[0]} {answer.status_code}: {1000 * seconds:.0f} ms,"
        f" {len(queries)} queries of {1000 * spent:.0f} ms"
    )
    for query in queries:
        statement = query["sql"]
        say(f"\n-- {query['time']} s: {statement[:1500]}")
        if statement.lstrip("( \n").upper().startswith(("SELECT", "WITH")):
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS) {statement.replace('%', '%%')}", [])
                for (line,) in cursor.fetchall():
                    say(f"   {line}")
