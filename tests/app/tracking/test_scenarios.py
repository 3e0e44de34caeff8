"""What a team of twenty meets in its first weeks, each with the alerts that it should get."""

from __future__ import annotations

import pytest

from tests.app.track_factories import channel
from tests.support.team import MACHINE, alerts, commits, history, messages, open_count, push

pytestmark = pytest.mark.django_db


def test_a_commit_that_moves_two_hundred_series_is_one_alert() -> None:
    channel()
    trunk = commits(40)
    after = MACHINE.with_code("b")
    points = [
        point
        for n in range(200)
        for point in (
            *history(f"gemm {n}", trunk[:30], 100.0),
            *history(f"gemm {n}", trunk[30:], 125.0, after),
        )
    ]
    push(points)
    [alert] = alerts()
    assert (alert.kind, alert.n_series, alert.cause) == ("regression", 200, "code")
    assert alert.revision is not None
    assert alert.revision.name == "c30"
    assert open_count() == 1
    assert messages() == [(alert.pk, "raised")]
