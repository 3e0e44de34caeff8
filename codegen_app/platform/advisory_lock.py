"""PostgreSQL's advisory locks: for work of one transaction, or of one worker, at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from django.db import connection


class LockClass(IntEnum):
    """The first numbers of advisory locks: four ASCII letters each. The broker's sessions have
    their own (``broker/session.py``)."""

    ALERT_LINKS = 0x4B494C41  # no two transactions create a circle of alerts
    MACHINES = 0x4D414348  # alerts of machines are raised, applied and closed one at a time
    PAGE_CHANGES = 0x4B494C4E  # held by transactions that change what pages show
    PLAN = 0x504C414E  # a tuning run
    RECORD_KERNELS = 0x4B45524E  # graphs share kernels and problems, and would deadlock
    RECORD_RESULTS = 0x52455355  # two imports of the same file wait for each other
    SEEK = 0x5345454B  # a remote search
    SUSPICIONS = 0x53555350  # suspected steps are requested to be measured again one at a time


def lock_transaction(lock_class: LockClass) -> None:
    """Wait for the lock of the whole class, and hold it until the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, 0)", [lock_class])


@contextmanager
def try_lock(lock_class: LockClass, pk: int) -> Iterator[bool]:
    """Yield whether this connection holds the lock on the row; it ends with the connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [lock_class, pk])
        (acquired,) = cursor.fetchone()
    try:
        yield acquired
    finally:
        if acquired:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [lock_class, pk])
