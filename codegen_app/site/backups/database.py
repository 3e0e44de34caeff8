"""The database as one file, by PostgreSQL's own programs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from psycopg.pq import Conninfo

from codegen_app.platform import squashed
from codegen_app.platform.broker import transport
from codegen_app.platform.postgres.cluster import PostgresError
from codegen_app.platform.postgres.programs import last_line, versions
from codegen_app.tracking.sql.definitions import SCHEMA
from scheduler.errors import MachineError

# Sessions are private; everybody logs in again.
EXCLUDED_TABLES = ("django_session",)


def dump(file: Path, snapshot: str) -> None:
    """Write all tables as of an exported snapshot. ``MachineError`` says why it fails."""
    excluded = [f"--exclude-table-data=public.{table}" for table in EXCLUDED_TABLES]
    excluded.append(f"--exclude-schema={SCHEMA}")  # migrate creates the views
    options = ("--format=custom", "--no-owner", "--no-privileges", f"--snapshot={snapshot}")
    try:
        process = subprocess.run(
            [find_program("pg_dump"), *options, *excluded, f"--file={file}"],
            check=False,
            env=libpq_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
    except OSError as error:
        raise MachineError(f"pg_dump cannot be run: {error.strerror or error}") from None
    if process.returncode != 0:
        raise program_error("pg_dump", process.stderr)


def rows_command(file: Path) -> tuple[str, ...]:
    """Return the command that writes a dump's rows as text."""
    return find_program("pg_restore"), "--data-only", "--file=-", str(file)


def is_empty() -> bool:
    """Return whether the database has no tables."""
    return not connection.introspection.table_names()


def applied_migrations() -> tuple[str, ...]:
    """Return the migrations of this database, as ``app.name``."""
    applied = MigrationRecorder(connection).applied_migrations()
    return tuple(sorted(f"{app}.{name}" for app, name in applied))


def known_migrations() -> frozenset[str]:
    """Return the migrations of this Kiln, replaced ones included."""
    migrations = squashed.code_migrations()
    return frozenset(
        f"{app}.{name}" for app, name in migrations.keys() | set().union(*migrations.values())
    )


def program_error(name: str, stderr: str) -> MachineError:
    """Return the error of a failed PostgreSQL program, from the last line of its output."""
    reason = last_line(stderr)
    if "unsupported version" in reason:
        reason = (
            "this backup is of a newer PostgreSQL than the server"
            f" ({_server_version()}): restore it into a newer one"
        )
    return MachineError(f"{name}: {reason}")


def find_program(name: str) -> str:
    """Return a program's path: our oldest version that is not older than the server, since newer
    ones write settings that an older server does not know. For a server newer than all of ours, the
    system's program."""
    try:
        installs = versions()
    except PostgresError:
        installs = {}
    server = _server_version()
    versions_at_least = [version for version in installs if version >= server]
    if versions_at_least:
        return str(installs[min(versions_at_least)] / "bin" / name)
    program = shutil.which(name)
    if program is None:
        raise MachineError(f"{name} is not here: install PostgreSQL's client programs")
    return program


def _server_version() -> int:
    """Return the server's major version."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        return int(cursor.fetchone()[0]) // 10_000


def libpq_environment() -> dict[str, str]:
    """Return the database's address for libpq's programs; no command line has the password."""
    names = {row.keyword.decode(): row.envvar for row in Conninfo.get_defaults()}
    variables = {
        variable.decode(): str(value)
        for name, value in transport.parameters().items()
        if (variable := names.get(name)) is not None
    }
    return {**os.environ, **variables, "LC_ALL": "C"}
