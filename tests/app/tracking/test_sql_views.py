"""Reading by SQL: views that say what the docs say, and a role that can read nothing else."""

from __future__ import annotations

import json
import re
import uuid
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from psycopg import errors

from codegen_app.accounts.models import AuditEntry
from codegen_app.tracking.models import Change, Datum, Revision, Withdrawal
from codegen_app.tracking.sql import roles
from codegen_app.tracking.sql.definitions import SCHEMA, views
from codegen_app.tracking.sql.views import create_views, drop_views
from scheduler.errors import UserError
from tests.support import alerts as made

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[3]
NAMES = [view.name for view in views()]
DASHBOARD = ROOT / "deploy" / "grafana" / "kiln.json"


def rows(statement: str, *values: Any) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        assert cursor.description is not None
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def become(name: str) -> None:
    """Act as that role until the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL ROLE {name}")
        cursor.execute(f"SET LOCAL search_path = {SCHEMA}")


def test_the_docs_name_every_column_with_its_meaning() -> None:
    text = (ROOT / "docs" / "tracking.md").read_text()
    for view in views():
        section = text.split(f"#### `{SCHEMA}.{view.name}`\n")[1].split("\n#")[0]
        about, _, table = section.strip().partition("\n\n")
        assert about == view.about
        listed = re.findall(r"^\| `(\w+)` \| (.+) \|$", table, re.MULTILINE)
        assert listed == [(column.name, column.meaning) for column in view.columns], view.name


def test_the_database_describes_the_columns_itself() -> None:
    found = rows(
        "SELECT c.relname, a.attname, col_description(c.oid, a.attnum) AS meaning"
        " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0"
        " WHERE c.relnamespace = %s::regnamespace ORDER BY c.oid, a.attnum",
        SCHEMA,
    )
    assert [tuple(row.values()) for row in found] == [
        (view.name, column.name, column.meaning) for view in views() for column in view.columns
    ]


def test_series_and_points_are_those_of_the_site() -> None:
    series = made.series([100.0, 90.0, 110.0])
    other = made.series([1.0], device="generated device", target="cpu")
    datum = Datum.objects.filter(series=series).earliest("at")
    Withdrawal.objects.create(datum=datum, series=series, reason="x")
    [row] = rows(f"SELECT * FROM {SCHEMA}.series WHERE id = %s", series.pk)
    assert (row["problem"], row["device"], row["unit"]) == (series.problem, "NVIDIA H200", "us")
    assert json.loads(row["sizes"]) == {"m": 4096, "n": 4096}
    assert (row["points"], row["muted"], row["owner"]) == (3, False, None)
    assert (row["generated"], row["emulated"]) == (False, False)
    [row] = rows(f"SELECT * FROM {SCHEMA}.series WHERE id = %s", other.pk)
    assert (row["generated"], row["emulated"]) == (True, True)
    points = rows(f"SELECT * FROM {SCHEMA}.points WHERE series = %s ORDER BY at", series.pk)
    assert [row["value"] for row in points] == [100.0, 90.0, 110.0]
    assert [row["withdrawn"] for row in points] == [True, False, False]
    assert not any(row["set_aside"] for row in points)
    assert [row["revision"] for row in points] == ["r0", "r1", "r2"]
    assert {row["is_trunk"] for row in points} == {True}


def test_levels_begin_and_end_with_changes() -> None:
    series = made.series([100.0] * 3)
    first, second, third = Datum.objects.filter(series=series).order_by("at")
    for datum, before, after in ((second, 100.0, 110.0), (third, 110.0, 90.0)):
        change = made.change(None, before, after, series=series)
        Change.objects.filter(pk=change.pk).update(datum=datum, at=datum.at)
    gone = made.change(None, 90.0, 50.0)
    Change.objects.filter(pk=gone.pk).update(withdrawn_at=gone.at)
    levels = rows(f"SELECT * FROM {SCHEMA}.levels ORDER BY series, begins_at")
    assert [(row["begins_at"], row["ends_at"], row["level"]) for row in levels] == [
        (first.at, second.at, 100.0),
        (second.at, third.at, 110.0),
        (third.at, None, 90.0),
    ]


def test_changes_and_alerts_are_those_of_the_site() -> None:
    ada = User.objects.create_user("ada")
    alert = made.alert(assignee=ada)
    change = made.change(alert, 100.0, 130.0, cause="code")
    silent = made.missing()
    [row] = rows(f"SELECT * FROM {SCHEMA}.changes")
    assert (row["id"], row["series"], row["alert"]) == (change.pk, change.series_id, alert.pk)
    assert (row["ratio"], row["worse"], row["cause"]) == (1.3, True, "code")
    assert row["ratio_low"] < 1.3 < row["ratio_high"]
    first, second = rows(f"SELECT * FROM {SCHEMA}.alerts ORDER BY id")
    assert (first["id"], first["kind"], first["is_open"]) == (alert.pk, "regression", True)
    assert (first["assignee"], first["worst_ratio"], first["generated"]) == ("ada", 1.3, False)
    assert alert.revision is not None
    assert (first["revision"], first["good_revision"]) == (alert.revision.name, None)
    assert (second["kind"], second["series"]) == ("missing", silent.series_id)
    assert {row["name"] for row in rows(f"SELECT * FROM {SCHEMA}.revisions")} == set(
        Revision.objects.values_list("name", flat=True)
    )


def test_the_role_reads_every_view_and_nothing_else() -> None:
    User.objects.create_user("ada")
    series = made.series([1.0])
    roles.create_role("kiln_test_reader")
    become("kiln_test_reader")
    for name in NAMES:
        rows(f"SELECT * FROM {name}")
    assert rows("SELECT id FROM series") == [{"id": series.pk}]
    for statement in (
        "SELECT * FROM public.auth_user",
        "SELECT * FROM public.codegen_app_apitoken",
        "SELECT * FROM public.codegen_app_series",
        "SELECT * FROM public.codegen_app_channel",
        "UPDATE kiln_read.revisions SET name = 'x'",
        "DELETE FROM kiln_read.revisions",
        "CREATE TABLE kiln_read.mine (id integer)",
        "CREATE TABLE public.mine (id integer)",
        "SELECT nextval('public.codegen_app_series_id_seq')",
        "CREATE ROLE another",
        "COPY (SELECT 1) TO PROGRAM 'id'",
        "SELECT pg_read_file('/etc/passwd')",
    ):
        with pytest.raises(DatabaseError, match=r"permission denied|must be"), transaction.atomic():
            rows(statement)


def test_the_roles_sessions_are_read_only_and_limited() -> None:
    roles.create_role("kiln_test_reader")
    [row] = rows(
        "SELECT rolconnlimit, rolsuper, rolcanlogin, rolconfig FROM pg_roles"
        " WHERE rolname = 'kiln_test_reader'"
    )
    assert (row["rolsuper"], row["rolcanlogin"]) == (False, True)
    assert 0 < row["rolconnlimit"] <= 50
    settings = dict(setting.split("=") for setting in row["rolconfig"])
    assert settings["default_transaction_read_only"] == "on"
    assert settings["statement_timeout"] == "30s"
    assert settings["search_path"] == SCHEMA


def test_views_of_the_next_migration_are_readable_too() -> None:
    roles.create_role("kiln_test_reader")
    drop_views(plan=["a migration"])
    assert not rows("SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace", SCHEMA)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE codegen_app_series ALTER COLUMN metric TYPE varchar(90)")
    create_views()
    become("kiln_test_reader")
    assert rows("SELECT * FROM series") == []


def test_views_stay_where_nothing_is_migrated() -> None:
    before = rows("SELECT oid FROM pg_class WHERE relnamespace = %s::regnamespace", SCHEMA)
    drop_views(plan=[])
    create_views()
    assert rows("SELECT oid FROM pg_class WHERE relnamespace = %s::regnamespace", SCHEMA) == before
    assert len(before) == len(NAMES)


def test_the_command_prints_the_connection_once_and_drops_the_role() -> None:
    said, noted = StringIO(), StringIO()
    call_command("sql_role", name="kiln_test_reader", stdout=said, stderr=noted)
    address = urlsplit(said.getvalue().strip())
    assert (address.scheme, address.username) == ("postgresql", "kiln_test_reader")
    assert len(address.password or "") >= 32
    assert address.path == f"/{connection.settings_dict['NAME']}"
    if host := parse_qs(address.query).get("host"):
        assert host == [connection.settings_dict["HOST"]]
        assert "socket only" in noted.getvalue()
    assert "Backups do not contain the role" in noted.getvalue()
    for entry in AuditEntry.objects.filter(action="create SQL role"):
        assert entry.what == "kiln_test_reader"
        assert (address.password or "") not in f"{entry.what}{entry.why}"
    listed = StringIO()
    call_command("sql_role", stdout=listed)
    assert "kiln_test_reader" in listed.getvalue().splitlines()
    call_command("sql_role", name="kiln_test_reader", drop=True, stdout=StringIO())
    assert not rows("SELECT FROM pg_roles WHERE rolname = 'kiln_test_reader'")
    assert AuditEntry.objects.filter(action="drop SQL role").exists()


@pytest.mark.django_db(transaction=True)
def test_the_printed_connection_string_connects() -> None:
    made.series([1.0])
    name = f"kiln_test_{uuid.uuid4().hex[:12]}"
    address = roles.create_role(name)
    try:
        with psycopg.connect(address, autocommit=True) as session:
            assert session.execute("SELECT problem FROM series").fetchall()
            assert session.execute("SHOW statement_timeout").fetchone() == ("30s",)
            assert session.execute("SHOW search_path").fetchone() == (SCHEMA,)
            with pytest.raises(errors.ReadOnlySqlTransaction):
                session.execute("CREATE TEMPORARY TABLE mine (n int)")
            session.execute("SET default_transaction_read_only = off")
            with pytest.raises(errors.InsufficientPrivilege):
                session.execute("SELECT * FROM public.codegen_app_apitoken")
    finally:
        roles.drop_role(name)


def test_a_connection_string_quotes_what_a_url_cannot_contain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where = {"host": "::1", "port": 5433, "dbname": "kiln/site 1"}
    monkeypatch.setattr(roles.transport, "parameters", lambda: where)
    address = roles._connection_string("grafana", "secret")
    known = psycopg.conninfo.conninfo_to_dict(address)
    assert (known["host"], known["port"], known["dbname"]) == ("::1", "5433", "kiln/site 1")


@pytest.mark.parametrize("name", ["", "Grafana", "a b", "pg_reader", "x" * 32, "a;b", "1a"])
def test_a_name_that_postgresql_would_change_is_refused(name: str) -> None:
    with pytest.raises(CommandError, match="lower-case letter"):
        call_command("sql_role", name=name, stdout=StringIO(), stderr=StringIO())


def test_a_role_of_others_is_neither_replaced_nor_dropped() -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE kiln_test_other")
    with pytest.raises(UserError, match="exists"):
        roles.create_role("kiln_test_other")
    with pytest.raises(UserError, match="not one of Kiln's"):
        roles.drop_role("kiln_test_other")
    with pytest.raises(UserError, match="there is no role"):
        roles.drop_role("kiln_test_none")


def test_an_account_without_the_right_is_told_how_to_mend_it() -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE kiln_test_weak")
        cursor.execute("SET LOCAL ROLE kiln_test_weak")
    with pytest.raises(UserError, match="CREATEROLE"):
        roles.create_role("kiln_test_reader")


def test_the_dashboards_sql_runs_as_the_role() -> None:
    """Grafana's variables and macros are replaced as Grafana does."""
    alert = made.alert()
    series = made.series([100.0, 101.0, 130.0])
    change = made.change(alert, 100.0, 130.0, series=series)
    branch = Datum.objects.filter(series=series).order_by("at")[1]
    Datum.objects.filter(pk=branch.pk).update(is_trunk=False)
    start, end = (change.at + timedelta(days=days) for days in (-400, 400))
    document = json.loads(DASHBOARD.read_text())
    statements = {
        panel["title"]: target["rawSql"]
        for panel in document["panels"]
        for target in panel.get("targets", ())
    }
    statements |= {
        one["name"]: one["query"]
        for one in document["templating"]["list"]
        if one["type"] == "query"
    }
    statements |= {
        one["name"]: one["target"]["rawSql"] if "target" in one else one["rawQuery"]
        for one in document["annotations"]["list"]
        if not one.get("builtIn")
    }
    assert len(statements) >= 5
    roles.create_role("kiln_test_reader")
    become("kiln_test_reader")
    variables = {one["name"] for one in document["templating"]["list"]}
    for title, text in statements.items():
        filled = re.sub(
            r"\$__timeFilter\((\w+(?:\.\w+)?)\)",
            rf"\1 BETWEEN '{start.isoformat()}' AND '{end.isoformat()}'",
            text,
        )
        filled = filled.replace("$__timeFrom()", f"'{start.isoformat()}'")
        filled = filled.replace("$__timeTo()", f"'{end.isoformat()}'")
        for name in variables:
            value = str(change.series_id) if name == "series" else "%"
            filled = filled.replace(f"${{{name}:sqlstring}}", f"'{value}'")
            filled = filled.replace(f"${name}", value)
        assert "$" not in filled, title
        found = rows(filled.replace("%", "%%"))
        assert found, title
