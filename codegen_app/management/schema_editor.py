"""Migrations' statements, for tables that others use meanwhile."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from django.db.backends.postgresql.schema import DatabaseSchemaEditor

# Whoever reads a table queues behind a migration that waits for it (behind autovacuum, a backup,
# somebody's open transaction), or for another one while it has this one.
LOCK_WAIT_MS = 500
_MIN_WAIT_MS = 50  # others' short statements end meanwhile


class SchemaEditor(DatabaseSchemaEditor):
    """Django's, whose transaction waits for tables for half a second, all its statements together,
    and ends where one of them fails.

    A migration that is not one transaction cannot be taken back and tried again; it builds indexes
    beside readers, who do not queue behind that, and waits as long as it takes.
    """

    _began = 0.0

    def __enter__(self) -> SchemaEditor:
        super().__enter__()
        self._began = time.monotonic()
        self._limit_waiting()
        return self

    def execute(self, sql: Any, params: Any = ()) -> None:
        self._limit_waiting()
        super().execute(sql, params)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Django executes the deferred statements here too, and where one of them fails it leaves
        # the transaction open: every later statement of the connection would fail.
        if kind is None:
            try:
                for statement in self.deferred_sql:
                    self.execute(statement, None)
            except BaseException:
                super().__exit__(*sys.exc_info())
                raise
            self.deferred_sql = []
        super().__exit__(kind, error, trace)

    def _limit_waiting(self) -> None:
        if not self.atomic_migration:
            return
        spent_ms = 1000 * (time.monotonic() - self._began)
        left = max(_MIN_WAIT_MS, round(LOCK_WAIT_MS - spent_ms))
        with self.connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = {left}")
