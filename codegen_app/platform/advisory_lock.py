"""Work that one worker at a time does, locked without a row that names the worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from django.db import connection


class LockClass(IntEnum):
    """The first numbers of advisory locks: four ASCII letters each."""

    PLAN = 0x504C414E
    SEEK = 0x5345454B


@contextmanager
def try_lock(what: LockClass, pk: int) -> Iterator[bool]:
    """Yield whether this connection holds the lock on the row; it ends with the connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [what, pk])
        (mine,) = cursor.fetchone()
    try:
        yield mine
    finally:
        if mine:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [what, pk])
