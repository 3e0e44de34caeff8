"""Triggers that count every change of what pages show, in two sequences.

``kiln_pages_work`` counts what workers write all the time, ``kiln_pages_rest`` everything else.
Each changing transaction holds a lock until its end. It is shared, so that nobody waits for it: it
shows who is about to commit (``version.py``). Triggers are created after each migration, for the
tables and columns that exist then.
"""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.contrib.auth.models import Group, User
from django.db import connections, models

from codegen_app.platform.advisory_lock import LockClass

WORK, REST = "kiln_pages_work", "kiln_pages_rest"
LOCK_OF = {WORK: 1, REST: 2}  # the second number of the advisory lock
# Written by workers all the time.
_WORK_MODELS = {
    *("graph", "build", "candidate", "tuningrun", "tuningtask", "benchmarkresult"),
    *(
        "series",
        "datum",
        "daysummary",
        "revision",
        "repository",
        "conditions",
        "change",
        "rulesweep",
    ),
    *("alert", "alertevent", "delivery"),
    *("remeasurement", "remeasuredpoint", "measurementrequest", "alertrun", "modelling"),
    "torchcomparison",
}
# What no page shows, or only pages with a time limit (devices); instructions are counted in the
# transaction that marks their build.
_UNWATCHED = {
    "mnemonic",
    "instructionuse",
    "auditentry",
    "worker",
    "packing",
    "apitoken",
    "batch",
    "apirequest",
}
_SIGNS_OF_LIFE = {"lease_until", "heartbeat_at", "claim", "last_login"}

_FUNCTION = """
CREATE SEQUENCE IF NOT EXISTS {work};
CREATE SEQUENCE IF NOT EXISTS {rest};
CREATE OR REPLACE FUNCTION kiln_page_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared({locks}, TG_ARGV[1]::integer);
    PERFORM nextval(TG_ARGV[0]);
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION kiln_page_rows_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM changed) THEN
        PERFORM pg_advisory_xact_lock_shared({locks}, TG_ARGV[1]::integer);
        PERFORM nextval(TG_ARGV[0]);
    END IF;
    RETURN NULL;
END $$;
"""
# A statement may change no rows, and that must not count as a change: each trigger checks for
# changed rows. PostgreSQL has transition tables only for whole rows; if some columns do not count,
# the trigger is per row.
_INSERT_TRIGGER = """
CREATE OR REPLACE TRIGGER kiln_page_added AFTER INSERT OR TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION kiln_page_changed('{sequence}', '{lock}');
CREATE OR REPLACE TRIGGER kiln_page_deleted AFTER DELETE ON {table}
    REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION kiln_page_rows_changed('{sequence}', '{lock}');
"""
_UPDATE_TRIGGER = """
CREATE OR REPLACE TRIGGER kiln_page_changed AFTER UPDATE ON {table}
    REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION kiln_page_rows_changed('{sequence}', '{lock}');
"""
_COLUMN_TRIGGER = """
CREATE OR REPLACE TRIGGER kiln_page_changed AFTER UPDATE OF {columns} ON {table}
    FOR EACH ROW EXECUTE FUNCTION kiln_page_changed('{sequence}', '{lock}');
"""


def create_triggers(using: str = "default", **_: Any) -> None:
    """Create the triggers; safe to repeat."""
    with connections[using].cursor() as cursor:
        cursor.execute(_FUNCTION.format(work=WORK, rest=REST, locks=int(LockClass.PAGE_CHANGES)))
        for model in watched_models():
            fields = model._meta.concrete_fields
            columns = [f.column for f in fields if f.column not in _SIGNS_OF_LIFE]
            sequence = WORK if model._meta.model_name in _WORK_MODELS else REST
            changed = _UPDATE_TRIGGER if len(columns) == len(fields) else _COLUMN_TRIGGER
            cursor.execute(
                (_INSERT_TRIGGER + changed).format(
                    table=f'"{model._meta.db_table}"',
                    sequence=sequence,
                    lock=LOCK_OF[sequence],
                    columns=", ".join(f'"{column}"' for column in columns),
                )
            )


def watched_models() -> list[type[models.Model]]:
    """Return the models whose changes are counted: all of ours but a few, accounts and their
    rights."""
    all_models = apps.get_app_config("codegen_app").get_models(include_auto_created=True)
    watched = [model for model in all_models if model._meta.model_name not in _UNWATCHED]
    rights = [User.groups.through, User.user_permissions.through, Group.permissions.through]
    return [*watched, User, *rights]
