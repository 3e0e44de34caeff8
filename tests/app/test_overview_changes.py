"""What the overview says of what moved: open alerts, and the largest changes of the last days."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from codegen_app.models import AlertKind, AlertState, Change
from codegen_app.selectors.pages.overview_changes import overview_changes
from tests.support import alerts

pytestmark = pytest.mark.django_db


def test_open_alerts_are_there_the_worst_first(reader: Client) -> None:
    mild, worst = alerts.alert(worst_ratio=1.05), alerts.alert()
    alerts.change(worst, 100.0, 120.0)
    largest = alerts.change(worst, 100.0, 140.0)
    alerts.change(worst, 100.0, 900.0, withdrawn_at=timezone.now())
    better = alerts.alert(AlertKind.IMPROVEMENT, worst_ratio=0.7)
    alerts.alert(worst_ratio=9.0, state=AlertState.FIXED)
    alerts.alert(worst_ratio=8.0, duplicate_of=worst)
    alerts.missing()
    found = overview_changes()
    assert (found.regressions, found.improvements) == (2, 1)
    assert [one.id for one in found.worst_regressions] == [worst.pk, mild.pk]
    assert [one.id for one in found.best_improvements] == [better.pk]
    # Its ratio comes with interval and n: those of the change that moved most and still holds.
    first, second = found.worst_regressions
    assert first.worst is not None
    assert (first.worst.id, first.worst.low, first.worst.n_after) == (largest.pk, 1.4 * 0.98, 12)
    assert second.worst is None
    page = reader.get("/").content.decode()
    assert f'href="/alerts/{worst.pk}"' in page
    assert "1.372 \N{EN DASH} 1.428" in page
    assert reader.get("/overview.json").json()["changes"]["regressions"] == 2


def test_movers_are_the_largest_of_the_last_days_in_either_direction(reader: Client) -> None:
    small = alerts.change(None, 100.0, 103.0)
    faster = alerts.change(None, 100.0, 50.0)
    slower = alerts.change(None, 100.0, 130.0)
    alerts.change(None, 100.0, 900.0, withdrawn_at=timezone.now())
    old = alerts.change(None, 100.0, 800.0)
    Change.objects.filter(pk=old.pk).update(found_at=timezone.now() - timedelta(days=8))
    movers = overview_changes().movers
    assert [one.change.id for one in movers] == [faster.pk, slower.pk, small.pk]
    page = reader.get("/").content.decode()
    for one in movers:
        assert f'href="{one.change.url}"' in page
        assert one.head.problem in page


def test_queries_are_as_many_whatever_there_is(django_assert_num_queries: Any) -> None:
    for number in (0, 1, 20):
        for _ in range(number):
            alerts.change(alerts.alert())
        with django_assert_num_queries(5):
            overview_changes()


def test_a_site_where_nothing_was_tracked_says_nothing_of_it(reader: Client) -> None:
    assert "Biggest movers" not in reader.get("/").content.decode()
