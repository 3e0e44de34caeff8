"""Creating the views of ``definitions.py``.

PostgreSQL refuses to change a column that a view reads. So the views are dropped before a migration
changes tables, and created after it, for the tables that exist then. Roles keep their rights: these
are default privileges of the schema (``roles.py``).
"""

from __future__ import annotations

import hashlib
import logging
from typing import Any

from django.db import connections, transaction
from django.db.backends.utils import CursorWrapper
from psycopg import errors, sql

from codegen_app.tracking.sql.definitions import SCHEMA, views

log = logging.getLogger(__name__)
_FINGERPRINT = "SELECT obj_description(to_regnamespace(%s), 'pg_namespace')"
_EXISTING = """SELECT relname FROM pg_class
WHERE relnamespace = to_regnamespace(%s) AND relkind = 'v' ORDER BY relname"""


def drop_views(using: str = "default", plan: object = (), **_: Any) -> None:
    """Drop the views before migrations are applied; does nothing if the plan has none."""
    if not plan:
        return
    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        _drop(cursor)


def create_views(using: str = "default", **_: Any) -> None:
    """Create the views, unless they are there as defined."""
    definitions = views()
    text = "\n".join(f"{view.statement}\n{view.about}{view.columns}" for view in definitions)
    fingerprint = f"Kiln's views, {hashlib.sha256(text.encode()).hexdigest()[:16]}"
    with connections[using].cursor() as cursor:
        cursor.execute(_FINGERPRINT, [SCHEMA])
        if cursor.fetchone() == (fingerprint,):
            return
    schema = sql.Identifier(SCHEMA)
    try:
        with transaction.atomic(using=using), connections[using].cursor() as cursor:
            cursor.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
            _drop(cursor)
            for view in definitions:
                cursor.execute(view.statement)
                name = sql.Identifier(SCHEMA, view.name)
                _comment(cursor, sql.SQL("VIEW {}").format(name), view.about)
                for column in view.columns:
                    what = sql.Identifier(SCHEMA, view.name, column.name)
                    _comment(cursor, sql.SQL("COLUMN {}").format(what), column.meaning)
            _comment(cursor, sql.SQL("SCHEMA {}").format(schema), fingerprint)
    except Exception as error:
        if not isinstance(error.__cause__, errors.InsufficientPrivilege):
            raise
        log.warning(
            "the views for reading by SQL were not created: the database account needs the"
            " privilege CREATE on the database (%s)",
            str(error.__cause__).splitlines()[0],
        )


def _drop(cursor: CursorWrapper) -> None:
    cursor.execute(_EXISTING, [SCHEMA])
    if names := [name for (name,) in cursor.fetchall()]:
        listed = sql.SQL(", ").join(sql.Identifier(SCHEMA, name) for name in names)
        cursor.execute(sql.SQL("DROP VIEW {}").format(listed))
        _comment(cursor, sql.SQL("SCHEMA {}").format(sql.Identifier(SCHEMA)), "")


def _comment(cursor: CursorWrapper, what: sql.Composed, text: str) -> None:
    cursor.execute(sql.SQL("COMMENT ON {} IS {}").format(what, sql.Literal(text)))
