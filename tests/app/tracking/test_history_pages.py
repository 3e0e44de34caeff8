"""Histories as their readers get them: whole, labelled, safe whatever their names, and quick."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import datetime, timedelta
from typing import Any
from xml.etree import ElementTree

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from codegen_app.accounts import embedding
from codegen_app.graphs.models import TemplateNode
from codegen_app.tracking.models import (
    AlertEvent,
    Baseline,
    Change,
    Conditions,
    Datum,
    EventKind,
    Revision,
    Series,
    Source,
)
from codegen_app.tracking.pages.change.query import change_page
from codegen_app.tracking.pages.history import plots
from codegen_app.tracking.pages.history.chart import change_chart, history_chart
from codegen_app.tracking.pages.history.plots import plot_data
from codegen_app.tracking.pages.history.query import history_page
from codegen_app.tracking.pages.series import query as listing
from codegen_app.tracking.pages.series.query import PAGE_SIZE, Filters, series_list, series_table
from codegen_app.tracking.queries.revision_links import RevisionLinks
from codegen_app.tracking.queries.series_summary import MIN_POINTS, series_head
from codegen_app.web.tables import TableQuery
from codegen_app.workers.models import Worker
from scheduler.track.generated_label import LABEL
from scheduler.track.units import format_digits, format_value
from tests.app import track_factories as make
from tests.support.histories import generated_histories
from tests.support.pages_world import World, make_build
from tests.support.queries import assert_steady, most, queries_of

pytestmark = pytest.mark.django_db

EVIL = "</text></svg><script>alert(1)</script>\"'&\u202e\x07 ]]> <!--"
NOW = datetime.fromisoformat("2026-05-01T12:00:00+00:00")


def history(values: list[float], **fields: Any) -> Series:
    """A series with a point a day, the last at ``NOW``."""
    facts = fields.pop("facts", None) or [{}] * len(values)
    first = NOW - timedelta(days=len(values) - 1)
    given = {"first_at": first, "last_at": NOW, "points": len(values)} | fields
    series = make.series(**given)
    for n, (value, each) in enumerate(zip(values, facts, strict=True)):
        text = json.dumps(each, sort_keys=True)
        conditions, _ = Conditions.objects.get_or_create(
            digest=f"{hash(text) % 2**60:064x}", defaults={"facts": each}
        )
        make.datum(
            series=series,
            value=value,
            low=value * 0.99,
            high=value * 1.01,
            n=20,
            at=first + timedelta(days=n),
            conditions=conditions,
        )
    return series


def step(series: Series, place: int, **fields: Any) -> Change:
    """A change at a point of the series, by its place in order."""
    data = list(Datum.objects.filter(series=series).order_by("at"))
    datum, before = data[place], data[place - 1]
    given = {
        "series": series,
        "datum": datum,
        "at": datum.at,
        "revision": datum.revision,
        "previous": before.revision,
        "before": before.value,
        "after": datum.value,
        "low": datum.value / before.value - 0.01,
        "high": datum.value / before.value + 0.01,
        "n_before": place,
        "n_after": len(data) - place,
        "errors": 9.0,
        "worse": datum.value > before.value,
    }
    return Change.objects.create(**given | fields)


# ── the list ────────────────────────────────────────────────────────────────


def test_the_list_says_the_latest_figure_and_the_latest_change(reader: Client) -> None:
    series = history([1000.0] * 10 + [1500.0] * 3, problem="softmax")
    step(series, 10)
    step(series, 12, withdrawn_at=NOW)
    (row,) = series_list().rows
    assert row.latest is not None
    assert row.change is not None
    assert (row.latest.text, row.latest.interval) == ("1.500 µs", "1.485 µs \N{EN DASH} 1.515 µs")
    assert (row.change.ratio, row.change.n_before, row.change.n_after) == (1.5, 10, 3)
    page = reader.get("/series").content.decode()
    assert "\N{MULTIPLICATION SIGN}1.500" in page
    assert "n = 10, 3" in page
    assert "95% interval" in page


def test_words_and_filters_narrow_the_list_and_are_its_address(reader: Client) -> None:
    history([1.0], problem="softmax", device_name="NVIDIA H200", metric="time")
    history([2.0], problem="layer_norm", device_name="AMD MI300X", metric="bandwidth")

    def problems(**given: Any) -> list[str]:
        return [row.head.problem for row in series_list(Filters(**given)).rows]

    assert problems(words="H200 soft") == ["softmax"]
    assert problems(words="soft MI300X") == []
    assert problems(exact={"metric": "bandwidth"}) == ["layer_norm"]
    assert problems(words="100%_") == []
    page = reader.get("/series?words=soft&device=NVIDIA+H200").content.decode()
    assert "softmax" in page
    assert 'value="soft"' in page
    assert "layer_norm" not in page
    assert "No series" in reader.get("/series?words=none+such").content.decode()


def test_series_that_changed_lately_can_be_asked_for() -> None:
    now = timezone.now()
    old, new, off = (history([1.0, 2.0], problem=name) for name in ("old", "new", "off"))
    step(old, 1, at=now - timedelta(days=20))
    step(new, 1, at=now - timedelta(days=2))
    step(off, 1, at=now - timedelta(days=2), withdrawn_at=now)
    found = series_list(Filters(changed=7)).rows
    assert [row.head.problem for row in found] == ["new"]


def test_pages_of_the_list_hold_every_series_once(reader: Client) -> None:
    for n in range(PAGE_SIZE + 20):
        make.series(problem=f"p{n}", last_at=NOW - timedelta(hours=n // 40), points=1)
    seen: list[str] = []
    address = "/series.json"
    while True:
        page = reader.get(address).json()
        seen += [row["head"]["problem"] for row in page["rows"]]
        if not page["next"]:
            break
        address = f"/series.json?{'after=' + page['next'].replace('+', '%2B')}"
    assert len(seen) == len(set(seen)) == PAGE_SIZE + 20
    assert reader.get("/series?after=nonsense").status_code == 200
    assert "use the “next” value" in reader.get("/series?after=nonsense").content.decode()


def problems_of(reader: Client, query: str) -> list[str]:
    """The problems of a page, as it lists them; its twin has the same."""
    page = reader.get(f"/series?{query}").content.decode()
    found = re.findall(r'aria-label="Show (\w+) together with others"', page)
    twin = reader.get(f"/series.json?{query}").json()["rows"]
    assert [row["head"]["problem"] for row in twin] == found
    return found


def test_the_list_is_sorted_and_filtered_by_any_column(reader: Client) -> None:
    slow, fast = history([1000.0] * 13, problem="slow"), history([10.0] * 3, problem="fast")
    worse = history([50.0] * 10 + [75.0] * 3, problem="worse", device_name="AMD MI300X")
    make.series(problem="silent", last_at=NOW - timedelta(days=900), points=0)
    step(slow, 12, before=1000.0, after=800.0, low=0.7, high=0.9, cause="driver")
    step(worse, 10, before=50.0, after=75.0, low=1.4, high=1.6)
    del fast
    assert problems_of(reader, "sort=latest") == ["fast", "worse", "slow", "silent"]
    assert problems_of(reader, "sort=-change")[:2] == ["worse", "slow"]
    assert problems_of(reader, "sort=problem") == ["fast", "silent", "slow", "worse"]
    assert problems_of(reader, "filter=change>1") == ["worse"]
    assert problems_of(reader, "filter=points>=10+cause=driver") == ["slow"]
    assert problems_of(reader, "filter=latest>20&sort=problem&device=AMD+MI300X") == ["worse"]
    assert problems_of(reader, "filter=mi300x") == ["worse"]
    page = reader.get("/series?filter=change>9").content.decode()
    assert "No series matches “change&gt;9”." in page
    assert "unknown column speed" in reader.get("/series?sort=speed").content.decode()


def test_the_lists_columns_are_in_the_address_and_its_rows_there_as_tsv(reader: Client) -> None:
    series = history([1000.0] * 10 + [1500.0] * 3, problem="softmax")
    step(series, 10)
    page = reader.get("/series?column=problem&column=unit&column=change").content.decode()
    row = page[page.index("<tbody>") :].partition("</tr>")[0]
    assert row.count("<td") == 4
    assert 'name="together"' in row, "it can still be ticked"
    assert "softmax" in row
    assert "\N{MULTIPLICATION SIGN}1.500" in row
    answer = reader.get("/series?as=tsv&column=problem&column=unit&column=latest&column=change")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="series.tsv"'
    assert answer.content.decode().splitlines() == [
        "Problem\tLatest\tBase unit\tLast change",
        f"{series.problem} {series_head(series).sizes}".rstrip() + f"\t1500.0\t{series.unit}\t1.5",
    ]


def test_sorted_series_have_pages_and_of_very_many_the_latest_are_sorted(
    reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"p{n:03}" for n in range(PAGE_SIZE + 4)]
    for n, name in enumerate(names):
        make.series(problem=name, last_at=NOW - timedelta(hours=n), points=1)
    assert problems_of(reader, "sort=problem") == names[:PAGE_SIZE]
    assert problems_of(reader, f"sort=problem&start={PAGE_SIZE}") == names[PAGE_SIZE:]
    assert f"{PAGE_SIZE + 4} rows" in " ".join(reader.get("/series").content.decode().split())
    assert len(reader.get("/series?as=tsv").content.decode().splitlines()) == 1 + PAGE_SIZE + 4
    monkeypatch.setattr(listing, "MAX_ROWS", 3)
    assert problems_of(reader, "sort=-problem") == names[2::-1]
    page = " ".join(reader.get("/series?sort=-problem").content.decode().split())
    assert f"the 3 most recently updated of {PAGE_SIZE + 4} series" in page


def test_ticked_series_are_shown_on_one_chart(reader: Client) -> None:
    answer = reader.get("/series?together=7&together=3&together=7&together=5")
    assert answer["Location"] == "/series/7?with=3,5"


def test_queries_do_not_grow_with_series_points_or_changes() -> None:
    def queries() -> list[int]:
        keys = list(Series.objects.order_by("pk").values_list("pk", flat=True))
        change = Change.objects.latest("pk")
        return [
            queries_of(series_list),
            queries_of(series_table, Filters(), TableQuery(sort="change")),
            queries_of(history_page, keys[0], keys[1:]),
            queries_of(history_chart, keys),
            queries_of(change_chart, change.pk),
            queries_of(change_page, change.pk),
            queries_of(plot_data, keys[-1]),
        ]

    step(history([1.0] * 12), 3)
    few = queries()
    for n in range(5):
        other = history(
            [float(n + 1)] * 30, problem=f"p{n}", facts=[{"driver": str(d)} for d in range(30)]
        )
        step(other, 7)
        step(other, 20)
    assert_steady(few, queries(), usual=[5, 6, 11, 8, 8, 4, 3])


# ── the history ─────────────────────────────────────────────────────────────


def columns(reader: Client, address: str) -> Any:
    answer = reader.get(address)
    assert answer["Content-Type"] == "application/json"
    return answer.json()


def test_a_chart_has_every_point_with_its_interval_revision_and_origin(reader: Client) -> None:
    series = history([1000.0, 1100.0, 1200.0])
    Datum.objects.filter(series=series, value=1200).update(
        low=None, high=None, source=Source.TUNING
    )
    chart = columns(reader, f"{series.get_absolute_url()}/points.json")
    (one,) = chart["series"]
    found = one["columns"]
    assert found["value"] == [1000.0, 1100.0, 1200.0]
    assert found["low"] == [990.0, 1089.0, None]
    assert found["n"] == [20, 20, 20]
    assert found["ms"] == [0, 86_400_000, 2 * 86_400_000]
    assert chart["epoch"] == int((NOW - timedelta(days=2)).timestamp() * 1000)
    names = [chart["revisions"][place] for place in found["revision"]]
    rows = Datum.objects.filter(series=series).order_by("at").select_related("revision")
    assert names == [str(row.revision) for row in rows]
    assert [chart["origins"][place] for place in found["origin"]] == [
        *("sent", "sent", "measured here")
    ]
    assert (one["shown_unit"], one["factor"]) == ("µs", 0.001)
    assert not one["is_enough"]
    assert one["levels"] == []


def test_levels_go_from_change_to_change_and_relative_is_to_the_first() -> None:
    series = history([100.0] * 10 + [150.0] * 5)
    step(series, 10)
    step(series, 12, withdrawn_at=NOW)
    (one,) = history_chart([series.pk]).series
    assert one.first_level == 100.0
    assert [level for _, level in one.levels] == [100.0, 150.0]
    assert [each["withdrawn"] for each in one.changes] == [False, True]


def test_the_axis_is_by_revision_where_times_clump(reader: Client) -> None:
    steady, clumped = make.series(points=12), make.series(points=12)
    for n in range(12):
        make.datum(series=steady, at=NOW + timedelta(days=n))
        make.datum(series=clumped, at=NOW + timedelta(days=n // 6 * 30, minutes=n))
    assert history_chart([steady.pk]).axis == "time"
    assert history_chart([clumped.pk]).axis == "revision"
    assert "by revision" in reader.get(f"{clumped.get_absolute_url()}?x=time").content.decode()


def test_a_point_on_the_chart_has_the_subject_of_its_commit() -> None:
    series = make.series(points=1)
    subject = "Choose the tile by the shape " + "x" * 100
    make.datum(series=series, revision=make.revision(subject=subject))
    chart = history_chart([series.pk])
    assert chart.subjects == (subject[:80],)


# ── the answer ──────────────────────────────────────────────────────────────


def test_the_first_lines_say_how_much_slower_since_which_commit_and_why(reader: Client) -> None:
    series = history([100.0] * 20 + [150.0] * 4, problem="softmax")
    owner = User.objects.create_user("kim")
    alert = make.regression(assignee=owner)
    explanation = {"reasons": ["the source differs"], "next_step": "look at the diff"}
    change = step(series, 20, cause="code", explanation=explanation, alert=alert)
    commit = {"subject": "Pad the tile", "author": "A. Author", "repository": "https://forge/o/n"}
    Revision.objects.filter(pk__in=(change.revision_id, change.previous_id)).update(**commit)
    page = history_page(series.pk)
    assert page.answer is not None
    movement = page.answer.movement
    assert movement is not None
    assert (movement.ratio, movement.low, movement.high) == (1.5, change.low, change.high)
    assert (movement.n_before, movement.n_after, movement.direction) == (20, 4, "slower")
    text = " ".join(reader.get(series.get_absolute_url()).content.decode().split())
    for part in (
        *("\N{MULTIPLICATION SIGN}1.500</span> slower", "than 7 days before the latest point"),
        *(
            "95% interval 1.490 \N{EN DASH} 1.510",
            "n = 20, 4",
            "Pad the tile (A. Author)",
            "commits between",
        ),
        *("<strong>code</strong> (the source differs)", "<dd>kim</dd>", "Look at the diff."),
        f"Alert {alert.pk}: new",
    ):
        assert part in text, part


def test_changes_of_a_week_are_combined_and_older_ones_are_the_last_change(reader: Client) -> None:
    series = history([100.0] * 20 + [200.0] * 3 + [120.0] * 3)
    up, down = step(series, 20), step(series, 23)
    answer = history_page(series.pk).answer
    assert answer is not None
    assert answer.movement is not None
    assert answer.movement.ratio == pytest.approx(1.2)
    assert (answer.movement.n_before, answer.movement.n_after) == (20, 3)
    assert answer.movement.low is not None
    assert answer.movement.low < 1.2 * down.low / down.ratio, "the errors of both count"
    assert answer.explained is not None
    assert answer.explained.change.id == up.pk, "the change that made it slower"
    old = history([100.0] * 10 + [150.0] * 12)
    change = step(old, 10)
    answer = history_page(old.pk).answer
    assert answer is not None
    assert answer.movement is None
    assert answer.explained is not None
    assert answer.explained.change.id == change.pk
    text = reader.get(old.get_absolute_url()).content.decode()
    assert "No change in the 7 days before." in text
    assert "Last change" in text


def test_only_as_many_points_as_are_drawn_are_read_the_latest_ones(
    monkeypatch: pytest.MonkeyPatch, reader: Client
) -> None:
    monkeypatch.setattr("codegen_app.tracking.pages.history.chart.MAX_POINTS", 3)
    series = history([float(n + 1) for n in range(5)])
    (one,) = history_chart([series.pk]).series
    assert one.columns.value == (3.0, 4.0, 5.0)
    assert one.points == 5
    until = (NOW - timedelta(days=1)).isoformat().replace("+", "%2B")
    chart = columns(reader, f"{series.get_absolute_url()}/points.json?until={until}")
    assert chart["series"][0]["columns"]["value"] == [2.0, 3.0, 4.0]


def test_several_series_are_on_one_chart_and_what_is_none_is_named(reader: Client) -> None:
    one, other = history([1.0], problem="one"), history([2.0], problem="other")
    address = f"{one.get_absolute_url()}?with={other.pk},{one.pk},999999"
    page = reader.get(address).content.decode()
    assert "Series 999999 does not exist" in page
    assert f"points.json?with={other.pk}" in page
    chart = columns(reader, f"{one.get_absolute_url()}/points.json?with={other.pk},999999")
    assert [each["problem"] for each in chart["series"]] == ["one", "other"]
    wrong = reader.get(f"{one.get_absolute_url()}?with=x&scale=cubic&x=9")
    assert wrong.status_code == 200
    assert "series numbers" in wrong.content.decode()
    assert reader.get("/series/999999/points.json").status_code == 404


def environment(series: Series) -> list[tuple[int, tuple[str, ...]]]:
    (one,) = history_chart([series.pk]).series
    return [(mark.ms // 86_400_000, mark.what) for mark in one.environment]


def test_changes_of_driver_compiler_and_device_are_marked_where_they_happened() -> None:
    old = {"driver": "550", "toolchain_version": "12.4", "attributes": {"uuid": "a"}}
    facts = [old] * 3 + [old | {"driver": "560"}] * 3
    facts += [old | {"driver": "560", "toolchain_version": "12.6", "attributes": {"uuid": "b"}}] * 2
    series = history([1.0] * 8, facts=facts, toolchain="nvcc")
    assert environment(series) == [
        (3, ("driver 550 → 560",)),
        (6, ("nvcc 12.4 → 12.6", "device serial number a → b")),
    ]


def test_hosts_that_take_turns_and_clocks_that_flicker_are_no_change() -> None:
    turns = [{"host": f"h{n % 2}"} for n in range(12)]
    assert [ms for ms, _ in environment(history([1.0] * 12, facts=turns))] == [1]
    flicker = [{"clocks": {"sm_clock": 1200 if n == 5 else 1980}} for n in range(12)]
    assert environment(history([1.0] * 12, facts=flicker)) == []
    throttled = [{"clocks": {"sm_clock": 1980 if n < 6 else 1500}} for n in range(12)]
    ((place, what),) = environment(history([1.0] * 12, facts=throttled))
    assert (place, what) == (6, ("SM clock 1,980 → 1,500 MHz",))


def test_baselines_and_notes_of_alerts_are_said_beside_the_history(reader: Client) -> None:
    series = history([100.0] * 10 + [150.0] * 3)
    alert = make.regression()
    step(series, 10, alert=alert)
    AlertEvent.objects.create(alert=alert, kind=EventKind.NOTE, note="a <b>new</b> fan")
    Baseline.objects.create(series=series, at=NOW - timedelta(days=5), reason="power limit")
    Baseline.objects.create(series=series, at=NOW, reason="taken back", removed_at=NOW)
    page = reader.get(series.get_absolute_url()).content.decode()
    assert "a &lt;b&gt;new&lt;/b&gt; fan" in page
    assert "power limit" in page
    assert "taken back" not in page
    assert f'href="/alerts/{alert.pk}"' in page
    (one,) = history_chart([series.pk]).series
    assert [each.reason for each in one.baselines] == ["power limit"]
    assert [each.text for each in one.notes] == ["a <b>new</b> fan"]


def test_too_few_points_say_so_and_generated_ones_that_nobody_measured_them(
    reader: Client,
) -> None:
    few = history([1.0] * (MIN_POINTS - 1))
    for address in (few.get_absolute_url(), "/series"):
        assert "nsufficient data" in reader.get(address).content.decode(), address
    enough = history([1.0] * MIN_POINTS, problem="enough")
    page = reader.get(enough.get_absolute_url()).content.decode()
    assert "nsufficient data" not in page
    assert "No changes found" in page
    (made,) = [one for one in generated_histories() if one.is_generated]
    for address in ("/series", made.get_absolute_url()):
        assert "tag generated" in reader.get(address).content.decode(), address
    assert "generated, not measured" in reader.get(f"/series/{made.pk}.svg").content.decode()
    assert "(generated)" in reader.get(f"/series/{made.pk}/badge.svg").content.decode()


# ── the two sides ───────────────────────────────────────────────────────────


def test_the_sides_of_a_change_say_what_differs_first_and_why(reader: Client) -> None:
    rows = generated_histories(4)
    change = Change.objects.filter(series__in=rows, cause="code").first()
    assert change is not None
    page = change_page(change.pk)
    assert page.before is not None
    assert page.before.revision.name == str(change.previous)
    assert page.after.revision.name == str(change.revision)
    differs = [row.differs for row in page.facts]
    assert differs == sorted(differs, reverse=True)
    assert any(differs)
    assert page.explained is not None
    html = reader.get(change.get_absolute_url()).content.decode()
    assert f"rule: {change.rule}" in html
    assert page.explained.reasons[0][1:] in html
    assert [one.here for one in page.differences] == sorted(
        (one.here for one in page.differences), reverse=True
    )
    assert f"points.json?change={change.pk}" in html
    assert page.why_not_compared.startswith("No kernels to compare: Kiln has no kernel")
    (one,) = columns(reader, f"{page.series.url}/points.json?change={change.pk}")["series"]
    assert change.datum_id in one["columns"]["id"]


def test_only_changed_parameters_are_listed_and_telemetry_is_no_difference(reader: Client) -> None:
    facts = {"driver": "580", "readings": {"power_w": 300}, "config": {"BLOCK_M": 64, "STAGES": 2}}
    later = {"driver": "580", "readings": {"power_w": 310}, "config": {"BLOCK_M": 64, "ASYNC": 1}}
    series = history([100.0] * 9 + [150.0], facts=[facts] * 9 + [later])
    change = step(series, 9)
    page = change_page(change.pk)
    assert [(row.name, row.before, row.after) for row in page.changed_facts] == [
        ("configuration: STAGES", "2", "not set"),
        ("configuration: ASYNC", "not set", "1"),
    ]
    assert {row.name for row in page.other_facts} == {"driver", "power", "configuration: BLOCK_M"}
    point = reader.get(f"{change.datum.get_absolute_url()}.json").json()
    assert point["previous"] == str(change.previous)
    assert [row["name"] for row in point["changed"]] == [row.name for row in page.changed_facts]
    first = Datum.objects.filter(series=series).earliest("at")
    assert reader.get(f"{first.get_absolute_url()}.json").json()["previous"] == ""


def test_a_change_says_why_it_cannot_be_measured_again(admin_client: Client, world: World) -> None:
    problem = world.nodes[0].problem
    fields = {"own_problem": problem, "target": "cpu", "device_name": "CPU emulation"}
    ours, theirs = history([1.0] * 9 + [2.0], **fields), history([1.0] * 9 + [2.0])
    made = history([1.0] * 9 + [2.0], device_name=f"{LABEL}: GPU")
    changes = [step(series, 9) for series in (ours, theirs, made)]
    shown = [change_page(change.pk).actions for change in changes]
    node = TemplateNode.objects.latest("pk")
    assert shown[0].retune_url == f"/retune?node={node.pk}&target=cpu"
    assert shown[0].not_remeasured == "no alert was raised for this change"
    assert shown[1].not_retuned.startswith("another program measured this problem")
    assert shown[2].not_retuned == shown[2].not_remeasured
    text = admin_client.get(changes[2].get_absolute_url()).content.decode()
    assert "Cannot be retuned or re-measured: the values were generated, not measured." in text
    Change.objects.update(alert=make.regression())
    assert change_page(changes[1].pk).actions.remeasure_url.endswith("/remeasure")
    stored = change_page(changes[0].pk).actions
    assert stored.not_remeasured.startswith("no build of the points before the change is stored")
    Worker.objects.all().delete()
    assert change_page(changes[0].pk).actions.not_retuned == "no worker for cpu is online"


def test_a_change_lists_the_commits_of_its_window(reader: Client) -> None:
    series = history([100.0] * 9 + [150.0])
    data = list(Datum.objects.filter(series=series).order_by("at"))
    change = step(
        series,
        9,
        good_revision=data[6].revision,
        since=data[6].at,
        bad_revision=data[9].revision,
        until=data[9].at,
    )
    for n, datum in enumerate(data):
        Revision.objects.filter(pk=datum.revision_id).update(at=datum.at, subject=f"Commit {n}")
    window = change_page(change.pk).window
    assert window is not None
    assert [commit.subject for commit in window.commits] == ["Commit 9", "Commit 8", "Commit 7"]
    text = reader.get(change.get_absolute_url()).content.decode()
    assert "Commit 8" in text
    assert "Commit 6" not in text


def test_our_own_kernels_are_shown_side_by_side(
    reader: Client, world: World, code_cache: Any
) -> None:
    series = history([100.0] * 9 + [150.0])
    first, second = world.kernels
    builds = [first.builds.get(target="gfx942"), make_build(second, "gfx942", code_cache)]
    data = list(Datum.objects.filter(series=series).order_by("at"))
    for datum, build in zip(data[-2:], builds, strict=True):
        datum.kernel, datum.build = build.kernel, build
        datum.save()
    change = step(series, 9)
    page = change_page(change.pk)
    assert page.compared is not None
    assert [side.kernel for side in page.compared.sides] == [first.name, second.name]
    html = reader.get(change.get_absolute_url()).content.decode()
    for part in ("compare-figures", "compare-source", first.name, second.name, "inner loop"):
        assert part in html, part
    assert queries_of(change_page, change.pk) <= most(4 + 8)
    data[-1].kernel, data[-1].build = data[-2].kernel, data[-2].build
    data[-1].save()
    assert "the same build" in change_page(change.pk).why_not_compared


@pytest.mark.parametrize(
    ("repository", "url"),
    [
        ("https://github.com/o/n", "https://github.com/o/n/compare/a%2F1...b"),
        ("https://github.com/o/n.git/", "https://github.com/o/n/compare/a%2F1...b"),
        ("git@gitlab.com:o/n.git", "https://gitlab.com/o/n/-/compare/a%2F1...b"),
        ("javascript:alert(1)", ""),
        ("https://user:password@host/o/n", ""),
        ('https://host/"onclick=x', ""),
        ("kiln", ""),
        ("", ""),
    ],
)
def test_what_lies_between_two_revisions_is_a_link_only_to_the_web(
    repository: str, url: str
) -> None:
    before = Revision(repository=repository, name="a/1")
    links = RevisionLinks({})
    assert links.diff(before, Revision(repository=repository, name="b")) == url
    assert links.diff(before, Revision(repository="https://else.where/o/n", name="b")) == ""
    assert links.diff(before, before) == ""


def test_a_node_and_a_kernel_lead_to_the_histories_of_their_problem(
    reader: Client, world: World
) -> None:
    problem = world.nodes[0].problem
    address = f"/series?problem={problem.pk}"
    history([1.0], own_problem=problem, problem=str(problem))
    history([1.0], problem="another")
    assert address in reader.get(world.nodes[0].get_absolute_url()).content.decode()
    kernel = f"{world.kernels[0].get_absolute_url()}?node={world.nodes[0].pk}"
    assert address in reader.get(kernel).content.decode()
    assert [row.head.problem for row in series_list(Filters(problem=problem.pk)).rows] == [
        str(problem)
    ]


# ── files ───────────────────────────────────────────────────────────────────


def test_the_csv_has_every_point_and_no_formula(reader: Client) -> None:
    series = history([1.0, 2.0], facts=[{"driver": "=cmd|' /C calc'!A0"}, {"driver": "550"}])
    Revision.objects.filter(data__series=series, data__value=1).update(name='+1,"x"\n')
    answer = reader.get(f"/series/{series.pk}.csv")
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer.streaming
    text = b"".join(answer.streaming_content).decode()  # type: ignore[arg-type]
    first, second = csv.DictReader(io.StringIO(text))
    assert (first["value"], first["low"], first["n"], first["unit"]) == ("1.0", "0.99", "20", "ns")
    assert first["revision"] == '\'+1,"x"\n'
    assert first["driver"].startswith("'=cmd")
    assert (second["driver"], second["source"]) == ("550", "sent with a token")
    assert reader.get("/series/999999.csv").status_code == 404


def pictures(series: Series) -> list[str]:
    root, key = f"/series/{series.pk}", f"key={embedding.series_key(series.pk)}"
    plot, badge = f"{root}.svg?{key}", f"{root}/badge.svg?{key}"
    return [plot, f"{plot}&theme=dark", badge, f"{badge}&days=x"]


def test_pictures_are_well_formed_harmless_and_kept_whatever_a_series_is_called(
    client: Client,
) -> None:
    series = history([5.0] * 12, problem=EVIL, metric=EVIL[:60], device_name=EVIL, unit=EVIL[:30])
    step(series, 6, before=4.0)
    for address in pictures(series):
        answer = client.get(address)
        assert answer.status_code == 200, address
        assert answer["Content-Type"] == "image/svg+xml; charset=utf-8"
        assert answer["Content-Security-Policy"] == "default-src 'none'; sandbox"
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Cross-Origin-Resource-Policy"] == "cross-origin"
        assert answer["Cache-Control"] in ("public, max-age=300", "max-age=300, public")
        tags = {
            node.tag.rpartition("}")[2] for node in ElementTree.fromstring(answer.content).iter()
        }
        assert tags <= {
            *("svg", "title", "rect", "text", "line", "polygon", "polyline", "g", "clipPath"),
        }, address
        attributes = {
            name.lower()
            for node in ElementTree.fromstring(answer.content).iter()
            for name in node.attrib
        }
        assert not {name for name in attributes if name.startswith("on") or "href" in name}


def test_a_picture_needs_its_own_key_or_a_login(client: Client, reader: Client) -> None:
    one, other = history([1.0]), history([2.0])
    reader.logout()
    for address in (f"/series/{one.pk}.svg", f"/series/{one.pk}/badge.svg"):
        for key in ("", "?key=", "?key=%C3%A9", f"?key={embedding.series_key(other.pk)}"):
            assert client.get(address + key).status_code == 302, key
        assert client.get(f"{address}?key={embedding.series_key(one.pk)}").status_code == 200
    assert client.get(f"/series/{one.pk}.csv?key={embedding.series_key(one.pk)}").status_code == 302
    client.force_login(User.objects.create_user("somebody"))
    answer = client.get(f"/series/{one.pk}.svg")
    assert answer.status_code == 200
    assert "public" not in answer["Cache-Control"]
    page = client.get(one.get_absolute_url()).content.decode()
    assert f"badge.svg?key={embedding.series_key(one.pk)}" in page


def test_pages_hold_hostile_names_as_text(reader: Client) -> None:
    series = history([5.0] * 12, problem=EVIL, device_name=EVIL, facts=[{"driver": EVIL}] * 12)
    Revision.objects.update(branch=EVIL, repository=EVIL)
    change = step(series, 6, before=4.0, cause="code", explanation={"reasons": [EVIL]})
    Change.objects.update(explained_at=NOW, rule=EVIL)
    for address in (
        "/series",
        series.get_absolute_url(),
        change.get_absolute_url(),
        change.datum.get_absolute_url(),
    ):
        page = reader.get(address).content.decode()
        assert "<script>alert" not in page, address
    text = reader.get(f"{series.get_absolute_url()}/points.json").content.decode()
    assert json.loads(text)["series"][0]["problem"] == EVIL


def test_a_badge_says_figure_change_and_whether_there_are_data_enough() -> None:
    series = history([1000.0] * 10 + [1250.0] * 3)
    step(series, 10)

    def text(days: int, **fields: Any) -> str:
        Series.objects.filter(pk=series.pk).update(**fields)
        return plots.badge(plot_data(series.pk), "light", days, NOW)

    assert "1.250 µs · \N{MULTIPLICATION SIGN}1.25 in 30 d" in text(30)
    assert "#a83206" in text(30)
    assert "1.250 µs · steady for 1 d" in text(1)
    assert "#00694a" in text(30, better="higher")
    assert "insufficient data" in text(30, points=8)
    assert "n 10, 3" in text(30)
    assert "no points" in plots.badge(plot_data(make.series().pk), "dark")


def test_a_plot_of_no_point_of_one_and_of_equal_ones_is_a_picture() -> None:
    for values in ([], [5.0], [5.0] * 3, [1e-12, 1e12], [0.0, 0.0]):
        svg = plots.plot(plot_data(history(values).pk), "light")
        assert "nan" not in svg
        assert ElementTree.fromstring(svg).tag.endswith("svg")


def test_figures_have_four_digits_and_the_unit_that_suits_them() -> None:
    shown = [format_value(value, "ns") for value in (0.5, 12.0, 1234.5, 2_500_000.0, 3e9)]
    assert shown == ["0.5000 ns", "12 ns", "1.234 µs", "2.500 ms", "3 s"]
    assert format_value(1234.5, "GB/s") == "1\u202f234 GB/s"
    assert [format_digits(value) for value in (0, 1e-9, 0.01234, 99.99, 1e12)] == [
        *("0", "1e-09", "0.01234", "99.99", "1e+12"),
    ]
