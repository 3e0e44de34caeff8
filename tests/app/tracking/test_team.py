"""The team page: one person's alerts and series, and budgets with their values over time."""

from __future__ import annotations

from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from codegen_app.accounts.models import AuditEntry
from codegen_app.tracking.models import Baseline, Budget, Series
from codegen_app.tracking.pages.team.chart import burn_down
from codegen_app.tracking.pages.team.query import budget_page, team_page
from codegen_app.tracking.queries import budget_values
from codegen_app.tracking.queries.budget_values import BudgetRow, budget_rows
from codegen_app.tracking.services import alert_pipeline
from codegen_app.tracking.services.withdrawals import withdraw
from tests.app.tracking.test_rules import history, person, rule
from tests.support.alerts import START, alert
from tests.support.queries import assert_steady, queries_of

pytestmark = pytest.mark.django_db
NOW = START + timedelta(days=70)


def value_of(**fields: Any) -> BudgetRow:
    defaults = {"name": f"budget {Budget.objects.count()}", "limit": 110.0, "unit": "ns"}
    row = Budget.objects.create(**{"statistic": "p50", **defaults} | fields)
    [found] = budget_rows([row], NOW)
    return found


def test_a_budget_is_a_statistic_of_the_levels_of_its_series() -> None:
    for number, level in enumerate((100.0, 110.0, 400.0)):
        history([level] * 20, problem=f"gemm {number}")
    history([1.0] * 20, problem="conv")
    alert_pipeline.process_pending()
    for statistic, value in (("p50", 110.01), ("p95", 371.01), ("max", 400.01)):
        found = value_of(problem=["gemm*"], statistic=statistic)
        assert found.value == pytest.approx(value)
    geomean = value_of(problem=["gemm*"], statistic="geomean", limit=0.2, unit="us")
    assert geomean.value == pytest.approx((100.01 * 110.01 * 400.01) ** (1 / 3) / 1000)
    assert (geomean.met, geomean.n_series, geomean.devices) == (True, 3, ("NVIDIA H200",))
    missed = value_of(problem=["gemm*"], limit=100.0)
    assert (missed.met, missed.over) == (False, pytest.approx(0.1001))


def test_a_level_is_robust_and_begins_at_the_last_change() -> None:
    row = history([200.0] * 30 + [100.0] * 30 + [900.0])
    alert_pipeline.process_pending()
    assert value_of().value == pytest.approx(100.01)
    Baseline.objects.create(series=row, at=START + timedelta(days=60), reason="a new method")
    assert value_of().value == pytest.approx(900.0)
    withdraw(row.data.latest("at"), "another tenant", person("ada"))
    found = value_of()
    assert (found.value, found.without_level) == (None, 1)


def test_the_value_over_time_follows_the_changes() -> None:
    history([200.0] * 30 + [100.0] * 30, problem="gemm a")
    history([100.0] * 40, problem="gemm b")
    alert_pipeline.process_pending()
    found = value_of(statistic="max", limit=120.0, due=(NOW + timedelta(days=30)).date())
    assert found.history[0].at >= START, "nothing before the first point"
    values = [(point.value, point.n) for point in found.history]
    before = [
        pair
        for pair, point in zip(values, found.history, strict=True)
        if point.at < START + timedelta(days=30)
    ]
    assert {round(value) for value, _ in before} == {200}
    assert {round(value) for value, _ in values[len(before) :]} == {100}
    assert {n for _, n in values} == {2}
    assert found.history[-1].value == found.value
    chart = burn_down(found)
    assert chart["due_x"] is not None and len(chart["points"]) == len(values)  # type: ignore[arg-type]


def test_what_has_no_value_says_why() -> None:
    assert value_of(problem=["none"]).reason == "no series matches"
    history([5.0] * 3, problem="rate", unit="GB/s", metric="bandwidth")
    history([5.0] * 3, problem="time")
    found = value_of(problem=["rate"])
    assert (found.value, found.met) == (None, None)
    assert found.reason == "none of 1 matching series has a level in ns"
    both = value_of(problem=["rate", "time"])
    assert (both.n_series, both.other_units) == (1, 1)
    Series.objects.filter(problem="rate").update(unit="ns", better="higher")
    assert "higher in others" in value_of().reason


def test_times_of_an_emulation_and_of_a_device_are_not_mixed() -> None:
    history([100.0] * 3, problem="a", target="gfx942")
    history([100.0] * 3, problem="b", target="cpu")
    assert [value_of(problem=[name]).emulated for name in ("a", "b")] == [False, True]
    both = value_of()
    assert (both.value, both.history, both.emulated) == (None, (), True)
    assert both.reason == "some of the series are of an emulation, others of a device"


def test_the_value_before_a_baseline_is_that_of_changes_there() -> None:
    row = history([200.0] * 20 + [100.0] * 20 + [50.0] * 20)
    Baseline.objects.create(series=row, at=START + timedelta(days=40), reason="a new method")
    alert_pipeline.process_pending()
    points = {round((point.at - START).days / 7): point.value for point in value_of().history}
    assert [round(points[week]) for week in (1, 4, 7)] == [200, 100, 50]
    other = history([200.0] * 40 + [50.0] * 20, problem="without a change")
    Baseline.objects.create(series=other, at=START + timedelta(days=40), reason="a new method")
    alert_pipeline.process_pending()
    found = value_of(problem=["without*"])
    assert found.history[0].at >= START + timedelta(days=40), "no change tells the level before"


