"""The generated team: each part of the tracking has something to show, and all of it says that it
was generated."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from codegen_app.tracking.models import Alert, Budget, Datum, PatternRule, Revision, Series, Source
from codegen_app.tracking.queries.budget_values import budget_rows
from codegen_app.tracking.services import alert_pipeline, generated_team
from scheduler.track.generated_label import LABEL
from scheduler.track.generated_team import BRANCH, KERNELS

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(client: Client) -> User:
    """Who owns the team's series, signed in."""
    user = User.objects.create_superuser("ada")
    client.force_login(user)
    assert generated_team.store(user, timezone.now()).points
    alert_pipeline.process_pending()
    return user


def test_its_alerts_are_a_machine_and_improvements_of_its_owner(ada: User, client: Client) -> None:
    alerts = [
        (row.kind, row.n_series, row.assignee, row.is_generated)
        for row in Alert.objects.order_by("kind", "pk").select_related("assignee")
    ]
    assert alerts == [("improvement", 2, ada, True)] * 3 + [("machine", 5, None, True)]
    assert "are not compared" not in client.get("/").content.decode(), "no machine of this site"
    assert not Series.objects.filter(stale_at__isnull=False).exists(), "no data is missing"


def test_a_branch_is_slower_in_one_series(ada: User, client: Client) -> None:
    sides = urlencode({"before": "base:", "after": f"branch:{BRANCH}"})
    compared = client.get(f"/compare/revisions.json?{sides}").json()
    results = {row["row"]["problem"]: row["row"]["status"] for row in compared["rows"]}
    assert [name for name, result in results.items() if result == "slower"] == [f"{KERNELS} 3"]
    assert set(results.values()) == {"slower", "same"}


def test_a_budget_comes_nearer_to_its_limit(ada: User) -> None:
    (row,) = budget_rows(Budget.objects.select_related("changed_by"))
    values = [point.value for point in row.history]
    assert (row.met, row.generated, row.n_series) == (False, True, 6)
    assert values == sorted(values, reverse=True)
    assert values[0] > 1.15 * values[-1] > 1.15 * row.limit


def test_it_is_stored_once_and_labelled(ada: User) -> None:
    assert generated_team.store(ada, timezone.now()).points == 0
    assert PatternRule.objects.get().reason.startswith(LABEL)
    assert Budget.objects.get().name.startswith(LABEL)
    assert set(Datum.objects.values_list("source", flat=True)) == {Source.GENERATED}
    assert all(row.is_generated for row in (*Series.objects.all(), *Revision.objects.all()))
