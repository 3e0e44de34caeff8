"""Django's ``migrate``, behind which nobody waits for long."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections
from django.db.migrations.recorder import MigrationRecorder
from psycopg.errors import LockNotAvailable

from codegen_app.management.schema_editor import SchemaEditor
from codegen_app.platform import squashed
from scheduler.errors import UserError

_PAUSE_S = 0.5
_TRIES = 600


class Command(migrate.Command):
    """The same options; a table that is in use is asked for again and again, for ten minutes."""

    def handle(self, *args: Any, **options: Any) -> None:
        connection = connections[options["database"]]
        applied = MigrationRecorder(connection).applied_migrations()
        try:
            squashed.check_applied(applied.keys(), "the database")
        except UserError as error:
            raise CommandError(str(error)) from None
        before = connection.SchemaEditorClass
        connection.SchemaEditorClass = SchemaEditor
        try:
            for _ in range(_TRIES):
                try:
                    super().handle(*args, **options)
                    return
                except OperationalError as error:
                    if not isinstance(error.__cause__, LockNotAvailable):
                        raise
                    self.stderr.write("A table is in use by another transaction; trying again.")
                time.sleep(_PAUSE_S)
        finally:
            connection.SchemaEditorClass = before
        raise CommandError(
            "a table is in use: end the transactions that use it (pg_stat_activity lists"
            " open transactions), then run this command again; it continues where it stopped"
        )
