"""Django's ``migrate``, behind which nobody waits for long."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections
from psycopg.errors import LockNotAvailable

# Whoever reads a table queues behind a migration that waits for it (behind autovacuum, a backup,
# somebody's open transaction), so a migration waits for a short time only, and often.
LOCK_WAIT_MS = 500
_PAUSE_S = 0.5
_TRIES = 600


class Command(migrate.Command):
    """The same options; a table that is in use is asked for again and again, for ten minutes."""

    _database = ""

    def handle(self, *args: Any, **options: Any) -> None:
        self._database = options["database"]
        for _ in range(_TRIES):
            try:
                super().handle(*args, **options)
                return
            except OperationalError as error:
                if not isinstance(error.__cause__, LockNotAvailable):
                    raise
                self.stderr.write("A table is in use by another transaction; trying again.")
            finally:
                self._wait_for_locks("DEFAULT")
            time.sleep(_PAUSE_S)
        raise CommandError(
            "a table was in use all the time: end what uses it (pg_stat_activity lists open"
            " transactions), then run this command again, which goes on where it stopped"
        )

    def migration_progress_callback(
        self, action: str, migration: Any = None, fake: bool = False
    ) -> None:
        super().migration_progress_callback(action, migration, fake)
        if action in {"apply_start", "unapply_start"}:
            # What is not one transaction cannot be taken back and tried again; it builds indexes
            # beside readers, who do not queue behind that.
            self._wait_for_locks(str(LOCK_WAIT_MS) if migration.atomic else "DEFAULT")

    def _wait_for_locks(self, milliseconds: str) -> None:
        with connections[self._database].cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {milliseconds}")
