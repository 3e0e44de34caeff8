"""How long a webhook takes from the POST that decides it, with a real site, worker and receiver.

    python -m pytest -s tests/benchmarks/notification.py

The goal that was set: at most 10 s. ``messages``: the site wakes the worker, as it should.
``no messages``: those of the site are lost, and the worker finds the rows at its periodic looks.
"""

from __future__ import annotations

import statistics
import time
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from codegen_app.accounts import tokens
from codegen_app.tracking.services import alert_pipeline
from tests.app.track_factories import channel
from tests.app.workers.test_real_workers import Workers
from tests.support import pipeline
from tests.support.receivers import http_receiver

TIMES, GOAL_S = 5, 10
WAYS = {"messages": True, "no messages": False}

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("way", WAYS)
def test_from_the_post_to_the_receiver(
    way: str, live_server: Any, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if WAYS[way]:
        pipeline.send_by_the_database(monkeypatch)
    settings.WEBHOOK_NETWORKS = [ip_network("127.0.0.0/8")]
    _, token = tokens.create_token(
        User.objects.create_superuser("bench"), "bench", ["ingest"], None
    )
    workers = Workers(tmp_path, "database://localhost", KILN_SECRET_KEY=settings.SECRET_KEY)
    took = []
    with http_receiver() as receiver:
        channel(address=receiver.url)
        workers.start_one("detect,notify")
        try:
            for turn in range(TIMES):
                of, first = f"problem {turn}", 100 * turn
                old = pipeline.points(of, first, pipeline.BEFORE, 1000.0, "a")
                new = pipeline.points(of, first + pipeline.BEFORE, pipeline.AFTER, 1250.0, "b")
                pipeline.post(live_server.url, token, f"old {turn}", old)
                workers.wait(lambda: not alert_pipeline.has_pending(), "look at the history")
                begun = time.perf_counter()
                pipeline.post(live_server.url, token, f"new {turn}", new)
                receiver.next(60)
                took.append(time.perf_counter() - begun)
        finally:
            workers.kill()
    print(  # noqa: T201
        f"\n{way}: median {statistics.median(took):.1f} s, longest {max(took):.1f} s"
        f" of {TIMES} (goal {GOAL_S} s)"
    )
