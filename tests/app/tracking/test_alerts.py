"""The alerts that people see: what is listed, what each says, and what is done from its page."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from codegen_app.tracking.alerting import triage
from codegen_app.tracking.alerting.events import record_event
from codegen_app.tracking.models import (
    Alert,
    AlertEvent,
    AlertKind,
    AlertState,
    Baseline,
    Change,
    EventKind,
    Relation,
    SeriesRule,
)
from codegen_app.tracking.pages.alert.query import alert_page
from codegen_app.tracking.pages.alerts import query as listing
from codegen_app.tracking.pages.alerts.query import PAGE_SIZE, AlertFilter, alert_list, alert_table
from codegen_app.tracking.pages.history.plots import THEMES, plot, plot_data
from codegen_app.tracking.queries.alert_rows import open_regressions
from codegen_app.tracking.services import detection, thresholds
from codegen_app.web.tables import TableQuery
from tests.support import alerts as made
from tests.support.queries import assert_steady, most, queries_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    user = User.objects.create_user("ada")
    user.user_permissions.add(Permission.objects.get(codename="triage"))
    return user


@pytest.fixture
def site(client: Client, ada: User) -> Client:
    client.force_login(ada)
    return client


def listed(**given: Any) -> list[int]:
    return [row.id for row in alert_list(AlertFilter(**given)).alerts]


def test_the_list_says_what_moved_most_with_its_interval_and_n(reader: Client) -> None:
    row = made.alert()
    made.change(row, 100.0, 104.0)
    worst = made.change(row, 100.0, 130.0, cause="compiler")
    made.change(row, 100.0, 180.0, withdrawn_at=timezone.now())
    found = alert_list(AlertFilter()).alerts[0]
    assert found.worst is not None
    assert found.worst.ratio == pytest.approx(1.3)
    assert (found.worst.low, found.worst.high) == (worst.low, worst.high)
    assert (found.worst.n_before, found.worst.n_after) == (60, 12)
    assert worst.series.problem in found.worst.series
    assert "m=4096 n=4096 on NVIDIA H200" in found.worst.series
    page = reader.get("/alerts").content.decode()
    for text in ("1.300", "1.274 \N{EN DASH} 1.326", "60, 12", "compiler", "regression"):
        assert text in page, text


def test_what_too_few_values_say_is_said_to_be_too_little(reader: Client) -> None:
    few, shown = made.alert(), made.alert()
    made.change(few, low=None, high=None)
    made.change(shown, low=0.98, high=1.2)
    page = reader.get("/alerts").content.decode()
    assert "insufficient data" in page
    assert "no difference is shown: 95% interval of after / before" in page
    assert reader.get("/alerts.json").json()["alerts"][1]["worst"]["low"] is None


def test_a_ratio_without_an_interval_looks_the_same_wherever_it_stands(reader: Client) -> None:
    alert = made.alert()
    change = made.change(alert, low=None, high=None)
    of = change.series
    pages = ("/", "/alerts", alert.get_absolute_url(), "/series", of.get_absolute_url())
    for address in (*pages, change.get_absolute_url()):
        page = reader.get(address).content.decode()
        assert '<span class="delta same" title="insufficient data: ' in page, address
    [series] = reader.get(f"{of.get_absolute_url()}/points.json").json()["series"]
    [drawn] = series["changes"]
    assert (drawn["shown"], drawn["text"]) == (
        False,
        "\N{MULTIPLICATION SIGN}1.120 (insufficient data; n 60, 12)",
    )
    assert THEMES["light"].worse not in plot(plot_data(of.pk), "light")


def test_the_list_is_narrowed_by_state_kind_assignee_and_words(ada: User) -> None:
    one, two = made.alert(), made.alert(AlertKind.IMPROVEMENT)
    closed, gone = made.alert(state=AlertState.FIXED), made.missing()
    made.change(one, series=made.series(problem="softmax of rows"))
    triage.assign([two.pk], ada, ada)
    assert listed() == [gone.pk, two.pk, one.pk]
    assert listed(state="fixed") == [closed.pk]
    assert listed(state="all", kind="improvement") == [two.pk]
    assert listed(assignee="ada") == [two.pk]
    assert listed(assignee="nobody") == [gone.pk, one.pk]
    assert [row.id for row in alert_list(AlertFilter(assignee="me"), ada).alerts] == [two.pk]
    assert listed(query="rows softmax h200") == [one.pk]
    assert listed(query="softmax gfx942") == []
    assert gone.series is not None
    assert listed(query=gone.series.problem) == [gone.pk]
    assert two.revision is not None
    assert listed(query=two.revision.name) == [two.pk]
    assert listed(query=f"#{one.pk}") == [one.pk]
    counts = {each.state: each.count for each in alert_list(AlertFilter()).states}
    assert (counts["open"], counts["fixed"], counts["all"]) == (3, 1, 4)


def test_an_address_that_is_none_is_said_and_the_rest_is_shown(reader: Client) -> None:
    row = made.alert()
    page = reader.get("/alerts?state=broken&kind=odd&below=x").content.decode()
    assert "state: unknown value broken. Choices: open, new, acknowledged" in page
    assert "kind: unknown value odd" in page
    assert f'id="alert-{row.pk}"' in page


def test_what_changed_says_only_what_the_headline_does_not(reader: Client) -> None:
    row = made.alert()
    change = made.change(row, 100.0, 112.0)
    page = reader.get(row.get_absolute_url()).content.decode()
    headline = page[page.index('<p class="verdict">') :].partition("</p>")[0]
    changed = page[page.index('id="what-changed"') :].partition("</section>")[0]
    figures = ("1.120", "1.098 \N{EN DASH} 1.142", "60, 12")
    assert [text in headline for text in figures] == [True] * 3
    assert [text in changed for text in figures] == [False] * 3
    assert "after / before," in headline
    assert "after / before," not in changed
    shown = (change.series.problem, change.series.device_name, "100 µs", "112 µs")
    assert [text in changed for text in shown] == [True] * 4
    assert [text in headline for text in shown] == [False] * 4


def test_linked_alerts_are_folded_under_theirs_also_through_others(ada: User) -> None:
    top, copy, below, apart = (made.alert().pk for _ in range(4))
    triage.link([copy], top, Relation.DUPLICATE, ada)
    triage.link([below], copy, Relation.DOWNSTREAM, ada)
    assert listed() == [apart, top]
    folded = alert_list(AlertFilter()).alerts[1].folded
    assert [(one.id, one.relation, one.to) for one in folded] == [
        (copy, "duplicate of", top),
        (below, "downstream of", copy),
    ]
    assert listed(assignee="nobody") == [apart, below, copy, top]
    assert open_regressions() == 2
    assert [(one.id, one.relation) for one in alert_page(below).others] == [
        (copy, "upstream of this alert")
    ]
    assert [(one.id, one.relation) for one in alert_page(top).others] == [
        (copy, "duplicate of this"),
        (below, f"downstream of #{copy}"),
    ]


def test_pages_of_the_list_go_on_where_the_last_ended(reader: Client) -> None:
    keys = [made.alert().pk for _ in range(PAGE_SIZE + 3)]
    first = alert_list(AlertFilter())
    assert [row.id for row in first.alerts] == keys[:2:-1]
    assert first.newer is None
    second = alert_list(AlertFilter(below=first.older))
    assert [row.id for row in second.alerts] == keys[2::-1]
    assert second.older is None
    back = alert_list(AlertFilter(above=second.newer))
    assert [row.id for row in back.alerts] == [row.id for row in first.alerts]
    assert f'href="/alerts?below={keys[3]}"' in reader.get("/alerts").content.decode()


def rows_of(reader: Client, query: str) -> list[int]:
    """The alerts of a page, as it lists them; its twin has the same."""
    page = reader.get(f"/alerts?{query}").content.decode()
    found = [int(key) for key in re.findall(r'<tr id="alert-(\d+)"', page)]
    twin = reader.get(f"/alerts.json?{query}").json()["alerts"]
    assert [row["id"] for row in twin] == found
    return found


def test_the_list_is_sorted_and_filtered_by_any_column(site: Client, ada: User) -> None:
    small, large, down, silent = made.alert(), made.alert(), made.alert(), made.missing()
    made.change(small, 100.0, 105.0, cause="code")
    made.change(large, 100.0, 150.0, cause="compiler")
    made.change(down, 100.0, 80.0, cause="compiler")
    Alert.objects.filter(pk=large.pk).update(cause="compiler", n_series=12)
    triage.assign([small.pk], ada, ada)
    small, large, down, silent = small.pk, large.pk, down.pk, silent.pk
    assert rows_of(site, "") == [silent, down, large, small]
    assert rows_of(site, "sort=-ratio") == [large, small, down, silent], "without a value: last"
    assert rows_of(site, "sort=ratio") == [down, small, large, silent]
    assert rows_of(site, "sort=alert") == [small, large, down, silent]
    assert rows_of(site, "filter=ratio>1") == [large, small]
    assert rows_of(site, "filter=ratio>1+cause=compiler") == [large]
    assert rows_of(site, "filter=series>2&sort=ratio") == [large]
    assert rows_of(site, "filter=assignee=ada&state=all") == [small]
    assert rows_of(site, "filter=h200&sort=-ratio&kind=regression") == [large, small, down]
    page = site.get("/alerts?filter=ratio>9").content.decode()
    assert "No alert matches “ratio&gt;9”." in page
    assert "unknown column speed" in site.get("/alerts?sort=speed").content.decode()


def test_the_alerts_columns_are_in_the_address_and_their_rows_there_as_tsv(site: Client) -> None:
    alert = made.alert()
    made.change(alert, 100.0, 150.0)
    page = site.get("/alerts?column=ratio&column=moved&column=high").content.decode()
    head = page[page.index('<table class="grid" id="alerts"') :].partition("</thead>")[0]
    titles = [re.sub(r"<[^>]+>", "", one) for one in re.findall(r"(?s)<th.*?</th>", head)]
    assert [title.strip() for title in titles] == [
        *("Selected", "Largest change", "Worst ratio", "Upper end")
    ]
    row = page[page.index(f'<tr id="alert-{alert.pk}"') :].partition("</tr>")[0]
    assert row.count("<td") == 4
    assert 'name="alert"' in row, "it can still be ticked"
    answer = site.get("/alerts?as=tsv&column=alert&column=ratio&column=n")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="alerts.tsv"'
    assert answer.content.decode() == (f"#\tWorst ratio\tn, smaller side\n{alert.pk}\t1.5\t12\n")


def test_sorted_alerts_have_pages_too_and_begin_anew_where_they_are_sorted(site: Client) -> None:
    keys = [made.alert().pk for _ in range(PAGE_SIZE + 3)]
    assert rows_of(site, "sort=alert") == keys[:PAGE_SIZE]
    assert rows_of(site, f"sort=alert&start={PAGE_SIZE}") == keys[PAGE_SIZE:]
    page = site.get(f"/alerts?below={keys[10]}").content.decode()
    assert f"{PAGE_SIZE + 3} rows" in " ".join(page.split())
    assert 'href="/alerts?sort=-alert"' in page
    text = site.get(f"/alerts?as=tsv&below={keys[10]}&column=alert").content.decode()
    assert len(text.splitlines()) == 1 + PAGE_SIZE + 3, "all that match are copied"


def test_of_very_many_alerts_the_newest_are_sorted_and_the_page_says_so(
    site: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [made.alert().pk for _ in range(5)]
    top = keys[4]
    triage.link([keys[0]], top, Relation.DUPLICATE, User.objects.get(username="ada"))
    monkeypatch.setattr(listing, "MAX_ROWS", 3)
    assert rows_of(site, "sort=alert") == keys[2:]
    page = site.get("/alerts?sort=alert").content.decode()
    assert "the newest 3 of 4" in " ".join(page.split())
    assert "1 linked" in page


def test_an_alert_says_all_that_is_known_of_its_changes(site: Client) -> None:
    row = made.alert(recovered_at=timezone.now())
    made.change(row, 100.0, 104.0, low=None, high=None)
    worst = made.change(
        row,
        100.0,
        112.0,
        cause="code",
        rule="code alone",
        explained_at=timezone.now(),
        explanation={
            "reasons": ["the source differs", "VGPRs 124 → 132", "clocks were not read"],
            "differences": [
                {"sentence": "VGPRs 124 → 132", "here": True, "aspect": "resources"},
                {"sentence": "driver 1 → 2 (elsewhere)", "here": False},
            ],
            "next_step": "measure r1 again",
        },
    )
    record_event(row, EventKind.RAISED)
    page = site.get(f"/alerts/{row.pk}").content.decode()
    for text in (
        *("100 µs", "112 µs", "1.120", "1.098 \N{EN DASH} 1.142", "60, 12", "insufficient data"),
        *("The source differs.", "Clocks were not read.", "Next step: measure r1 again."),
        *("Mark as fixed?", f'href="/changes/{worst.pk}"', f"/series/{worst.series_id}?at="),
        f"/series/{worst.series_id}/thresholds?baseline={worst.pk}",
    ):
        assert text in page, text
    assert "driver 1 → 2" not in page
    assert page.count("VGPRs 124 → 132") == 1, "it is a reason, and is what differs: said once"
    in_order = ("What changed", "112 µs", "Cause", "VGPRs", "Next step", "Measure again", "104 µs")
    assert sorted(in_order, key=page.index) == [*in_order]
    [why] = site.get(f"/alerts/{row.pk}.json").json()["why"]
    assert (why["cause"], why["differs"]) == ("code", ["VGPRs 124 → 132"])
    assert site.get("/alerts/999999").status_code == 404


def explained(of: Alert, cause: str, *differs: str, after: float, note: str = "") -> Change:
    reasons = [f"because of {cause}", *differs, *filter(None, [note])]
    found = [{"sentence": one, "aspect": "driver"} for one in differs]
    of_code = {"sentence": f"cubin of {after} µs", "aspect": "code object"}
    explanation = {"reasons": reasons, "differences": [*found, of_code]}
    known = {"cause": cause, "rule": cause, "explained_at": timezone.now()}
    return made.change(of, after=after, explanation=explanation, **known)


def test_what_holds_of_all_series_is_said_once_and_the_rest_at_each(reader: Client) -> None:
    row = made.alert()
    one = explained(row, "environment", "driver 1 → 2", "clock 9 → 8", after=130.0)
    other = explained(row, "environment", "driver 1 → 2", "clock 9 → 7", note="n", after=120.0)
    code = explained(row, "code", "VGPRs 1 → 2", after=110.0)
    page = alert_page(row.pk)
    assert [(why.cause, why.n_series, why.differs, why.url) for why in page.why] == [
        ("environment", 2, ("driver 1 → 2",), one.get_absolute_url()),
        ("code", 1, ("VGPRs 1 → 2", "cubin of 110.0 µs"), code.get_absolute_url()),
    ]
    besides = {change.moved.id: change.besides for change in page.changes}
    assert besides == {one.pk: ("clock 9 → 8",), other.pk: ("clock 9 → 7", "n"), code.pk: ()}
    text = reader.get(row.get_absolute_url()).content.decode()
    assert [text.count(one) for one in ("driver 1 → 2", "VGPRs 1 → 2")] == [1, 1]


def test_a_linked_alert_of_the_same_revision_is_listed_once(reader: Client, ada: User) -> None:
    one, other = made.alert(), made.alert(AlertKind.IMPROVEMENT)
    Alert.objects.update(revision=one.revision)
    for linked in (False, True):
        if linked:
            triage.link([other.pk], one.pk, Relation.DUPLICATE, ada)
        for row in (one, other):
            page = reader.get(row.get_absolute_url()).content.decode()
            found = alert_page(row.pk).others
            assert [each.id for each in found] == [other.pk if row == one else one.pk]
            assert page.count(f'href="{found[0].url}"') == 1
    assert [each.relation for each in alert_page(one.pk).others] == ["duplicate of this"]


def test_missing_data_names_the_series_and_its_last_point(reader: Client) -> None:
    row = made.missing()
    page = " ".join(reader.get(f"/alerts/{row.pk}").content.decode().split())
    assert "1 point, the last at 2026-01-01 00:00 UTC" in page


def test_alerts_are_triaged_and_taken_back_by_forms(site: Client, ada: User) -> None:
    keys = [made.alert().pk for _ in range(2)]
    sent = {
        "alert": keys,
        "do": "expected",
        "note": "as planned",
        "back": "/alerts?kind=regression",
    }
    answer = site.post("/alerts/triage", sent)
    assert (answer.status_code, answer["Location"]) == (302, "/alerts?kind=regression")
    page = site.get("/alerts").content.decode()
    assert "2 alerts: set to expected." in page
    assert "Undo: expected of 2 alerts" in re.sub(r"\s+", " ", page)
    act = AlertEvent.objects.filter(kind=EventKind.STATE)[0].act
    site.post("/alerts/undo", {"act": str(act), "back": "https://elsewhere.example/"})
    assert set(Alert.objects.values_list("state", flat=True)) == {"new"}
    for sent, line in (
        ({"do": "mine", "alert": keys[0]}, "assigned to ada"),
        ({"do": "assign", "assignee": "", "alert": keys[0]}, "unassigned"),
        ({"do": "assign", "assignee": "eve", "alert": keys[0]}, "Account eve does not exist"),
        ({"do": "duplicate_of", "to": f"#{keys[0]}", "alert": keys[1]}, "duplicate of alert"),
        (
            {"do": "duplicate_of", "to": "", "alert": keys[1]},
            "Enter the number of the other alert.",
        ),
        ({"do": "duplicate_of", "to": "x", "alert": keys[1]}, "x is not an alert number."),
        ({"do": "unlink", "alert": keys[1]}, "link removed"),
        ({"do": "note", "note": "why?", "alert": keys[0]}, "noted"),
        ({"do": "fixed"}, "No alert is selected"),
        ({"do": "burn", "alert": keys[0]}, "burn is not an action for alerts."),
        ({"do": "fixed", "alert": "one"}, "row numbers must be integers"),
    ):
        page = site.post("/alerts/triage", sent, follow=True).content.decode()
        assert line in page, sent
    events = alert_page(keys[0]).events
    assert [one.what for one in events] == [
        *("new → expected", "undid: new → expected"),
        *("assigned to ada", "unassigned", "note"),
    ]
    assert events[0].undone
    assert [one.act is not None for one in events] == [False, False, False, True, True]


def test_who_may_not_triage_sees_all_and_no_button(reader: Client) -> None:
    row = made.alert()
    for address in ("/alerts", f"/alerts/{row.pk}"):
        page = reader.get(address).content.decode()
        assert 'name="do"' not in page
        assert "Triage requires the permission" in page
    assert reader.post("/alerts/triage", {"alert": row.pk, "do": "fixed"}).status_code == 403
    assert Alert.objects.get().state == "new"


def test_every_page_says_how_many_regressions_are_open(reader: Client) -> None:
    assert 'title="Open regressions"' not in reader.get("/").content.decode()
    made.alert()
    made.alert(AlertKind.IMPROVEMENT)
    made.alert(state=AlertState.FIXED)
    assert '<span class="count" title="Open regressions">1</span>' in (
        reader.get("/kernels").content.decode()
    )


def test_an_empty_list_says_how_it_is_filled(reader: Client) -> None:
    assert "kiln_client push" in reader.get("/alerts").content.decode()
    made.alert(state=AlertState.FIXED)
    assert "No open alerts." in reader.get("/alerts").content.decode()


def test_queries_do_not_grow(ada: User) -> None:
    top, counts = made.alert(), []
    for more in (1, 30):
        for _ in range(more):
            other = made.alert()
            made.change(top)
            made.change(other)
            triage.link([made.alert().pk], top.pk, Relation.DUPLICATE, ada)
            triage.assign([top.pk], ada, ada)
            triage.add_note([top.pk], "again", ada)
        counts.append(
            [
                queries_of(alert_list, AlertFilter()),
                queries_of(alert_table, AlertFilter(), TableQuery(sort="ratio")),
                queries_of(alert_page, top.pk),
            ]
        )
    assert_steady(*counts, usual=[4, 5, 7])


STEPS = [100.0, 100.4, 99.8, 100.1, 99.7, 100.3, 100.2, 99.9, 100.0, 99.6] * 3


def steps() -> Any:
    """A series that became 1.5% slower, then 12%."""
    values = [*STEPS, *(value * 1.015 for value in STEPS), *(value * 1.12 for value in STEPS)]
    row = made.series(values)
    while detection.detect_changes():
        pass
    row.refresh_from_db()
    return row


def test_a_threshold_is_tried_on_the_history_before_it_is_saved(site: Client, ada: User) -> None:
    row = steps()
    stored = list(Change.objects.order_by("at"))
    assert len(stored) == 2, "both steps are found by default"
    trial = thresholds.dry_run(row, thresholds.Proposal(least_effect=0.03))
    assert [one.effect for one in trial.changes] == ["gone", "kept"]
    assert trial.changes[0].ratio == pytest.approx(1.015, abs=0.004)
    assert (trial.changes[0].n_before, trial.changes[0].n_after) == (
        stored[0].n_before,
        stored[0].n_after,
    )
    assert Change.objects.filter(withdrawn_at=None).count() == 2, "nothing is written"
    page = site.get(f"/series/{row.pk}/thresholds?try=1&least_effect=3").content.decode()
    assert "1 gone, 0 new, 1 kept" in page

    sent = {"least_effect": "3", "stale_after": "36h", "why": "noise of the host"}
    page = site.post(f"/series/{row.pk}/thresholds/save", sent, follow=True).content.decode()
    assert "Saved. The series will be analyzed again." in page
    rule = SeriesRule.objects.get()
    assert (rule.least_effect, rule.stale_after) == (0.03, timedelta(hours=36))
    assert (rule.reason, rule.changed_by) == ("noise of the host", ada)
    row.refresh_from_db()
    assert row.unchecked_from == row.first_at
    while detection.detect_changes():
        pass
    assert [one.pk for one in Change.objects.filter(withdrawn_at=None)] == [stored[1].pk]

    back = thresholds.dry_run(row, thresholds.Proposal())
    assert [one.effect for one in back.changes] == ["new", "kept"]
    site.post(f"/series/{row.pk}/thresholds/save", {"reset": "1", "why": "quiet again"})
    assert not SeriesRule.objects.exists()


def test_what_cannot_be_set_is_said(site: Client) -> None:
    row = made.series([100.0] * 3)
    address = f"/series/{row.pk}/thresholds"
    for query, line in (
        ("least_effect=x", "Enter a percentage"),
        ("least_effect=0.01", "Must be at least 0.1%."),
        ("stale_after=soon", "soon is not a duration. Examples: 36h, 7d, 2w"),
        ("stale_after=0d", "0d is not a duration"),
    ):
        assert line in site.get(f"{address}?try=1&{query}").content.decode(), query
    page = site.post(f"{address}/save", {"least_effect": "x", "why": "?"})
    assert page.status_code == 422
    page = site.post(f"{address}/save", {"least_effect": "2"}, follow=True)
    assert "Enter a reason" in page.content.decode()
    assert not SeriesRule.objects.exists()
    assert site.get("/series/999999/thresholds").status_code == 404


def test_a_long_series_is_tried_on_its_latest_points_and_says_since_when(
    site: Client, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any
) -> None:
    row = steps()
    address = f"/series/{row.pk}/thresholds"
    of_all = thresholds.dry_run(row, thresholds.Proposal())
    assert (of_all.since, of_all.kept) == (None, 2)
    assert f'href="{address}"' in site.get(row.get_absolute_url()).content.decode()
    monkeypatch.setattr(thresholds, "MAX_TRIED", 45)
    with django_assert_max_num_queries(most(7)):  # its points are read beside Django
        of_latest = thresholds.dry_run(row, thresholds.Proposal())
    assert of_latest.since == made.START + timedelta(days=45)
    assert of_latest.changes == of_all.changes[1:], "with as much before it as the detector has"
    page = site.get(f"{address}?try=1").content.decode()
    assert "the latest of 90 points, since 2026-02-15 00:00 UTC" in page


def test_silence_and_missing_data_are_tried_too(site: Client) -> None:
    row = made.series([100.0] * 12)
    trial = thresholds.dry_run(row, thresholds.Proposal(stale_after=timedelta(hours=20)))
    assert (len(trial.gaps), trial.more_gaps) == (10, 1)
    by_itself = thresholds.dry_run(row, thresholds.Proposal())
    assert by_itself.allowed == timedelta(days=3)
    assert by_itself.gaps == ()
    page = site.get(f"/series/{row.pk}/thresholds?try=1&muted=on&stale_after=20h")
    assert "Muted: changes are recorded" in page.content.decode()
    assert "this happened 11 times" in page.content.decode()


def test_a_baseline_ends_a_comparison_and_is_taken_back(site: Client) -> None:
    row = steps()
    change = Change.objects.latest("at")
    page = site.get(f"/series/{row.pk}/thresholds?baseline={change.pk}").content.decode()
    assert "1 gone, 0 new, 1 kept" in page
    sent = {"at": change.at.isoformat(), "why": "another protocol of measuring"}
    page = site.post(f"/series/{row.pk}/baselines", sent, follow=True).content.decode()
    assert "Baseline added at" in page
    while detection.detect_changes():
        pass
    assert change not in Change.objects.filter(withdrawn_at=None)
    again = site.post(f"/series/{row.pk}/baselines", sent, follow=True).content.decode()
    assert "already" in again
    for at, line in (("2020-01-01", "outside the history of the series"), ("?", "Enter a date")):
        answer = site.post(f"/series/{row.pk}/baselines", {"at": at, "why": "x"}, follow=True)
        assert line in answer.content.decode()
    baseline = Baseline.objects.get()
    site.post(f"/baselines/{baseline.pk}/remove")
    baseline.refresh_from_db()
    assert baseline.removed_at is not None
    while detection.detect_changes():
        pass
    assert Change.objects.filter(withdrawn_at=None, at=change.at).exists()


def test_the_twin_of_a_trial_has_the_figures(site: Client) -> None:
    row = steps()
    twin = json.loads(site.get(f"/series/{row.pk}/thresholds.json?try=1&least_effect=3").content)
    assert [one["effect"] for one in twin["trial"]["changes"]] == ["gone", "kept"]
    assert twin["trial"]["changes"][0]["high"] > 1
