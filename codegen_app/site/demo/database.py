"""The demo's database server: started and watched; queries are repeated after an outage."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import psycopg
from django.db import InterfaceError, OperationalError, connections

from codegen_app.platform import postgres
from codegen_app.platform.postgres import Cluster, PostgresError

T = TypeVar("T")
_DATABASE = "kiln"
_PAUSE_S, _MAX_PAUSE_S = 1.0, 30.0
_TRIES = 5
_ASK_EVERY_S = 5.0
# The first limit of a recovery; doubled each time that a recovery was ended.
_RECOVERY_LIMIT_S = 30.0


class DatabaseServer:
    """The demo's embedded server; without a cluster the server is external."""

    def __init__(self, cluster: Cluster | None, say: Callable[[str], None]) -> None:
        self._cluster, self._say = cluster, say
        self._pause_s, self._next_try_s = _PAUSE_S, 0.0
        self._recovery_limit_s = _RECOVERY_LIMIT_S
        self._ready_at_s = self._next_question_s = time.monotonic()

    def start(self) -> None:
        """Start it (or take over a running one) and create the database; ``PostgresError``."""
        if self._cluster is None:
            return
        postgres.start(self._cluster)
        for remaining in reversed(range(_TRIES)):
            try:
                url = self._cluster.url("postgres")
                with psycopg.connect(url, autocommit=True) as connection:
                    existing = connection.execute(
                        "SELECT 1 FROM pg_database WHERE datname = %s", [_DATABASE]
                    )
                    if existing.fetchone() is None:
                        connection.execute(f"CREATE DATABASE {_DATABASE}")
            except psycopg.Error as error:
                if not remaining:
                    raise PostgresError(f"PostgreSQL: {str(error).splitlines()[0]}") from None
                time.sleep(_PAUSE_S)
            else:
                return

    def watch(self) -> None:
        """Restart it if it ended by itself, or does not come back from a recovery; after a failure
        later, and less often."""
        cluster, now = self._cluster, time.monotonic()
        if cluster is None:
            return
        if postgres.is_running(cluster):
            self._pause_s = _PAUSE_S
            if now < self._next_question_s:
                return
            self._next_question_s = now + _ASK_EVERY_S
            if postgres.is_ready(cluster):
                self._ready_at_s = now
            elif now - self._ready_at_s > self._recovery_limit_s:
                self._say("the database server does not recover; restarting it")
                self._recovery_limit_s *= 2
                with suppress(PostgresError):  # the next check tries again
                    postgres.stop_at_once(cluster)
                self._ready_at_s = now
        elif now >= self._next_try_s:
            self._say("the database server ended; restarting it")
            try:
                postgres.start(cluster)
            except PostgresError as error:
                self._say(f"{error}; trying again in {self._pause_s:.0f} s")
                self._next_try_s = time.monotonic() + self._pause_s
                self._pause_s = min(2 * self._pause_s, _MAX_PAUSE_S)

    def retry(self, question: Callable[[], T]) -> T:
        """Return the result of a repeatable function, even if the database was unavailable
        meanwhile."""
        for _ in range(_TRIES - 1):
            try:
                return question()
            except (InterfaceError, OperationalError) as error:
                self._say(f"the database: {str(error).splitlines()[0]}; asking again")
                _forget_connections()
                time.sleep(_PAUSE_S)
                self.watch()
        return question()

    def stop(self) -> None:
        """Stop it; ``PostgresError``."""
        connections.close_all()
        if self._cluster is not None:
            postgres.stop(self._cluster)


def _forget_connections() -> None:
    """Close connections: one that broke within a transaction is not reopened by itself."""
    for alias in list(connections):
        connections[alias].close()
        del connections[alias]
