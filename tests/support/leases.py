"""Leases and heartbeats. Those of tests are long, so that none runs out on a busy machine; a test
whose worker was killed ends its leases instead of waiting for that.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from codegen_app.workers import work
from codegen_app.workers.models import State, worker


@pytest.fixture(autouse=True)
def long_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the test's own process a worker counts as alive for 15 minutes after its last sign."""
    monkeypatch.setattr(worker, "HEARTBEAT_INTERVAL", timedelta(minutes=5))


def expire(rows: QuerySet[Any]) -> None:
    """Those of these rows that are worked on."""
    rows.filter(state=State.RUNNING).update(lease_until=Now() - timedelta(hours=1))


def expire_all(execute: Callable[[str], object] | None = None) -> None:
    """Those of all work under way: no worker lives. In the test's own database, or in another's, of
    which this executes a statement."""
    with connection.cursor() as cursor:
        for model in work.work_models():
            (execute or cursor.execute)(
                f"UPDATE {model._meta.db_table} SET lease_until = now() - interval '1 hour'"
                " WHERE state = 'running'"
            )
