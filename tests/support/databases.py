"""Databases of test processes: each is a copy of one that was migrated once and is kept. After a
test with transactions of its own what it left is deleted."""

from __future__ import annotations

import hashlib
import inspect
import os
from pathlib import Path

import django
import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connections, transaction
from django.db.migrations.loader import MigrationLoader
from psycopg import sql

PREFIX = "test_kiln_"
_ROOT = Path(__file__).resolve().parents[2]
_LOCK = 7_105_641  # of a server's advisory ones; nothing else of ours takes one there
# What migrations do not say and ``migrate`` makes all the same: permissions, triggers.
_ALSO = ("codegen_app/models", "codegen_app/web/pagecache")

_MADE_ANEW = {"auth_permission", "django_content_type"}


def own_name() -> str:
    """The name of this process's database."""
    return f"{PREFIX}{os.getpid()}"


def drop_abandoned(server: str) -> None:
    """Databases of test processes that were killed."""
    with psycopg.connect(server, autocommit=True) as connection:
        for name in _names(connection, PREFIX):
            owner = name.removeprefix(PREFIX)
            if owner.isdigit() and not Path("/proc", owner).exists():
                _drop(connection, name)


def migrated(server: str) -> str:
    """The name of a database with all migrations and no connection, to be copied. It is made where
    these migrations have none yet, by one process while others wait; that of other migrations of
    this checkout goes away."""
    ours = f"{PREFIX}of_{hashlib.sha256(bytes(_ROOT)).hexdigest()[:8]}_"
    name = ours + _digest()
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        known = _names(connection, ours)
        if name not in known:
            for old in known:
                _drop(connection, old)
            making = own_name()  # a killed process leaves no half of it under the name itself
            _drop(connection, making)
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(making)))
            _migrate(making)
            rename = sql.SQL("ALTER DATABASE {} RENAME TO {}")
            connection.execute(rename.format(sql.Identifier(making), sql.Identifier(name)))
    return name


def empty(_: object = None) -> None:
    """Delete all rows but those that ``migrate`` makes anew each time. In place of ``flush``, which
    gives every table, index and trigger new files: a third of a second, where most are empty.

    The role must be a superuser's: guards and foreign keys look away meanwhile.
    """
    connection = connections["default"]
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    look = sql.SQL("SELECT {} WHERE EXISTS (SELECT FROM {})")
    looks = [look.format(table, sql.Identifier(table)) for table in {*tables} - _MADE_ANEW]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.SQL(" UNION ALL ").join(looks))
        filled = cursor.fetchall()
        cursor.execute("SET LOCAL session_replication_role = replica")
        for (table,) in filled:
            cursor.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))


def _migrate(name: str) -> None:
    """In this process, over the connection that the tests use afterwards."""
    database = settings.DATABASES["default"]
    before = database["NAME"]
    database["NAME"] = name
    try:
        call_command("migrate", verbosity=0)
    finally:
        connections["default"].close()
        database["NAME"] = before


def _digest() -> str:
    """Of all that decides what ``migrate`` makes."""
    found = hashlib.sha256(django.__version__.encode())
    migrations = MigrationLoader(None).disk_migrations.values()
    files = {Path(inspect.getfile(type(migration))) for migration in migrations}
    for folder in _ALSO:
        files.update((_ROOT / folder).rglob("*.py"))
    for file in sorted(files):
        found.update(f"{file}\0".encode() + file.read_bytes())
    return found.hexdigest()[:16]


def _names(connection: psycopg.Connection, prefix: str) -> list[str]:
    query = "SELECT datname FROM pg_database WHERE starts_with(datname, %s)"
    return [name for (name,) in connection.execute(query, [prefix])]


def _drop(connection: psycopg.Connection, name: str) -> None:
    connection.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)))
