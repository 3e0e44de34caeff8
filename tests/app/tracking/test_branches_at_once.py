"""Branches while others write: no point keeps the mark of an earlier trunk."""

from __future__ import annotations

import time
from datetime import timedelta
from threading import Thread

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone

from codegen_app.tracking.models import Datum, Repository, Revision, Series, Source
from codegen_app.tracking.services import (
    alert_pipeline,
    branch_retention,
    point_storage,
    trunk,
)
from tests.app.waiting import somebody_waits
from tests.support.patience import PATIENCE_S
from tests.support.team import commits, history, push

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.full]


def test_a_trunk_that_is_set_waits_for_an_upload_and_marks_its_points() -> None:
    push(history("gemm", commits(3, branch="develop"), 100.0))
    repository, admin = Repository.objects.get(), User.objects.create_superuser("root")

    def set_trunk() -> None:
        try:
            trunk.set_default_branch(repository.pk, "develop", admin)
        finally:
            connection.close()

    setting = Thread(target=set_trunk)
    with transaction.atomic():
        later = commits(2, prefix="later", branch="develop")
        point_storage.store(history("gemm", later, 100.0), Source.API)
        setting.start()
        while not somebody_waits():
            assert setting.is_alive(), "it did not wait for the upload"
            time.sleep(0.005)
    setting.join(PATIENCE_S)
    assert not setting.is_alive()
    alert_pipeline.process_pending()
    assert not Datum.objects.filter(is_trunk=False).exists()
    series = Series.objects.get()
    assert (series.points, series.branch_points) == (5, 0)


def test_retention_and_an_upload_lock_series_in_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """An upload holds one series when the points of branches are deleted; then it needs another."""
    monkeypatch.setattr(branch_retention, "STEP_REVISIONS", 1)
    first, second = commits(2, prefix="o", branch="old")
    push(history("early", commits(1), 100.0))
    push(history("late", [first], 100.0))  # deleted before that of the series with the lower key
    push(history("early", [second], 100.0))
    Revision.objects.filter(branch="old").update(last_stored_at=timezone.now() - timedelta(days=31))
    early, late = Series.objects.order_by("pk")
    assert (early.problem, late.problem) == ("early", "late")

    def delete() -> None:
        try:
            with transaction.atomic():
                branch_retention.delete_points(timezone.now() - timedelta(days=30), 100)
        finally:
            connection.close()

    deletion = Thread(target=delete)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_current_xact_id()")
        Series.objects.select_for_update().get(pk=early.pk)
        deletion.start()
        while not somebody_waits():
            assert deletion.is_alive(), "it did not wait for the upload"
            time.sleep(0.005)
        Series.objects.select_for_update(nowait=True).get(pk=late.pk)
    deletion.join(PATIENCE_S)
    assert not deletion.is_alive()
    assert not Datum.objects.filter(is_trunk=False).exists()
