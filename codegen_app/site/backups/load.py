"""Filling the database from a dump: only its rows, into tables that Kiln's own migrations created.

A dump is SQL of its author's choice, and a restore often runs as a superuser. So it is never
executed: ``pg_restore`` writes it as text, and only rows are taken from that, for tables and
columns that Kiln has, in our own statements. PostgreSQL checks them by our columns' types and
constraints, as a role that may do nothing else.
"""

from __future__ import annotations

import re
import secrets
import subprocess
import tempfile
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psycopg
from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder
from psycopg import sql

from codegen_app.platform.squashed import Key
from codegen_app.site.backups import database
from codegen_app.web.pagecache import triggers
from scheduler.errors import UserError
from scheduler.text import one_line

# The restore's own migrations fill this table.
_MIGRATIONS_TABLE = MigrationRecorder.Migration._meta.db_table
_MIGRATIONS_SEQUENCE = f"{_MIGRATIONS_TABLE}_id_seq"  # of rows that are not copied either
_COUNTERS = frozenset({triggers.WORK, triggers.REST})  # of page versions; they start again
_SERVER_FILE_ROLES = ("pg_execute_server_program", "pg_read_server_files", "pg_write_server_files")
# The text of ``pg_restore`` has a few kinds of lines. The author of a dump chooses its statements
# and where rows end, so any other line is refused.
_COPY = re.compile(rb'COPY public\.("?\w+"?) \(([\w", ]+)\) FROM stdin;\n')
_SEQUENCE = re.compile(
    rb"SELECT pg_catalog\.setval\('public\.(\w+)', (\d{1,19}), (true|false)\);\n"
)
_END = b"\\.\n"
_IGNORED = re.compile(
    rb"(?:--[^\n]*"
    rb"|SET client_encoding = 'UTF8';"
    rb"|SET (?!client_encoding\b)\w+ = [^;\n]*;"
    rb"|SELECT pg_catalog\.set_config\('search_path', '', false\);"
    rb"|\\(?:un)?restrict \w+"
    rb")?\n"
)


def load(file: Path, migrations: AbstractSet[Key]) -> None:
    """Create the tables of these migrations, and fill them.

    Raises ``UserError`` for rows, tables or columns that Kiln does not have, and for migrations
    that are no state of Kiln's; ``MachineError`` if PostgreSQL's program fails. The database is
    then empty, as before.
    """
    try:
        _migrate(migrations)
        _fill(file)
    except BaseException as error:
        connection.close()
        # Drop everything that the migrations created.
        with transaction.atomic(), connection.cursor() as cursor:
            if names := connection.introspection.table_names(cursor):
                tables = sql.SQL(", ").join(map(sql.Identifier, names))
                cursor.execute(sql.SQL("DROP TABLE {} CASCADE").format(tables))
            cursor.execute(
                "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
                " AND proname LIKE 'kiln\\_%%'"
            )
            for (name,) in cursor.fetchall():
                cursor.execute(sql.SQL("DROP FUNCTION public.{}").format(sql.Identifier(name)))
        if isinstance(error, DatabaseError | psycopg.Error):  # Django does not wrap COPY's errors
            first = one_line(str(error).splitlines()[0])
            raise UserError(f"the backup does not fit Kiln's tables: {first}") from None
        raise


def _migrate(migrations: AbstractSet[Key]) -> None:
    """Apply the migrations without ``post_migrate``, which is for the newest tables alone."""
    executor = MigrationExecutor(connection)
    graph = executor.loader.graph
    recorded = graph.nodes.keys() & migrations
    leaves = [
        node
        for node in recorded
        if not recorded & {child.key for child in graph.node_map[node].children}
    ]
    plan = {(step.app_label, step.name) for step, _ in executor.migration_plan(leaves)}
    if unknown := sorted(plan - migrations):
        first = ".".join(unknown[0])
        raise UserError(
            f"backup.json is damaged: it has migrations that follow {first}, but not that one"
        )
    executor.migrate(leaves)


