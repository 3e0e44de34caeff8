"""What the overview says of what moved: open alerts, and the largest changes of the last days."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from codegen_app.site.pages.overview.changes import overview_changes
from codegen_app.tracking.models import Alert, AlertKind, AlertState, Change, Series
from codegen_app.tracking.pages.alerts.feed import feed_entries
from codegen_app.tracking.services.generated_history import store
from scheduler.track.generated_label import LABEL
from tests.app import factories
from tests.support import alerts
from tests.support.queries import assert_steady, queries_of

pytestmark = pytest.mark.django_db


def test_open_alerts_are_there_the_worst_first(reader: Client) -> None:
    mild, worst = alerts.alert(worst_ratio=1.05), alerts.alert()
    alerts.change(worst, 100.0, 120.0)
    largest = alerts.change(worst, 100.0, 140.0)
    alerts.change(worst, 100.0, 900.0, withdrawn_at=timezone.now())
    recovered = alerts.alert(worst_ratio=7.0, recovered_at=timezone.now())
    alerts.alert(AlertKind.IMPROVEMENT, worst_ratio=0.7)
    alerts.alert(worst_ratio=9.0, state=AlertState.FIXED)
    alerts.alert(worst_ratio=8.0, duplicate_of=worst)
    alerts.missing()
    found = overview_changes()
    assert (found.regressions, found.improvements) == (3, 1)
    assert [one.id for one in found.worst_regressions] == [worst.pk, mild.pk, recovered.pk]
    assert [(row.owner, row.regressions) for row in found.owners] == [("", 3)]
    # Its ratio comes with interval and n: those of the change that moved most and still holds.
    first, second, _ = found.worst_regressions
    assert first.worst is not None
    assert (first.worst.id, first.worst.low, first.worst.n_after) == (largest.pk, 1.4 * 0.98, 12)
    assert second.worst is None
    page = reader.get("/").content.decode()
    assert f'href="/alerts/{worst.pk}"' in page
    assert "1.372 \N{EN DASH} 1.428" in page
    assert reader.get("/overview.json").json()["changes"]["regressions"] == 3


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


def test_queries_are_as_many_whatever_there_is() -> None:
    counts = []
    for more in (1, 20):
        for _ in range(more):
            alerts.change(alerts.alert())
        counts.append([queries_of(overview_changes)])
    assert_steady(*counts, usual=[6])


def test_a_site_where_nothing_was_tracked_says_nothing_of_it(reader: Client) -> None:
    assert "Largest changes" not in reader.get("/").content.decode()


def test_what_was_generated_is_told_from_what_was_measured(reader: Client) -> None:
    """Its alert carries the label wherever it is listed, in the page and in the twin; one that was
    measured does not."""
    factories.graph(name="tiny")
    measured = alerts.alert(worst_ratio=1.2)
    alerts.change(measured, 100.0, 120.0)
    store(series=1)
    row = Series.objects.get(device_name__startswith=LABEL)
    revision = row.data.latest("at").revision
    made_up = Alert.objects.create(
        kind=AlertKind.REGRESSION, revision=revision, at=alerts.START, n_series=1
    )
    alerts.change(made_up, 100.0, 150.0, series=row)
    found = {one.id: one.generated for one in overview_changes().worst_regressions}
    assert found == {made_up.pk: True, measured.pk: False}
    page = " ".join(reader.get("/").content.decode().split())
    for one in (made_up, measured):
        cells = page.partition(f'id="overview-alert-{one.pk}"')[2].partition("</tr>")[0]
        assert ('class="tag generated"' in cells) is (one is made_up)
    twin = reader.get("/overview.json").json()["changes"]
    order = [one["generated"] for one in twin["worst_regressions"]]
    assert order == [False, True], "a measured one comes first, though it is smaller"
    assert {one["head"]["generated"] for one in twin["movers"]} == {True, False}
    listed = " ".join(reader.get("/alerts").content.decode().split())
    for one in (made_up, measured):
        cells = listed.partition(f'id="alert-{one.pk}"')[2].partition("</tr>")[0]
        assert cells.count('class="tag generated"') == (one is made_up)
    assert 'class="tag generated"' in reader.get(f"/alerts/{made_up.pk}").content.decode()
    assert 'class="tag generated"' not in reader.get(f"/alerts/{measured.pk}").content.decode()
    titles = {one.id: one.title for one in feed_entries()}
    assert "(generated)" in titles[made_up.pk]
    assert "(generated)" not in titles[measured.pk]
