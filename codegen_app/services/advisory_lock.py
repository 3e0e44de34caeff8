"""What one worker at a time does, without a row of its own that says who."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from django.db import connection


class LockClass(IntEnum):
    """The first numbers of advisory locks, in letters."""

    PLAN = 0x504C414E
    SEEK = 0x5345454B


@contextmanager
def try_lock(what: LockClass, pk: int) -> Iterator[bool]:
    """Whether this is the one that does it to that row; a lock that ends with the connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [what, pk])
        (mine,) = cursor.fetchone()
    try:
        yield mine
    finally:
        if mine:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [what, pk])
