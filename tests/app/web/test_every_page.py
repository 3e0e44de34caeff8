"""What every page has, whoever asks: the policy, the login where one is due, the admin."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client

from codegen_app.accounts.models import AuditEntry
from codegen_app.tracking.models import RetentionPolicy
from codegen_app.tuning.models import RetuneSchedule, TuningRun
from codegen_app.workers.models import State
from tests.app import factories

pytestmark = pytest.mark.django_db


def test_the_policy_allows_nothing_inline_and_no_other_host(client: Client) -> None:
    policy = client.get("/login/").headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


@pytest.mark.full
def test_every_row_can_be_looked_at_in_the_admin_and_none_added(admin_client: Client) -> None:
    factories.candidate(factories.task())
    ours = [model for model in admin.site._registry if model._meta.app_label == "codegen_app"]
    assert len(ours) > 10
    for model in ours:
        address = f"/admin/codegen_app/{model._meta.model_name}/"
        assert admin_client.get(address).status_code == 200, address
        # Records come from the services alone; people say when runs begin, and what goes with age.
        status = 200 if model in (RetuneSchedule, RetentionPolicy) else 403
        assert admin_client.get(f"{address}add/").status_code == status, address
        if (row := model._default_manager.first()) is not None:
            assert admin_client.get(f"{address}{row.pk}/change/").status_code == 200, address


def cancel(client: Client, run: TuningRun) -> None:
    data = {"action": "cancel", "_selected_action": [run.pk]}
    client.post("/admin/codegen_app/tuningrun/", data)


def test_cancelling_in_the_admin_needs_the_permission(client: Client) -> None:
    task = factories.task()
    user = User.objects.create_user("looker", password="p", is_staff=True)
    client.force_login(user)
    cancel(client, task.run)
    task.run.refresh_from_db()
    assert task.run.state == State.QUEUED


def test_cancelling_in_the_admin_drops_what_is_left_and_is_written_down(
    admin_client: Client, admin_user: User
) -> None:
    task = factories.task()
    waiting = factories.candidate(task)
    cancel(admin_client, task.run)
    for row in (task, task.run, waiting):
        row.refresh_from_db()
        assert row.state == State.CANCELLED
    entry = AuditEntry.objects.get(action="cancel")
    assert entry.actor == admin_user
