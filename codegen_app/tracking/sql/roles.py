"""Roles of PostgreSQL that read the views of ``definitions.py`` and nothing else."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from django.db import DatabaseError, connection, transaction
from django.utils.http import urlencode
from psycopg import errors, sql

from codegen_app.accounts import audit
from codegen_app.platform.broker import transport
from codegen_app.tracking.sql.definitions import SCHEMA
from scheduler.errors import UserError

_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
_MARK = "reads Kiln's views"
_MAX_CONNECTIONS = 20
# A role may change these for a session: they protect from mistakes, the privileges from intent.
_SETTINGS = {
    "default_transaction_read_only": "on",
    "statement_timeout": "30s",
    "idle_in_transaction_session_timeout": "60s",
    "search_path": SCHEMA,
}


@transaction.atomic
def create_role(name: str) -> str:
    """Create a role, and return the connection string with its password, which is stored only as a
    hash. Raises ``UserError``."""
    if not _NAME.fullmatch(name) or name.startswith("pg_"):
        raise UserError(
            f"the name {name!r}: expected a lower-case letter, then letters, digits and"
            " underscores, at most 31, not beginning with pg_"
        )
    role, schema, password = sql.Identifier(name), sql.Identifier(SCHEMA), secrets.token_urlsafe(24)
    with _clear_errors(name), connection.cursor() as cursor:
        cursor.execute("SELECT to_regnamespace(%s), current_database()", [SCHEMA])
        namespace, database = cursor.fetchone()
        if namespace is None:
            raise UserError(f"the schema {SCHEMA} does not exist: run migrate")
        cursor.execute(
            sql.SQL(
                "CREATE ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT"
                " CONNECTION LIMIT {} PASSWORD {}"
            ).format(role, sql.Literal(_MAX_CONNECTIONS), sql.Literal(password))
        )
        for setting, value in _SETTINGS.items():
            cursor.execute(
                sql.SQL("ALTER ROLE {} SET {} = {}").format(
                    role, sql.Identifier(setting), sql.Literal(value)
                )
            )
        cursor.execute(sql.SQL("COMMENT ON ROLE {} IS {}").format(role, sql.Literal(_MARK)))
        for statement in (
            "GRANT CONNECT ON DATABASE {database} TO {role}",
            "GRANT USAGE ON SCHEMA {schema} TO {role}",
            "GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}",
            "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT SELECT ON TABLES TO {role}",
        ):
            cursor.execute(
                sql.SQL(statement).format(
                    role=role, schema=schema, database=sql.Identifier(database)
                )
            )
    audit.note(None, "create SQL role", name)
    return _connection_string(name, password)


@transaction.atomic
def drop_role(name: str) -> None:
    """Drop a role that ``create_role`` created. Raises ``UserError``."""
    with _clear_errors(name), connection.cursor() as cursor:
        cursor.execute(
            "SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = %s", [name]
        )
        row = cursor.fetchone()
        if row is None:
            raise UserError(f"there is no role {name!r}")
        if row != (_MARK,):
            raise UserError(f"role {name!r} is not one of Kiln's: drop it by SQL")
        cursor.execute("SELECT current_database()")
        (database,) = cursor.fetchone()
        for statement in (
            "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} REVOKE ALL ON TABLES FROM {role}",
            "REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {role}",
            "REVOKE ALL ON SCHEMA {schema} FROM {role}",
            "REVOKE ALL ON DATABASE {database} FROM {role}",
            "DROP ROLE {role}",
        ):
            cursor.execute(
                sql.SQL(statement).format(
                    role=sql.Identifier(name),
                    schema=sql.Identifier(SCHEMA),
                    database=sql.Identifier(database),
                )
            )
    audit.note(None, "drop SQL role", name)


def role_names() -> list[str]:
    """Return the roles that ``create_role`` created, on this server."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT rolname FROM pg_roles WHERE shobj_description(oid, 'pg_authid') = %s"
            " ORDER BY rolname",
            [_MARK],
        )
        return [name for (name,) in cursor.fetchall()]


@contextmanager
def _clear_errors(name: str) -> Iterator[None]:
    try:
        yield
    except DatabaseError as error:
        cause = error.__cause__
        if isinstance(cause, errors.DuplicateObject):
            line = f"role {name!r} exists: choose another name, or drop it first"
        elif isinstance(cause, errors.InsufficientPrivilege):
            line = (
                "the database account may not do that: let a superuser run “ALTER ROLE ACCOUNT"
                f" CREATEROLE” ({str(cause).splitlines()[0]})"
            )
        elif isinstance(cause, errors.DependentObjectsStillExist):
            line = f"role {name!r} has rights in another database: revoke them there first"
        else:
            raise
        raise UserError(line) from None


def _connection_string(name: str, password: str) -> str:
    """Return the URL for libpq's clients: where Kiln itself connects to, with the role."""
    parameters = transport.parameters()
    host, port = str(parameters.get("host", "")), str(parameters.get("port", "") or 5432)
    database = quote(str(parameters["dbname"]), safe="")
    if ":" in host:
        host = f"[{host}]"  # IPv6
    if host.startswith("/"):
        query = urlencode({"host": host, "port": port})
        return f"postgresql://{name}:{password}@/{database}?{query}"
    return f"postgresql://{name}:{password}@{host or 'localhost'}:{port}/{database}"