def _fill(file: Path) -> None:
    """Copy the dump's rows into the tables, and set their sequences."""
    with transaction.atomic(), connection.cursor() as cursor:
        introspection = connection.introspection
        tables = {
            name: frozenset(row.name for row in introspection.get_table_description(cursor, name))
            for name in introspection.table_names()
        }
        cursor.execute("SELECT sequencename FROM pg_sequences WHERE schemaname = 'public'")
        sequences = frozenset(name for (name,) in cursor.fetchall())
        filled = sorted(tables.keys() - {_MIGRATIONS_TABLE})
        names = sql.SQL(", ").join(map(sql.Identifier, filled))
        # The dump also has the rows that migrations inserted.
        cursor.execute(sql.SQL("TRUNCATE {}").format(names))
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        copied: set[str] = set()
        with _insert_only_role(cursor, filled, sequences):
            with _dump_text(file) as text:
                for part in parse_dump(text, tables):
                    if isinstance(part, TableRows):
                        if part.table in copied:
                            raise UserError(f"the backup has the table {part.table} twice")
                        copied.add(part.table)
                        _copy(cursor, part)
                    elif part.name in sequences - {_MIGRATIONS_SEQUENCE}:
                        name = sql.Identifier("public", part.name).as_string()
                        cursor.execute(
                            "SELECT setval(%s::regclass, %s, %s)",
                            [name, part.value, part.is_called],
                        )
                    elif part.name != _MIGRATIONS_SEQUENCE and part.name not in _COUNTERS:
                        raise UserError(f"the backup has a sequence that Kiln has not: {part.name}")
            if missing := tables.keys() - copied - set(database.EXCLUDED_TABLES):
                raise UserError(f"the backup is not whole: it has no table {min(missing)}")
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def _copy(cursor: Any, part: TableRows) -> None:
    if part.table == _MIGRATIONS_TABLE:
        deque(part.lines, maxlen=0)
        return
    columns = sql.SQL(", ").join(map(sql.Identifier, part.columns))
    statement = sql.SQL("COPY public.{} ({}) FROM STDIN")
    with cursor.copy(statement.format(sql.Identifier(part.table), columns)) as copy:
        for line in part.lines:
            copy.write(line)


@contextmanager
def _insert_only_role(
    cursor: Any, tables: Collection[str], sequences: Collection[str]
) -> Iterator[None]:
    """Use a role that may add rows to the tables and nothing else if ours may run programs or
    access files on the server (a superuser may)."""
    cursor.execute(
        "SELECT bool_or(pg_has_role(power::name, 'USAGE')) FROM unnest(%s::text[]) AS power",
        [list(_SERVER_FILE_ROLES)],
    )
    if not cursor.fetchone()[0]:
        yield
        return
    role = sql.Identifier(f"kiln_restore_{secrets.token_hex(8)}")
    relations = {"INSERT": tables, "UPDATE": sequences}
    cursor.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(role))
    cursor.execute(sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(role))
    for right, names in relations.items():
        kind = sql.SQL("TABLE" if right == "INSERT" else "SEQUENCE")
        cursor.execute(
            sql.SQL("GRANT {} ON {} {} TO {}").format(
                sql.SQL(right), kind, sql.SQL(", ").join(map(sql.Identifier, sorted(names))), role
            )
        )
    cursor.execute(sql.SQL("SET LOCAL ROLE {}").format(role))
    yield  # after an error nothing of this is committed
    cursor.execute("RESET ROLE")
    cursor.execute(sql.SQL("DROP OWNED BY {}").format(role))
    cursor.execute(sql.SQL("DROP ROLE {}").format(role))


@contextmanager
def _dump_text(file: Path) -> Iterator[IO[bytes]]:
    """Yield the dump's rows as text; ``MachineError`` at its end if it is no dump."""
    with (
        tempfile.TemporaryFile() as stderr,
        subprocess.Popen(
            database.rows_command(file),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=database.libpq_environment(),
        ) as process,
    ):
        assert process.stdout is not None
        try:
            yield process.stdout
        except BaseException:
            process.kill()
            raise
        process.stdout.close()
        if process.wait() != 0:
            stderr.seek(0)
            raise database.program_error("pg_restore", stderr.read().decode(errors="replace"))


@dataclass(frozen=True)
class TableRows:
    """A table's rows: lines in the format of ``COPY``, to be read before the next part."""

    table: str
    columns: tuple[str, ...]
    lines: Iterator[bytes]


@dataclass(frozen=True)
class SequenceValue:
    """The value of a sequence."""

    name: str
    value: int
    is_called: bool


def parse_dump(
    text: Iterable[bytes], tables: Mapping[str, frozenset[str]]
) -> Iterator[TableRows | SequenceValue]:
    """Yield the rows and sequences in the lines, for these tables and their columns. Raises
    ``UserError`` for another table or column, and for anything that is neither rows nor a sequence.
    """
    lines = iter(text)
    for line in lines:
        if match := _COPY.fullmatch(line):
            table, *columns = (
                name.strip(' "') for name in (match[1].decode(), *match[2].decode().split(","))
            )
            if table not in tables:
                raise UserError(f"the backup has a table that Kiln has not: {table}")
            if len(columns) != len(tables[table]) or set(columns) != tables[table]:
                raise UserError(f"the backup's table {table} has other columns than Kiln's")
            yield TableRows(table, tuple(columns), _rows(lines, table))
        elif match := _SEQUENCE.fullmatch(line):
            yield SequenceValue(match[1].decode(), int(match[2]), match[3] == b"true")
        elif not _IGNORED.fullmatch(line):
            what = one_line(line[:80].decode(errors="replace"))
            raise UserError(f"the backup holds more than the rows of Kiln's tables: {what}")


def _rows(lines: Iterator[bytes], table: str) -> Iterator[bytes]:
    for line in lines:
        if line == _END:
            return
        yield line
    raise UserError(f"the backup's table {table} is cut off")
