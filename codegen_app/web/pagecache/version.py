"""The state of the database when a page was rendered, and whether it still holds."""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import Lock

from django.db import connection

from codegen_app.platform.advisory_lock import LockClass
from codegen_app.web.pagecache.triggers import LOCK_OF, REST, WORK

KNOWN_FOR_S = 0.1  # how often a process reads the version at most


_COUNTS = f"SELECT {WORK}.last_value, {REST}.last_value FROM {WORK}, {REST}"  # noqa: S608
_LOCKS = """
SELECT objid, virtualtransaction FROM pg_locks
WHERE locktype = 'advisory' AND classid = %s AND objsubid = 2
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@dataclass(frozen=True)
class Version:
    """The counts of changes, and the running transactions that changed something.

    A change is counted when it is made and visible when it is committed. The counts are read before
    the transactions: a counted change is either committed, and visible to the next read, or of one
    of these. So nothing changed as long as the counts are the same and each of these is still
    running.
    """

    work: int
    rest: int
    work_under_way: frozenset[str]
    rest_under_way: frozenset[str]

    def holds(self, now: Version) -> bool:
        """Return whether nothing changed from this version to ``now``."""
        same_work = self.work == now.work and self.work_under_way <= now.work_under_way
        return same_work and self.rest_holds(now)

    def rest_holds(self, now: Version) -> bool:
        """Return whether nothing changed except what workers write."""
        return self.rest == now.rest and self.rest_under_way <= now.rest_under_way


def read_version() -> Version:
    """Return the current version (2 queries, each its own statement)."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS)
        work, rest = cursor.fetchone()
        cursor.execute(_LOCKS, [LockClass.PAGE_CHANGES])
        locks = cursor.fetchall()
    under_way = {
        name: frozenset(holder for lock_number, holder in locks if lock_number == number)
        for name, number in LOCK_OF.items()
    }
    return Version(work, rest, under_way[WORK], under_way[REST])


class Versions:
    """The version, read again after ``KNOWN_FOR_S``."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: tuple[float, Version] | None = None

    def now(self, *, exact: bool = False) -> Version:
        """Return the version; with ``exact`` the current one."""
        cached = self._known
        if not exact and cached is not None and time.monotonic() - cached[0] < KNOWN_FOR_S:
            return cached[1]
        at = time.monotonic()
        version = read_version()
        with self._lock:
            if self._known is None or self._known[0] < at:
                self._known = (at, version)
        return version
