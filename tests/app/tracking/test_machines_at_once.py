"""Machines that are back while other workers set points aside."""

from __future__ import annotations

import time
from threading import Thread

import pytest
from django.db import connection, transaction

from codegen_app.tracking.alerting import machine_states
from codegen_app.tracking.detector import set_aside
from codegen_app.tracking.models import Series, Source
from codegen_app.tracking.services import alert_pipeline, detection, point_storage
from tests.app.waiting import somebody_waits
from tests.support import team
from tests.support.patience import PATIENCE_S

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.full]
COMMITS = team.commits(30)


def measured(first: int, last: int, value: float) -> list[team.Point]:
    return [
        point for n in range(4) for point in team.history(f"gemm {n}", COMMITS[first:last], value)
    ]


def test_an_alert_is_closed_while_new_points_are_set_aside() -> None:
    team.push(measured(0, 20, 100.0))
    team.push(measured(20, 24, 130.0))
    point_storage.store(measured(24, 27, 100.0), Source.API)
    assert detection.detect_changes() == 4
    point_storage.store(measured(27, 28, 100.0), Source.API)

    def close() -> None:
        try:
            machine_states.update_alerts()
        finally:
            connection.close()

    closing = Thread(target=close)
    with transaction.atomic():
        set_aside.lock_series(Series.objects.values_list("pk", flat=True))
        closing.start()
        while not somebody_waits():
            assert closing.is_alive(), "it did not wait for the series"
            time.sleep(0.005)
        assert detection.detect_changes() == 4
    closing.join(PATIENCE_S)
    assert not closing.is_alive()
    alert_pipeline.process_pending()
    [alert] = team.alerts()
    assert (alert.state, alert.recovered_at) == ("fixed", COMMITS[24].at)
    assert set(Series.objects.values_list("withdrawn", flat=True)) == {4}
