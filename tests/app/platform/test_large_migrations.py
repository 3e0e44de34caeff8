"""Migrations of a site that was used for long: whoever reads goes on reading."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event, Thread

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection

from codegen_app.graphs.models import GraphNode
from codegen_app.web.pagecache import triggers
from tests.app import factories, track_factories
from tests.app.platform.test_migrations import latest, migrate  # noqa: F401 - a fixture
from tests.support.pages_world import make_graph

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]
BEFORE = "0034_fewer_indexes"
ROWS = 1_000_000
# Of whoever would wait for another's transaction: that is for ever, however busy the machine is.
FOR_EVER_MS = 60_000
# By table what no two rows share, of a row's number n.
LARGE = {
    "codegen_app_generatedkernel": {"name": "'k' || n", "source_digest": "lpad(n::text, 64, '0')"},
    "codegen_app_build": {"toolchain_digest": "lpad(n::text, 64, '0')"},
    "codegen_app_candidate": {"position": "n", "kernel_id": "n"},
    "codegen_app_graphnode": {"position": "n", "name": "'n' || n"},
    "codegen_app_datum": {},
}


class Reader:
    """Reads all large tables again and again, as pages do, and notes for which it had to wait."""

    def __init__(self, longest_wait_ms: int) -> None:
        self.longest_wait_ms = longest_wait_ms
        self.rounds = 0
        self.waited_for: list[str] = []
        self._stop = Event()
        self._thread = Thread(target=self._read)

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _read(self) -> None:
        with psycopg.connect(**connection.get_connection_params(), autocommit=True) as own:
            own.execute(f"SET lock_timeout = {self.longest_wait_ms}")
            while not self._stop.wait(0.01):
                for table in LARGE:
                    try:
                        own.execute(f"SELECT * FROM {table} ORDER BY id DESC LIMIT 20").fetchall()
                    except psycopg.errors.LockNotAvailable:
                        self.waited_for.append(table)
                self.rounds += 1


def multiply(table: str, unique: dict[str, str]) -> None:
    """The table's last row, a million times: what refers to others refers to the same."""
    own = "".join(f", '{name}', {value}" for name, value in unique.items())
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # its references are there
        cursor.execute(
            f"INSERT INTO {table} SELECT made.* FROM"
            f" (SELECT id, one FROM {table} one ORDER BY id DESC LIMIT 1) base,"
            f" generate_series(base.id + 1, base.id + {ROWS} - 1) n,"
            f" LATERAL jsonb_populate_record(base.one, jsonb_build_object('id', n{own})) made"
        )
        cursor.execute("SET session_replication_role = DEFAULT")


@dataclass(frozen=True)
class Large:
    """The last migration's name, and how long it took to write the quickest of the tables: less
    than a migration takes that writes one anew, here and now."""

    latest: str
    quickest_ms: int


@pytest.fixture
def large(latest: str) -> Iterator[Large]:  # noqa: F811
    """A million rows in each large table, in the schema of before."""
    make_graph("large", layers=1)
    factories.candidate(factories.task())
    track_factories.datum()
    GraphNode.objects.update(source="")
    migrate(BEFORE)
    took = []
    for table, unique in LARGE.items():
        start = time.monotonic()
        multiply(table, unique)
        took.append(time.monotonic() - start)
    yield Large(latest, round(min(took) * 1000))
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {', '.join(LARGE)} CASCADE")


def large_files() -> list[int]:
    """What each large table is on the disk: another file once it was written anew."""
    asked = ", ".join(f"pg_relation_filenode('{table}')" for table in LARGE)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {asked}")
        return list(cursor.fetchone())


def test_nobody_who_reads_waits_while_a_million_rows_are_migrated(large: Large) -> None:
    files = large_files()
    with Reader(large.quickest_ms) as reader:
        call_command("migrate", "codegen_app", large.latest, verbosity=0)
    triggers.create_triggers()
    assert large_files() == files, "no table was written anew, which locks readers out"
    assert reader.waited_for == []
    assert reader.rounds > 1, "it did read meanwhile"
    assert not GraphNode.objects.filter(source="").exists(), "every node's line is known"
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM codegen_app_datum")
        assert cursor.fetchone() == (ROWS,), "no point is gone"


class Holder:
    """Somebody's open transaction that uses a table, until a migration says that it waits."""

    def __init__(self, statement: str) -> None:
        self.lines: list[str] = []
        self._own = psycopg.connect(**connection.get_connection_params())
        # Where nothing is said the test fails instead of waiting for ever.
        self._own.execute("SET idle_in_transaction_session_timeout = '5min'")
        self._own.execute(statement)

    def write(self, line: str) -> None:
        """What the command says on its standard error."""
        self.lines.append(line.strip())
        self._own.close()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM codegen_app_build LIMIT 1",
        # In the way of what refers to people, which a migration executes last of all.
        "LOCK TABLE auth_user IN ROW EXCLUSIVE MODE",
    ],
)
def test_nobody_waits_behind_a_migration_that_waits(
    latest: str,  # noqa: F811
    statement: str,
) -> None:
    migrate(BEFORE)
    holder = Holder(statement)
    with Reader(FOR_EVER_MS) as reader:
        call_command("migrate", "codegen_app", latest, verbosity=0, stderr=holder)
    triggers.create_triggers()
    # Once for this transaction, and again where autovacuum was at a table, or a reader slow.
    assert set(holder.lines) == {"A table is in use by another transaction; trying again."}
    assert reader.waited_for == []
    assert reader.rounds > 1, "it did read meanwhile"
