"""Two revisions over all their series, as a reviewer, a program and CI are told of them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from codegen_app.accounts import tokens
from codegen_app.tracking.compare_revisions.comparison import (
    Grouping,
    RevisionComparison,
    compare_sides,
)
from codegen_app.tracking.compare_revisions.sides import comparison_url, resolve_sides
from codegen_app.tracking.models import Change, Datum, Revision, Series
from codegen_app.tracking.pages.compare_revisions.query import revisions_page, side_choices_page
from scheduler.clients import kiln_client
from scheduler.errors import UserError
from tests.app import factories
from tests.support.measured_revisions import FACTS, each_status, point, revision, store
from tests.support.queries import assert_steady, queries_of

pytestmark = pytest.mark.django_db
COUNTS = {
    **{"slower": 2, "faster": 1, "uncertain": 0, "unknown": 2, "same": 1},
    **{"new": 1, "gone": 1},
}


def statuses(found: RevisionComparison) -> dict[str, str]:
    return {row.problem: row.status for row in found.shown(found.comparison.rows)}


def row(found: RevisionComparison, problem: str) -> Any:
    (one,) = [one for one in found.shown(found.comparison.rows) if one.problem == problem]
    return one


def test_each_series_has_one_status() -> None:
    found = compare_sides(*each_status())
    assert found.counts == COUNTS
    assert statuses(found) == {
        "copy": "slower",
        "gemm slower": "slower",
        "gemm faster": "faster",
        "gemm same": "same",
        "softmax few": "unknown",
        "softmax elsewhere": "unknown",
        "softmax new": "new",
        "softmax gone": "gone",
    }
    # The largest effect first within a status.
    assert [one.problem for one in found.shown(found.comparison.rows)][:3] == [
        *("copy", "gemm slower", "gemm faster"),
    ]
    slower = row(found, "gemm slower")
    assert slower.ratio == pytest.approx(1.2, rel=0.01)
    assert slower.low < slower.ratio < slower.high
    assert (slower.n_before, slower.n_after, slower.unit) == (20, 20, "ns")
    assert slower.before == pytest.approx(1000, rel=0.01)
    assert slower.why.startswith("code")
    assert row(found, "softmax few").why.startswith("insufficient data: 3 samples")
    assert row(found, "softmax elsewhere").why == "different environment: driver 580.95 → 580.159"


def test_what_is_better_the_higher_it_is_is_slower_when_it_falls() -> None:
    found = row(compare_sides(*each_status()), "copy")
    assert found.status == "slower"
    assert found.ratio == pytest.approx(4 / 3, rel=0.01)
    # Its figures stay as they are.
    assert (found.before, found.after) == (pytest.approx(4000, rel=0.01), pytest.approx(3000, 0.01))


def test_the_same_code_in_the_same_environment_is_never_slower() -> None:
    old, new = revision("old", 0), revision("new", 1)
    store(point("mm", 1000, old, code="c"), point("mm", 1300, new, code="c"))
    found = row(compare_sides("old", "new"), "mm")
    assert (found.status, found.why) == ("same", "same code, same environment")


def test_values_of_several_points_are_samples_where_points_have_few() -> None:
    """Of five points with a value each something can be said; of four nothing can."""
    old, new = revision("old", 0), revision("new", 1)
    for of, level in ((old, 1000), (new, 1300)):
        few = [point("five", level + n, of, samples=0, hours=n) for n in range(6)]
        few += [point("four", level + n, of, samples=2, hours=n) for n in range(4)]
        store(*(replace(one, low=None, high=None) for one in few))
    found = compare_sides("old", "new")
    assert statuses(found) == {"five": "slower", "four": "unknown"}
    five, four = row(found, "five"), row(found, "four")
    assert (five.n_before, five.before) == (6, 1002.5)
    assert four.why == (
        "insufficient data: 4 samples, at least 5 required; or 4 more points before it (4 of 8)"
    )


def test_an_interval_stands_for_samples_that_were_rolled_up() -> None:
    old, new = revision("old", 0), revision("new", 1)
    store(point("mm", 1000, old), point("mm", 1100, new))
    whole = row(compare_sides("old", "new"), "mm")
    Datum.objects.update(samples=None)
    rolled = row(compare_sides("old", "new"), "mm")
    assert (rolled.status, rolled.n_before, rolled.n_after) == ("slower", 20, 20)
    assert rolled.ratio == pytest.approx(whole.ratio)
    assert (rolled.before, rolled.after) == (1000, 1100)


def test_points_of_one_environment_are_compared_where_a_revision_was_measured_in_several() -> None:
    """A revision that is measured again elsewhere is not slower for that."""
    other = {**FACTS, "driver": "580.159"}
    old, new = revision("old", 0), revision("new", 1)
    store(
        point("mm", 1000, old),
        point("mm", 2000, old, hours=5, facts=other),
        point("mm", 1000, new),
        point("mm", 2000, new, hours=1, facts={**FACTS, "driver": "600"}),
    )
    found = row(compare_sides("old", "new"), "mm")
    assert (found.status, found.n_before, found.n_after) == ("same", 20, 20)
    assert found.before == pytest.approx(1000, rel=0.01)


def test_what_is_recorded_of_the_code_is_no_other_environment() -> None:
    """Digests of instructions differ between the sides; the environment that both have is used."""
    old, new = revision("old", 0), revision("new", 1)

    def facts(digest: str, driver: str = "580.95") -> dict[str, Any]:
        attributes = {"uuid": "GPU-1", "instructions_digest": digest, "inner_loop": {digest: 1}}
        return {**FACTS, "driver": driver, "attributes": attributes}

    store(
        point("mm", 1000, old, facts=facts("a")),
        point("mm", 1100, new, facts=facts("b")),
        point("mm", 2000, new, hours=1, facts=facts("b", "600")),
    )
    found = row(compare_sides("old", "new"), "mm")
    assert (found.status, found.after) == ("slower", pytest.approx(1100, rel=0.01))


def test_a_value_that_is_not_above_zero_has_no_ratio() -> None:
    old, new = revision("old", 0), revision("new", 1)
    store(point("mm", 1000, old), replace(point("mm", 0, new), samples=(), low=None, high=None))
    found = row(compare_sides("old", "new"), "mm")
    assert (found.status, found.why) == (
        "unknown",
        "a value is at or below 0, so no ratio can be formed",
    )


def test_two_series_that_read_alike_are_two() -> None:
    old, new = revision("old", 0), revision("new", 1)
    for of in (old, new):
        store(point("mm", 1000, of), point("mm", 2000, of, unit="us"))
    found = compare_sides("old", "new")
    assert found.counts["same"] == 2
    assert len({one.name for one in found.shown(found.comparison.rows)}) == 2


def test_means_are_by_graph_device_or_metric() -> None:
    names = each_status()
    node = factories.task().template_node
    graphs = [node.graph.name, "other"]
    other = factories.graph(name="other")
    node.graph.template_nodes.create(
        problem=node.problem, position=9, name="op9", kind="gemm", op="mm"
    )
    other.template_nodes.create(problem=node.problem, position=0, name="op", kind="gemm", op="mm")
    Series.objects.filter(problem="gemm slower").update(own_problem=node.problem)

    def means(grouping: Grouping) -> dict[str, int]:
        groups = compare_sides(*names, grouping=grouping).comparison.groups
        return {one.name: one.n for one in groups}

    # A problem counts in every graph that has it, and once in each; no mean is of two metrics.
    assert means(Grouping.GRAPH) == {
        **{f"{name}, time": 1 for name in graphs},
        "no graph, time": 2,
        "no graph, bandwidth": 1,
    }
    assert means(Grouping.DEVICE) == {"NVIDIA H200, time": 3, "NVIDIA H200, bandwidth": 1}
    assert means(Grouping.METRIC) == {"time": 3, "bandwidth": 1}
    (bandwidth,) = [
        one
        for one in compare_sides(*names, grouping=Grouping.METRIC).comparison.groups
        if one.name == "bandwidth"
    ]
    assert bandwidth.low < bandwidth.ratio < bandwidth.high
    assert bandwidth.ratio == pytest.approx(4 / 3, rel=0.01)


# ── sides ────────────────────────────────────────────────────────────────────────────────────────


def branches() -> None:
    """Main goes on after a branch left it; both have commits of the same day."""
    store(
        *(point("mm", 1000, revision(f"main{day}", day)) for day in range(6)),
        *(point("mm", 1100, revision(f"topic{day}", day, "topic")) for day in (3, 4)),
        # Merged later: then it is main's, too.
        point("mm", 1100, revision("topic3", 3, "main")),
        point("mm", 1100, revision("undated", None, "wild")),
    )


def test_a_branch_is_compared_with_where_it_left_its_base() -> None:
    branches()
    old, new = resolve_sides("base:main", "branch:topic")
    assert (old.name, new.name) == ("main3", "topic4")
    assert resolve_sides("main1", "branch:main")[1].name == "main5"
    # Given by the client: any revision that was measured.
    assert resolve_sides("main2", "branch:topic")[0].name == "main2"
    # One commit on two branches is one revision.
    both = resolve_sides("topic3", "main5")[0]
    assert set(both.branches) == {"main", "topic"}
    assert len(both.keys) == 2


def test_a_merge_base_swaps_by_its_name(reader: Client) -> None:
    branches()
    page = reader.get("/compare/revisions?before=base:main&after=branch:topic&start=0")
    swapped = "/compare/revisions?before=branch%3Atopic&amp;after=main3"
    assert swapped in page.content.decode()


def test_a_run_is_a_side() -> None:
    old, new = revision("old", 0), revision("new", 1)
    task = factories.task()
    store(point("mm", 1000, old), point("mm", 1000, new), point("mm", 2000, new, hours=1))
    Datum.objects.filter(value=2000).update(run=task.run)
    found = row(compare_sides("old", f"run:{task.run_id}"), "mm")
    assert found.ratio == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("", "main1", "before: specify a revision"),
        ("main1", "", "after: specify a revision"),
        ("nothing", "main1", "before: no measured revision is named “nothing”"),
        ("main", "topic4", "before: “main” matches several revisions: main0, main1, main2, main"),
        ("mai", "topic4", "before: no measured revision"),
        ("main1", "main1", "before and after are the same: main1 (main)"),
        ("main1", "branch:nowhere", "after: branch “nowhere” has no revisions"),
        ("main1", "run:77", "after: tuning run “77” does not exist"),
        ("main1", "run:x", "after: tuning run “x” does not exist"),
        ("run:²", "main1", "before: tuning run “²” does not exist"),
        ("main1", "base:main", "after: base:NAME is valid for the side before only"),
        ("base:main", "branch:main", "before: base:main requires branch:NAME after it"),
        ("base:nowhere", "branch:topic", "before: no revision of “nowhere” is older than"),
        ("base:main", "branch:wild", "before: the revisions of “wild” have no time"),
        ("x" * 501, "main1", "before: a name has at most 500 characters"),
    ],
)
def test_a_side_that_is_none_is_a_line(before: str, after: str, line: str, reader: Client) -> None:
    branches()
    with pytest.raises(UserError) as error:
        resolve_sides(before, after)
    assert str(error.value).startswith(line)
    if before and after and len(before) < 500:
        page = reader.get(comparison_url(before, after))
        assert page.status_code == 422
        assert line[:40] in page.content.decode()
        assert (
            reader.get(f"{comparison_url(before, after)}".replace("?", ".md?")).status_code == 422
        )


def test_a_name_of_two_repositories_needs_one() -> None:
    store(
        point("mm", 1000, revision("v1", 0, repository="one")),
        point("mm", 1000, revision("v1", 0, repository="two")),
        point("mm", 1000, revision("v2", 1, repository="two")),
    )
    with pytest.raises(UserError, match=r"before: “v1” is in several repositories \(one, two\)"):
        resolve_sides("v1", "v2")
    assert [side.repository for side in resolve_sides("v1", "v2", "two")] == ["two", "two"]


# ── the page, its twins, the API and the client ──────────────────────────────────────────────────


def test_queries_are_as_many_whatever_the_number_of_series() -> None:
    counts = []
    old, new = each_status()
    branches()
    for problems in (range(1), range(150)):
        for of in (Revision.objects.get(name=old), Revision.objects.get(name=new)):
            key = replace(revision(of.name), at=of.at)
            store(*(point(f"many {n}", 1000, key, samples=5) for n in problems))
        counts.append(
            [
                queries_of(revisions_page, old, new),
                queries_of(revisions_page, old[:12], new[:12]),
                queries_of(revisions_page, "base:main", "branch:topic"),
                queries_of(side_choices_page),
            ]
        )
    assert_steady(*counts, usual=[9, 11, 10, 3])
    page = revisions_page(old, new)
    assert (page.total, len(page.rows), page.end) == (8 + 150, 100, 100)


def test_page_json_markdown_api_and_client_agree(
    reader: Client,
    transactional_db: None,
    live_server: Any,
    tmp_path: Path,
    capsys: Any,
    settings: Any,
) -> None:
    settings.SITE_URL = "https://kiln.example"
    old, new = each_status()
    address = comparison_url(old, new)
    page = reader.get(address).content.decode()
    twin = reader.get(address.replace("?", ".json?")).json()
    markdown = reader.get(address.replace("?", ".md?")).content.decode()
    owner = User.objects.create_superuser("ci")
    _, text = tokens.create_token(owner, "CI", ["read"], None)
    headers = {"Authorization": f"Bearer {text}"}
    answer = reader.get("/api/v1/compare", {"before": old, "after": new}, headers=headers).json()

    assert twin["counts"] == answer["counts"] == COUNTS
    assert [one["row"] for one in twin["rows"]] == [
        {**one, "url": f"/series/{one['series']}"} for one in answer["rows"]
    ]
    assert twin["groups"] == answer["groups"]
    assert answer["markdown"] == markdown
    assert answer["url"] == f"https://kiln.example{address}"
    for one in answer["rows"]:
        assert one["problem"] in page
        if one["ratio"]:
            cells = f"{one['ratio']:.3f}", f"{one['low']:.3f} to {one['high']:.3f}"
            assert f"| {cells[0]} | {cells[1]} | {one['n_before']}, {one['n_after']} |" in markdown
            assert cells[0] in page

    (tmp_path / "token").write_text(text)
    given = ["--url", live_server.url, "--token-file", f"{tmp_path}/token"]
    assert kiln_client.main(["compare", old, new, *given]) == 0
    sent = capsys.readouterr().out
    assert sent == markdown
    assert kiln_client.main(["compare", old, new, *given, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == answer["rows"]


def test_the_client_says_to_ci_whether_something_regressed(
    transactional_db: None, live_server: Any, tmp_path: Path, capsys: Any, settings: Any
) -> None:
    settings.SITE_URL = live_server.url
    old, new = each_status()
    _, text = tokens.create_token(User.objects.create_superuser("ci"), "CI", ["read"], None)
    (tmp_path / "token").write_text(text)
    given = ["--url", live_server.url, "--token-file", f"{tmp_path}/token", "--tries", "1"]

    def status(*arguments: str) -> int:
        return kiln_client.main(["compare", *arguments, *given])

    assert status(old, new, "--fail-on", "regression") == 1
    assert "regression: 2 series; http" in capsys.readouterr().err
    assert status(old, new, "--fail-on", "regression", "--least-effect", "0.4") == 0
    assert status(old, new, "--fail-on", "gone", "--group", "device") == 1
    assert status("nothing", new, "--fail-on", "regression") == 2
    assert "422: before: no measured revision" in capsys.readouterr().err
    assert status(old, new, "--least-effect", "7") == 2
    assert "least_effect" in capsys.readouterr().err
    # A comparison of nothing has a status of its own.
    Datum.objects.update(samples=None, n=1)
    assert status(old, new, "--fail-on", "regression") == kiln_client.NOTHING_COMPARED == 3
    assert "no series could be compared" in capsys.readouterr().err
    assert status(old, new, "--fail-on", "regression", "--allow-nothing") == 0
    assert "no series could be compared" in capsys.readouterr().err
    assert status(old, new, "--fail-on", "regression", "--fail-on", "unknown") == 1
    (tmp_path / "token").write_text("kiln_wrong")
    assert status(old, new) == 2


def test_the_address_holds_what_is_shown(reader: Client) -> None:
    old, new = each_status()

    def shown(**given: object) -> list[str]:
        page = reader.get(comparison_url(old, new, **given).replace("?", ".json?")).json()
        assert page["total"] == len(page["rows"])
        return [one["row"]["problem"] for one in page["rows"]]

    assert shown(status="slower") == ["copy", "gemm slower"]
    assert shown(search="GEMM h200") == ["gemm slower", "gemm faster", "gemm same"]
    assert shown(status="slower", search="gemm") == ["gemm slower"]
    assert shown(group="metric", within="bandwidth") == ["copy"]
    assert shown(search="nowhere") == []
    empty = reader.get(comparison_url(old, new, search="nowhere")).content.decode()
    assert "show all 8" in empty
    beyond = reader.get(comparison_url(old, new, start=500))
    assert beyond.status_code == 200
    odd = reader.get(comparison_url(old, new, status="worse", group="colour", least_effect="x"))
    assert odd.status_code == 200
    for name in ("status", "group", "least_effect"):
        assert f"{name}: " in odd.content.decode()


def test_a_row_leads_to_its_history_and_to_the_change_between(reader: Client) -> None:
    old, new = each_status()
    datum = Datum.objects.get(series__problem="gemm slower", revision__name=new)
    fields = {
        **{"series": datum.series, "datum": datum, "at": datum.at, "revision": datum.revision},
        **{"before": 1000, "after": 1200, "n_before": 5, "n_after": 5, "errors": 9.0},
        "worse": True,
    }
    found = Change.objects.create(**fields)
    elsewhere = {**fields, "at": datum.at + timedelta(days=3)}
    withdrawn = Datum.objects.get(series__problem="gemm faster", revision__name=new)
    Change.objects.create(
        **{**fields, "series": withdrawn.series, "datum": withdrawn, "withdrawn_at": datum.at}
    )
    later = Datum.objects.get(series__problem="gemm same", revision__name=new)
    Change.objects.create(**{**elsewhere, "series": later.series, "datum": later})
    for before, after in ((old, new), (new, old)):
        rows = revisions_page(before, after).rows
        assert {one.row.problem: one.change_url for one in rows if one.change_url} == {
            "gemm slower": f"/changes/{found.pk}"
        }
    page = reader.get(comparison_url(old, new)).content.decode()
    assert f'href="/series/{datum.series_id}"' in page
    assert f'href="/changes/{found.pk}"' in page


def test_there_is_something_to_choose_from(reader: Client) -> None:
    empty = reader.get("/compare/revisions").content.decode()
    assert "kiln_client push" in empty
    branches()
    task = factories.task()
    Datum.objects.filter(revision__name="main0").update(run=task.run)
    page = side_choices_page()
    texts = [one.text for one in page.choices]
    assert texts[:2] == ["branch:main", "branch:topic"]
    assert {"main5", "topic4", "undated", f"run:{task.run_id}"} <= set(texts)
    assert {one.text for one in side_choices_page("topic").choices} == {
        *("branch:topic", "topic3", "topic4"),
    }
    shown = reader.get("/compare/revisions?before=main1").content.decode()
    assert "Select the after side" in shown
    assert "before=main1&amp;after=branch%3Atopic" in shown
    assert "after=main0" in shown
    assert "after=main1" not in shown, "it is not compared with itself"
    empty = reader.get("/compare/revisions?find=zzz").content.decode()
    assert "No revision, branch or run matches “zzz”" in empty


def test_a_pull_request_is_one_click_from_its_verdict(reader: Client) -> None:
    branches()
    Revision.objects.filter(branch="topic").update(
        is_trunk=False, merge_base="main3", pull_request="831", subject="Use wider tiles"
    )
    [topic] = [one for one in side_choices_page("831").choices if one.kind == "branch"]
    assert topic.of == "newest of 2 revisions, pull request 831"
    assert {one.base_url for one in side_choices_page("main").choices} == {""}
    page = reader.get(topic.base_url).content.decode()
    for text in ("1 slower", "of 1 series, most", "Use wider tiles", "831", "1.100"):
        assert text in page, text
    assert "is not the merge base" not in page
    Revision.objects.update(repository="https://github.com/team/kernels")
    page = reader.get("/compare/revisions?before=branch:main&after=branch:topic").content.decode()
    for link in ("commit/topic4", "pull/831", "compare/main5...topic4"):
        assert f'href="https://github.com/team/kernels/{link}"' in page, link
    assert "Before is not the merge base main3" in page
    assert "before=base%3A&amp;after=branch%3Atopic" in page


def test_the_verdict_is_that_of_all_series_whatever_is_displayed(reader: Client) -> None:
    branches()
    address = "/compare/revisions?before=main0&after=topic4"
    assert "1 slower" in reader.get(f"{address}&status=same").content.decode()
    address = "/compare/revisions?before=main0&after=main5"
    assert "No series is slower" in reader.get(address).content.decode()


def test_a_revision_that_is_called_as_a_branch_is_can_be_chosen() -> None:
    store(point("mm", 1000, revision("branch:x")), point("mm", 1000, revision("v2", 1)))
    texts = [one.text for one in side_choices_page().choices if one.kind == "revision"]
    assert texts == ["v2", "revision:branch:x"]
    assert resolve_sides("revision:branch:x", "v2")[0].name == "branch:x"


def test_text_of_others_stays_text(reader: Client) -> None:
    evil = "<script>alert(1)</script>|`x`"
    old, new = revision("old<b>", 0, evil), revision("new<b>", 1, evil)
    store(point(evil, 1000, old, device=evil), point(evil, 1300, new, device=evil))
    address = comparison_url("old<b>", "new<b>")
    for page in (reader.get(address), reader.get("/compare/revisions")):
        assert "<script>alert" not in page.content.decode()
    assert "<script>" not in reader.get(address.replace("?", ".md?")).content.decode()
