"""Branches while others write: no point keeps the mark of an earlier trunk."""

from __future__ import annotations

import time
from threading import Thread

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from codegen_app.tracking.models import Datum, Repository, Series, Source
from codegen_app.tracking.services import alert_pipeline, point_storage, trunk
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
