"""The audit log: it cannot be changed, and does not grow for ever."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import ProgrammingError, connection, transaction
from django.test import Client
from django.utils import timezone

from codegen_app.accounts import audit
from codegen_app.accounts.models import AuditEntry
from tests.app import factories

pytestmark = pytest.mark.django_db


def note_of_before(what: str, days: int) -> None:
    """As if it had been noted so many days ago."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO codegen_app_auditentry (at, actor_name, user_agent, action, what, why)"
            " VALUES (%s, '', '', 'tune', %s, '')",
            [timezone.now() - timedelta(days=days), what],
        )


def test_entries_are_neither_changed_nor_deleted() -> None:
    audit.note(None, "tune", "run 1")
    with pytest.raises(ProgrammingError), transaction.atomic():
        AuditEntry.objects.update(what="run 2")
    with pytest.raises(ProgrammingError), transaction.atomic():
        AuditEntry.objects.all().delete()
    assert AuditEntry.objects.get().what == "run 1"


def test_an_entry_outlives_the_account() -> None:
    user = User.objects.create_user("ada")
    audit.note(user, "tune", "run 1")
    user.delete()
    entry = AuditEntry.objects.get(action="tune")
    assert entry.actor is None
    assert entry.actor_name == "ada"


def test_old_entries_go_and_others_stay() -> None:
    note_of_before("old", settings.AUDIT_DAYS + 1)
    note_of_before("new", settings.AUDIT_DAYS - 1)
    assert audit.delete_old() == 1
    assert [entry.what for entry in AuditEntry.objects.all()] == ["new"]


def test_an_entry_is_one_line_that_prints() -> None:
    audit.note(None, "tune", "run\n2026 forged \u202e\x1b[2J", "why\r\nso")
    entry = AuditEntry.objects.get()
    assert entry.what == r"run\n2026 forged \u202e\x1b[2J"
    assert entry.why == r"why\r\nso"


def test_the_admin_shows_entries_and_changes_none(admin_client: Client) -> None:
    audit.note(None, "tune", "run 1")
    entry = AuditEntry.objects.get(action="tune")
    address = f"/admin/codegen_app/auditentry/{entry.pk}"
    assert b"run 1" in admin_client.get("/admin/codegen_app/auditentry/").content
    assert admin_client.post(f"{address}/change/", {"what": "x"}).status_code == 403
    assert admin_client.post(f"{address}/delete/", {"post": "yes"}).status_code == 403


def test_what_is_deleted_in_the_admin_is_noted(admin_client: Client, admin_user: User) -> None:
    graph = factories.graph()
    admin_client.post(f"/admin/codegen_app/graph/{graph.pk}/delete/", {"post": "yes"})
    entry = AuditEntry.objects.get(action="delete")
    assert entry.actor == admin_user
    assert entry.address == "127.0.0.1"
