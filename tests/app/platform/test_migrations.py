"""Migrations: which databases are upgraded, and that nobody waits behind one that waits."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
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
from codegen_app.tracking.sql.views import create_views, drop_views
from codegen_app.web.pagecache.triggers import create_triggers

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
        drop_views(plan=(SQUASHED,))
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


HISTORIES = """
INSERT INTO codegen_app_conditions (digest, facts) VALUES ('of all', '{}');
INSERT INTO codegen_app_revision (repository, name, branch, at)
    SELECT 'https://forge.example/a', 'r' || day,
        CASE WHEN day % 10 = 0 THEN 'topic' ELSE 'main' END,
        timestamptz '2026-01-01' + day * interval '1 day'
    FROM generate_series(1, 100) AS day;
INSERT INTO codegen_app_series (digest, problem, sizes, target, device_name, toolchain, metric,
        unit, better, points, created_at)
    SELECT 's' || n, 'mm ' || n, '{}', 'sm_90', 'NVIDIA H200', 'nvcc', 'time', 'ns', 'lower', 100,
        now()
    FROM generate_series(1, 200) AS n;
INSERT INTO codegen_app_datum (series_id, at, measured_at, value, n, revision_id, conditions_id,
        source)
    SELECT series.id, revision.at, revision.at, 100, 1, revision.id, conditions.id, 'api'
    FROM codegen_app_revision AS revision, codegen_app_series AS series,
        codegen_app_conditions AS conditions
    ORDER BY revision.at;
INSERT INTO codegen_app_alert (kind, state, revision_id, n_series, cause, at, created_at,
        changed_at)
    SELECT 'regression', 'new', id, 200, 'environment', at, now(), now()
    FROM codegen_app_revision WHERE name = 'r66';
INSERT INTO codegen_app_change (series_id, datum_id, at, revision_id, previous_id, before, after,
        n_before, n_after, errors, worse, cause, rule, explanation, found_at, alert_id,
        explained_at, raised_at)
    SELECT datum.series_id, datum.id, datum.at, datum.revision_id, earlier.id, 100, 110, 30, 10, 9,
        TRUE, 'environment', '', '{}', now(), alert.id, now(), now()
    FROM codegen_app_alert AS alert
    JOIN codegen_app_datum AS datum ON datum.revision_id = alert.revision_id
    JOIN codegen_app_revision AS earlier ON earlier.name = 'r65';
ANALYZE codegen_app_datum, codegen_app_change;
"""


def read(statement: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


POINTS = """
SELECT id, series_id, at, measured_at, value, n, revision_id, conditions_id, batch_id, source
FROM codegen_app_datum ORDER BY id
"""


@pytest.mark.full
@pytest.mark.django_db(transaction=True)
def test_a_database_with_histories_is_upgraded_with_its_points() -> None:
    drop_views(plan=(SQUASHED,))
    MigrationExecutor(connection).migrate([SQUASHED])
    try:
        with connection.cursor() as cursor:
            cursor.execute(HISTORIES)
        before = read(POINTS)
        assert len(before) == 20_000
        MigrationExecutor(connection).migrate(LAST)
        assert read(POINTS) == before
        assert read(
            "SELECT change.since = timestamptz '2026-01-01' + interval '65 days', revision.name"
            " FROM codegen_app_change AS change JOIN codegen_app_revision AS revision"
            " ON revision.id = good_revision_id GROUP BY 1, 2"
        ) == [(True, "r65")]
        assert read(
            "SELECT since < at, cause_class FROM codegen_app_alert"
            " WHERE good_revision_id IS NOT NULL"
        ) == [(True, "environment")]
        assert read("SELECT count(*) FROM codegen_app_revision WHERE NOT is_trunk") == [(10,)]
        # And back, with the rows that the earlier version knows.
        MigrationExecutor(connection).migrate([SQUASHED])
        assert read(POINTS) == before
    finally:
        MigrationExecutor(connection).migrate(LAST)
        create_triggers()
        create_views()


@pytest.mark.django_db
def test_windows_of_earlier_changes_are_read_by_the_index_of_histories() -> None:
    """Of ten million points and seventy thousand changes: nobody waits for as many scans."""
    windows = import_module("codegen_app.migrations.0056_alert_windows")._WINDOWS
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("EXPLAIN " + windows.partition(";")[0])
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "datum_history" in plan
