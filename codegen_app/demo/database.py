"""The demo's database server: started, looked after, and asked again where it was away."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import psycopg
from django.db import InterfaceError, OperationalError, connections

from codegen_app import postgres
from codegen_app.postgres import Cluster, PostgresError

T = TypeVar("T")
_DATABASE = "kiln"
_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0
_TRIES = 5


class DatabaseServer:
    """The embedded server of the demo; without a cluster it is somebody else's to start."""

    def __init__(self, cluster: Cluster | None, say: Callable[[str], None]) -> None:
        self._cluster, self._say = cluster, say
        self._pause_s, self._next_try_s = _PAUSE_S, 0.0

    def start(self) -> None:
        """Start it (or take over one that runs) and make the database; ``PostgresError``."""
        if self._cluster is None:
            return
        postgres.start(self._cluster)
        try:
            with psycopg.connect(self._cluster.url("postgres"), autocommit=True) as connection:
                known = connection.execute(
                    "SELECT 1 FROM pg_database WHERE datname = %s", [_DATABASE]
                )
                if known.fetchone() is None:
                    connection.execute(f"CREATE DATABASE {_DATABASE}")
        except psycopg.Error as error:
            raise PostgresError(f"PostgreSQL: {str(error).splitlines()[0]}") from None

    def watch(self) -> None:
        """Start it again where it ended by itself; where that fails, later, and less often."""
        if self._cluster is None or postgres.is_running(self._cluster):
            self._pause_s = _PAUSE_S
            return
        if time.monotonic() < self._next_try_s:
            return
        self._say("the database server ended; starting it again")
        try:
            postgres.start(self._cluster)
        except PostgresError as error:
            self._say(f"{error}; trying again in {self._pause_s:.0f} s")
            self._next_try_s = time.monotonic() + self._pause_s
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    def ask(self, question: Callable[[], T]) -> T:
        """The answer of what may be asked again, where the database went away under it."""
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
    """One that broke within a transaction is not opened again by itself."""
    for alias in list(connections):
        connections[alias].close()
        del connections[alias]
