"""Migrations: which databases are upgraded, and that nobody waits behind one that waits."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from threading import Event, Thread

import psycopg
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection, migrations, models, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from codegen_app.platform import squashed

APP = "codegen_app"
SQUASHED = (APP, "0001_squashed_0050_accounted")
LATER = "9999_later"
LAST = MigrationLoader(None).graph.leaf_nodes(APP)
TABLES = ("codegen_app_build", "auth_user")
# Of whoever would wait for another's transaction: that is for ever, however busy the machine is.
FOR_EVER_MS = 60_000


def forget(*names: str) -> None:
    """The database has not applied these migrations, as far as it knows."""
    MigrationRecorder(connection).migration_qs.filter(app=APP, name__in=names).delete()


@pytest.mark.django_db
def test_a_database_with_all_migrations_of_before_has_nothing_to_do() -> None:
    forget(SQUASHED[1])
    call_command("migrate", check_unapplied=True, verbosity=0)
    said = StringIO()
    call_command("migrate", stdout=said)
    assert "No migrations to apply." in said.getvalue()
    assert SQUASHED in MigrationRecorder(connection).applied_migrations()


@pytest.mark.django_db
@pytest.mark.parametrize("options", [{}, {"check_unapplied": True}], ids=["migrate", "check"])
def test_a_database_with_some_migrations_of_before_is_refused_in_a_line(
    options: dict[str, bool],
) -> None:
    forget("0049_torch_comparison", "0050_accounted", SQUASHED[1])
    with pytest.raises(CommandError) as refused:
        call_command("migrate", verbosity=0, **options)
    assert str(refused.value) == (
        "the database has 46 of the 48 migrations up to codegen_app.0050_accounted: upgrade first"
        " with the last commit that has this migration (deploy/README.md, Backups and upgrades),"
        " then with this one"
    )


def test_a_squashed_migration_is_applied_where_all_that_it_replaces_are() -> None:
    replaced = squashed.code_migrations()[SQUASHED]
    last = (APP, "0050_accounted")
    assert squashed.with_squashed(replaced) == {SQUASHED, *replaced}
    assert squashed.with_squashed({SQUASHED, *replaced} - {last}) == replaced - {last}
    assert squashed.with_squashed(set()) == set()


@pytest.mark.full
@pytest.mark.django_db(transaction=True)
def test_a_migration_that_is_undone_leaves_nothing() -> None:
    with transaction.atomic():
        MigrationExecutor(connection).migrate([(APP, None)])
        tables = connection.introspection.table_names()
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_proc WHERE proname LIKE 'kiln_guard%'")
            assert cursor.fetchone() == (0,)
        assert not [name for name in tables if name.startswith(APP)]
        transaction.set_rollback(True)


class Later(migrations.Migration):
    """What may follow: a column, and a reference to people, which is made last of all."""

    dependencies = LAST
    operations = [
        migrations.AddField("build", "later", models.IntegerField(null=True)),
        migrations.CreateModel(
            "Later",
            [
                ("id", models.BigAutoField(primary_key=True)),
                ("by", models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)),
            ],
        ),
    ]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """That migration is there, and not applied; afterwards it is undone."""
    load = MigrationLoader.load_disk

    def load_disk(self: MigrationLoader) -> None:
        load(self)
        assert self.disk_migrations is not None
        self.disk_migrations[APP, LATER] = Later(LATER, APP)

    monkeypatch.setattr(MigrationLoader, "load_disk", load_disk)
    yield
    MigrationExecutor(connection).migrate(LAST)


class Reader:
    """Reads the tables again and again, as pages do, and notes for which it had to wait."""

    def __init__(self) -> None:
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
            own.execute(f"SET lock_timeout = {FOR_EVER_MS}")
            while not self._stop.wait(0.01):
                for table in TABLES:
                    try:
                        own.execute(f"SELECT * FROM {table} LIMIT 20").fetchall()
                    except psycopg.errors.LockNotAvailable:
                        self.waited_for.append(table)
                self.rounds += 1


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


@pytest.mark.full
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "statement",
    ["SELECT * FROM codegen_app_build LIMIT 1", "LOCK TABLE auth_user IN ROW EXCLUSIVE MODE"],
)
def test_nobody_waits_behind_a_migration_that_waits(later: None, statement: str) -> None:
    holder = Holder(statement)
    with Reader() as reader:
        call_command("migrate", APP, LATER, verbosity=0, stderr=holder)
    # Once for this transaction, and again where autovacuum was at a table, or a reader slow.
    assert set(holder.lines) == {"A table is in use by another transaction; trying again."}
    assert (APP, LATER) in MigrationRecorder(connection).applied_migrations()
    assert reader.waited_for == []
    assert reader.rounds > 1, "it did read meanwhile"