def test_more_is_better_turns_the_comparison() -> None:
    history([50.0] * 3, unit="GB/s", metric="bandwidth")
    Series.objects.update(better="higher")
    found = value_of(limit=60.0, unit="GB/s")
    assert (found.met, found.over) == (False, pytest.approx(1 - 50.01 / 60, abs=1e-3))


def test_too_many_series_are_refused_and_silent_ones_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history([100.0] * 3, problem="old")
    history([100.0] * 65, problem="new")
    found = value_of()
    assert [head.problem for head in found.silent] == ["old"]
    assert (found.n_silent, found.n_series) == (1, 2)
    monkeypatch.setattr(budget_values, "MAX_SERIES", 1)
    assert value_of().reason == "2 series match, more than 1: narrow the patterns"


def test_the_team_page_has_ones_alerts_series_and_all_budgets(tuner: Client) -> None:
    me = User.objects.get(username="tuner")
    mine, done = alert(assignee=me), alert(assignee=me, state="fixed")
    other = alert(assignee=person("ada"))
    row = history([100.0] * 3)
    rule(me, owner=me)
    alert_pipeline.process_pending()
    value_of(name="attention on H200", limit=1.0)
    page = tuner.get("/team.json").json()
    assert [one["id"] for one in page["alerts"]] == [mine.pk]
    assert [one["head"]["id"] for one in page["series"]] == [row.pk]
    assert [one["name"] for one in page["budgets"]] == ["attention on H200"]
    text = unescape(tuner.get("/team").content.decode())
    assert "1 of 1 budgets not met" in " ".join(text.split())
    adas = tuner.get("/team.json?person=ada").json()
    assert [one["id"] for one in adas["alerts"]] == [other.pk]
    assert adas["series"] == []
    assert done.pk not in [one["id"] for one in page["alerts"]]
    assert "mallory has no account" in tuner.get("/team?person=mallory").content.decode()
    owned = tuner.get("/series.json?owner=tuner").json()
    assert [one["head"]["id"] for one in owned["rows"]] == [row.pk]
    assert tuner.get("/series.json?owner=ada").json()["rows"] == []


BUDGET = {"name": "gemm", "statistic": "p50", "limit": "250", "unit": "us", "problem": "gemm*"}


def test_a_budget_is_added_changed_and_removed_on_its_pages(tuner: Client) -> None:
    history([100.0] * 3)
    answer = tuner.post("/budgets", {**BUDGET, "due": "2026-12-31"})
    row = Budget.objects.get()
    assert (answer.status_code, answer.headers["Location"]) == (302, f"/budgets/{row.pk}")
    assert (row.limit, row.unit, row.problem, str(row.due)) == (
        250.0,
        "us",
        ["gemm*"],
        "2026-12-31",
    )
    text = tuner.get(f"/budgets/{row.pk}").content.decode()
    assert 'class="burn-down"' in text or "unknown" in text
    assert "gemm*" in text and "250" in text
    tuner.post(f"/budgets/{row.pk}/save", {**BUDGET, "limit": "200"})
    row.refresh_from_db()
    assert row.limit == 200.0
    tuner.post(f"/budgets/{row.pk}/remove")
    assert not Budget.objects.exists()
    actions = [one.action for one in AuditEntry.objects.order_by("pk") if "budget" in one.action]
    assert actions == ["add budget", "change budget", "remove budget"]
    assert tuner.get(f"/budgets/{row.pk}").status_code == 404


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"name": "taken"}, "there is a budget taken already"),
        ({"name": ""}, "Enter a name"),
        ({"limit": "-1"}, "Must be above 0"),
        ({"limit": "nan"}, "Enter a number above 0"),
        ({"statistic": "mode"}, "mode is not a statistic of budgets"),
        ({"due": "soon"}, "Enter a date such as 2026-12-31"),
        ({"path": "["}, "character ranges"),
    ],
)
def test_each_field_of_a_budget_says_what_is_wrong(
    tuner: Client, fields: dict[str, str], line: str
) -> None:
    value_of(name="taken")
    answer = tuner.post("/budgets", BUDGET | fields)
    assert (answer.status_code, line in unescape(answer.content.decode())) == (422, True)
    assert Budget.objects.count() == 1


def test_readers_see_budgets_and_change_none(reader: Client) -> None:
    row = Budget.objects.get(pk=value_of().id)
    assert "Add budget" not in reader.get("/team").content.decode()
    for address in ("/budgets", f"/budgets/{row.pk}/save", f"/budgets/{row.pk}/remove"):
        assert reader.post(address, BUDGET).status_code == 403


def test_queries_of_the_team_page_do_not_grow() -> None:
    ada = person("ada")
    counts = []
    for number in (1, 6):
        for each in range(number):
            history([100.0] * 3, problem=f"gemm {number} {each}")
            alert(assignee=ada)
            value_of(problem=["gemm*"])
        if number == 1:
            rule(ada, owner=ada)
        alert_pipeline.process_pending()
        counts.append(
            [queries_of(team_page, "ada"), queries_of(budget_page, Budget.objects.all()[0].pk)]
        )
    assert_steady(*counts, usual=[15, 6])
    assert team_page("ada").n_series == 7
