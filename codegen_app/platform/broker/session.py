"""Messages as rows: putting, taking, acknowledging, and waiting for the next one.

A message is taken by writing the session's number into its row, and deleted when it is
acknowledged. Each taking session holds an advisory lock on its number while it lives, so that other
sessions notice what a killed process had taken, and one of them takes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext, suppress
from typing import Any

import psycopg

_STATEMENT_LIMIT_MS = 30_000

_PUT = """
WITH message AS (
    INSERT INTO codegen_app_message (queue, body, created_at, expires_at)
    VALUES (%(queue)s, %(body)s, now(), now() + %(ttl_s)s * interval '1 second')
    RETURNING queue)
SELECT pg_notify('kiln_message', queue) FROM message"""

_TAKE = """
UPDATE codegen_app_message SET session = pg_backend_pid() WHERE id = (
    SELECT id FROM codegen_app_message
    WHERE queue = %s AND session IS NULL AND (expires_at IS NULL OR expires_at > now())
    ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING id, body"""

# Our advisory locks have their own class number.
_BEGIN = (
    "SELECT pg_advisory_lock(1802071150, pg_backend_pid())",
    # A dead session may have had the same number.
    "UPDATE codegen_app_message SET session = NULL WHERE session = pg_backend_pid()",
    "LISTEN kiln_message",
    # A power cut may undo taking or deleting a message, which is then delivered once more. A put
    # message is on the disk before the sender continues.
    "SET synchronous_commit = off",
)

_RELEASE_ORPHANS = """
UPDATE codegen_app_message SET session = NULL WHERE id IN (
    SELECT id FROM codegen_app_message
    WHERE session IS NOT NULL AND session NOT IN (
        SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND classid = 1802071150
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
    FOR UPDATE SKIP LOCKED)"""

_SIZE = """
SELECT count(*) FROM codegen_app_message
WHERE queue = %s AND session IS NULL AND (expires_at IS NULL OR expires_at > now())"""

_DELETE_EXPIRED = """
DELETE FROM codegen_app_message WHERE id IN (
    SELECT id FROM codegen_app_message WHERE session IS NULL AND expires_at <= now()
    FOR UPDATE SKIP LOCKED)"""


class Session:
    """One connection to the database with the messages. All methods raise ``psycopg.Error``."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._connection: psycopg.Connection[tuple[Any, ...]] = psycopg.connect(
            **parameters,
            autocommit=True,
            application_name="kiln messages",
            connect_timeout=10,
            options=f"-c statement_timeout={_STATEMENT_LIMIT_MS}",
            # A server that vanished is noticed within half a minute.
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
            tcp_user_timeout=_STATEMENT_LIMIT_MS,
        )
        self._takes = False

    @property
    def closed(self) -> bool:
        """Return whether the connection is gone."""
        return self._connection.closed

    def put(self, queue: str, body: str, ttl_s: float | None) -> None:
        """Add a message and wake those who wait; after ``ttl_s`` seconds it is not delivered."""
        with self._connection.transaction() if self._takes else nullcontext():
            if self._takes:
                self._connection.execute("SET LOCAL synchronous_commit = on")
            self._connection.execute(_PUT, {"queue": queue, "body": body, "ttl_s": ttl_s})

    def take(self, queue: str) -> tuple[int, str] | None:
        """Take the oldest free message for this session; return its id and body."""
        self.begin_taking()
        row = self._connection.execute(_TAKE, [queue]).fetchone()
        return None if row is None else (row[0], row[1])

    def begin_taking(self) -> None:
        """Lock the session's number, and listen for new messages."""
        if self._takes:
            return
        for statement in _BEGIN:
            self._connection.execute(statement)
        self._takes = True

    def remove(self, message: int) -> None:
        """Delete a processed message."""
        self._connection.execute("DELETE FROM codegen_app_message WHERE id = %s", [message])

    def give_back(self, message: int) -> None:
        """Return a message to the queue."""
        self._connection.execute(
            "UPDATE codegen_app_message SET session = NULL"
            " WHERE id = %s AND session = pg_backend_pid()",
            [message],
        )

    def size(self, queue: str) -> int:
        """Return how many messages wait in the queue."""
        row = self._connection.execute(_SIZE, [queue]).fetchone()
        return int(row[0]) if row else 0

    def purge(self, queue: str) -> int:
        """Delete a queue's waiting messages; return how many."""
        deleted = self._connection.execute(
            "DELETE FROM codegen_app_message WHERE queue = %s AND session IS NULL", [queue]
        )
        return deleted.rowcount

    def tidy(self) -> None:
        """Free the messages of dead sessions, and delete expired ones."""
        self._connection.execute(_RELEASE_ORPHANS)
        self._connection.execute(_DELETE_EXPIRED)

    def wait(self, timeout_s: float) -> bool:
        """Return whether a message was put into any queue since the last check, or in time."""
        return any(True for _ in self._connection.notifies(timeout=timeout_s, stop_after=1))

    def close(self) -> None:
        """Close it; its messages are free at once if the database still answers."""
        if self._connection.closed:
            return
        with suppress(psycopg.Error):
            if self._takes:
                self._connection.execute(
                    "UPDATE codegen_app_message SET session = NULL WHERE session = pg_backend_pid()"
                )
        self._connection.close()
