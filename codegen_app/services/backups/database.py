"""The database as one file, by PostgreSQL's own programs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from psycopg.pq import Conninfo

from codegen_app.broker import transport
from codegen_app.postgres.cluster import PostgresError
from codegen_app.postgres.programs import last_line, versions
from scheduler.errors import MachineError

# Who is logged in is nobody else's to have; everybody logs in again.
EXCLUDED_TABLES = ("django_session",)


def dump(file: Path, snapshot: str) -> None:
    """Write all tables as an exported snapshot has them. ``MachineError`` says why it fails."""
    left_out = [f"--exclude-table-data=public.{table}" for table in EXCLUDED_TABLES]
    options = ("--format=custom", "--no-owner", "--no-privileges", f"--snapshot={snapshot}")
    _run("pg_dump", *options, *left_out, f"--file={file}")


def rows_command(file: Path) -> tuple[str, ...]:
    """What writes the rows of a dump out as text."""
    return find_program("pg_restore"), "--data-only", "--file=-", str(file)


def is_empty() -> bool:
    """Whether there is no table yet."""
    return not connection.introspection.table_names()


def applied_migrations() -> tuple[str, ...]:
    """The migrations of this database, as ``app.name``."""
    found = MigrationRecorder(connection).applied_migrations()
    return tuple(sorted(f"{app}.{name}" for app, name in found))


def known_migrations() -> frozenset[str]:
    """The migrations that this Kiln has, those that others replaced among them."""
    there = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    names = {*there, *(name for one in there.values() for name in one.replaces)}
    return frozenset(f"{app}.{name}" for app, name in names)


def _run(name: str, *arguments: str) -> None:
    try:
        done = subprocess.run(
            [find_program(name), *arguments],
            check=False,
            env=libpq_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
    except OSError as error:
        raise MachineError(f"{name} cannot be run: {error.strerror or error}") from None
    if done.returncode != 0:
        raise program_error(name, done.stderr)


def program_error(name: str, stderr: str) -> MachineError:
    """Why a program of PostgreSQL's failed, by the last line that it wrote."""
    reason = last_line(stderr)
    if "unsupported version" in reason:
        reason = (
            "this backup is of a newer PostgreSQL than the server"
            f" ({_server_version()}): restore it into a newer one"
        )
    return MachineError(f"{name}: {reason}")


def find_program(name: str) -> str:
    """A program's path: the oldest of ours that is not older than the server, since newer ones
    write settings that an older server does not know. Of a server that is newer than all of ours,
    the system's."""
    try:
        there = versions()
    except PostgresError:
        there = {}
    server = _server_version()
    fitting = [version for version in there if version >= server]
    if fitting:
        return str(there[min(fitting)] / "bin" / name)
    found = shutil.which(name)
    if found is None:
        raise MachineError(f"{name} is not here: install PostgreSQL's client programs")
    return found


def _server_version() -> int:
    """The server's major version."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        return int(cursor.fetchone()[0]) // 10_000


def libpq_environment() -> dict[str, str]:
    """Where the database is, as libpq's programs take it; a password is in no command line."""
    names = {one.keyword.decode(): one.envvar for one in Conninfo.get_defaults()}
    given = transport.parameters()
    found = {
        variable.decode(): str(value)
        for name, value in given.items()
        if (variable := names.get(name)) is not None
    }
    return {**os.environ, **found, "LC_ALL": "C"}
