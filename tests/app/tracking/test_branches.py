"""Branches: a history is its trunk's, and points of other branches raise nothing."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import connection
from django.db.models import CASCADE, PROTECT, RESTRICT, SET_NULL
from django.test import Client
from django.utils import timezone

from codegen_app.accounts import tokens
from codegen_app.accounts.models import AuditEntry
from codegen_app.tracking.compare_revisions.comparison import compare_sides
from codegen_app.tracking.models import (
    Batch,
    Change,
    Datum,
    Repository,
    RetentionPolicy,
    Revision,
    Series,
)
from codegen_app.tracking.models.retention import Kept
from codegen_app.tracking.pages.history.chart import history_chart
from codegen_app.tracking.pages.history.point import point_page
from codegen_app.tracking.pages.history.query import history_page
from codegen_app.tracking.queries.revision_links import RevisionLinks, revision_links
from codegen_app.tracking.services import (
    alert_pipeline,
    branch_retention,
    detection,
    point_deletion,
    rollup,
    thresholds,
    trunk,
    withdrawals,
)
from codegen_app.tracking.services.branch_notes import admin_path, upload_notes
from codegen_app.tracking.services.recount import recount
from scheduler.results.points.model import Point, RevisionKey
from tests.support.queries import queries_of, statements_of
from tests.support.team import (
    MACHINE,
    REPOSITORY,
    alerts,
    commits,
    history,
    point,
    push,
    push_by_revision,
)

pytestmark = pytest.mark.django_db
COUNTED = ("points", "branch_points", "not_positive", "withdrawn", "first_at", "last_at")
NOW = datetime.now(UTC).replace(microsecond=0)


def changed_at() -> list[str]:
    rows = Change.objects.filter(withdrawn_at=None).order_by("at")
    return list(rows.values_list("revision__name", flat=True))


def test_a_slower_branch_raises_nothing_on_the_trunk() -> None:
    """Eight runs at +10% between the runs of the trunk, which stays as it is."""
    main = commits(40)
    branch = commits(8, prefix="b", branch="faster-gemm", last=main[35].at)
    slower = history("gemm", branch, 110.0, MACHINE.with_code("b"))
    push(history("gemm", main[:30], 100.0))
    push_by_revision(slower)
    push_by_revision(history("gemm", main[30:], 100.0))
    assert (alerts(), changed_at()) == ([], [])
    series = Series.objects.get()
    assert (series.points, series.branch_points) == (48, 8)
    assert (series.first_at, series.last_at) == (main[0].at, main[-1].at)


@pytest.mark.parametrize("seed", range(4))
def test_a_series_spans_its_trunk_in_whatever_order_points_come(seed: int) -> None:
    """Or its branches, as long as it has no trunk."""
    draw = random.Random(seed)
    rows = [
        row
        for kind in (commits(6), commits(6, prefix="b", branch="b", last=NOW))
        for row in history("gemm", kind, 100.0)
    ]
    draw.shuffle(rows)
    for start in (0, 3, 7):
        push(rows[start : {0: 3, 3: 7, 7: 12}[start]])
        series, points = Series.objects.get(), Datum.objects.order_by("at")
        shown = points.filter(is_trunk=True) or points
        assert (series.first_at, series.last_at) == (shown[0].at, shown.reverse()[0].at)
        assert series.points == points.count()
        assert series.branch_points == points.filter(is_trunk=False).count()
        columns = Series.objects.values(*COUNTED)
        stored = columns.get(pk=series.pk)
        recount([series.pk])
        assert columns.get(pk=series.pk) == stored, "as counted anew"


def test_runs_of_old_branches_do_not_delay_the_step_of_the_trunk() -> None:
    """After each commit of the trunk a branch is measured that forked before the step."""
    main = commits(40)
    points = history("gemm", main[:30], 100.0)
    points += history("gemm", main[30:], 125.0, MACHINE.with_code("b"))
    moments = [revision.at + timedelta(minutes=30) for revision in main if revision.at]
    old = [
        commits(1, prefix=f"old{n}-", branch=f"pr-{n}", last=moment)[0]
        for n, moment in enumerate(moments[29:])
    ]
    push(points[:30])
    known = []
    for on_trunk, revision in zip(points[30:], old[1:], strict=True):
        push([on_trunk])
        push(history("gemm", [revision], 100.0))
        known.append(changed_at())
    assert known[2] == []
    assert known[3] == ["c30"], "at its fourth value, as without branches"
    assert [(alert.kind, alert.n_series) for alert in alerts()] == [("regression", 1)]


def test_a_default_branch_that_is_set_later_makes_its_points_the_history() -> None:
    develop = commits(40, branch="develop")
    push(history("gemm", develop[:30], 100.0))
    push(history("gemm", develop[30:], 125.0, MACHINE.with_code("b")))
    assert changed_at() == []
    repository = Repository.objects.get(name=REPOSITORY)
    assert (repository.default_branch, repository.marked_series) == ("", None)

    admin = User.objects.create_superuser("admin")
    trunk.set_default_branch(repository.pk, " develop ", admin)
    alert_pipeline.process_pending()
    assert changed_at() == ["c30"]
    assert len(alerts("new")) == 1
    assert not Datum.objects.filter(is_trunk=False).exists()
    assert Series.objects.get().branch_points == 0
    assert AuditEntry.objects.filter(action="set the default branch", why="develop").exists()

    trunk.set_default_branch(repository.pk, "main", admin)
    alert_pipeline.process_pending()
    assert changed_at() == [], "the points are of a branch again"
    assert not alerts("new")
    assert not detection.unchecked_series().exists()


def test_a_default_branch_that_is_sent_is_stored_once() -> None:
    def sent(prefix: str, default_branch: str) -> None:
        rows = commits(1, prefix=prefix, branch="develop")
        push(
            history(
                "gemm",
                [type(row)(**vars(row) | {"default_branch": default_branch}) for row in rows],
                100.0,
            )
        )

    push(history("gemm", commits(3, branch="develop"), 100.0))
    assert Series.objects.get().branch_points == 3
    sent("a", "develop")
    assert Series.objects.get().branch_points == 0
    sent("b", "main")
    assert Repository.objects.get(name=REPOSITORY).default_branch == "develop"
    assert Series.objects.get().branch_points == 0


def test_marking_continues_where_a_worker_was_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trunk, "STEP_SERIES", 2)
    develop = commits(3, branch="develop")
    push([point for n in range(5) for point in history(f"gemm {n}", develop, 100.0)])
    repository = Repository.objects.get(name=REPOSITORY)
    trunk.set_default_branch(repository.pk, "develop main", User.objects.create_superuser("admin"))
    assert trunk.mark_points() == 2
    assert Series.objects.filter(branch_points=0).count() == 2
    assert alert_pipeline.has_pending()
    alert_pipeline.process_pending()
    assert Series.objects.filter(branch_points=0).count() == 5
    assert Repository.objects.get().marked_series is None


def test_a_branch_that_is_rebased_and_pushed_by_force_raises_nothing() -> None:
    """Its first commits are never measured again, and others come at the same times."""
    main = commits(40)
    push(history("gemm", main, 100.0))
    for prefix, value in (("first", 110.0), ("rebased", 120.0), ("again", 90.0)):
        branch = commits(5, prefix=prefix, branch="topic", last=main[-1].at)
        push_by_revision(history("gemm", branch, value, MACHINE.with_code(prefix)))
    assert (alerts(), changed_at()) == ([], [])
    assert Series.objects.get().branch_points == 15


def test_a_commit_that_is_merged_by_fast_forward_counts_from_then_on() -> None:
    """First it is sent on its branch, then on the trunk; it is sent twice there."""
    main = commits(40)
    slower = MACHINE.with_code("b")
    push(history("gemm", main[:30], 100.0))
    topic = [type(row)(row.name, row.at, "topic", row.repository) for row in main[30:]]
    push(history("gemm", topic, 125.0, slower))
    assert alerts() == []
    for _ in range(2):
        push(history("gemm", main[30:], 125.0, slower))
    assert changed_at() == ["c30"]
    assert len(alerts()) == 1
    assert Revision.objects.filter(name="c30").count() == 2


def samples_of(name: str, value: float, **revision: str) -> list[Point]:
    """Six runs of one revision, enough for an interval."""
    key = RevisionKey(name, NOW, repository=REPOSITORY, **revision)
    return [
        replace(point("gemm", key, value, MACHINE.with_code(name)), value=value * (1 + n / 1000))
        for n in range(6)
    ]


def test_a_branch_is_compared_with_the_trunk_at_its_recorded_merge_base() -> None:
    main = commits(6, last=NOW - timedelta(hours=1))
    for n, revision in enumerate(main):
        push(samples_of(revision.name, 100.0 * (1 + n / 10), branch="main"))
    push(samples_of("topic1", 110.0, branch="topic", merge_base="c0", pull_request="https://f/1"))
    push(samples_of("other1", 110.0, branch="other"))
    page = history_page(Series.objects.get().pk)
    rows = {row.branch: row for row in page.branches}
    recorded, derived = rows["topic"].trunk, rows["other"].trunk
    assert recorded is not None
    assert (recorded.base, recorded.is_recorded, recorded.status) == ("c0", True, "slower")
    assert recorded.ratio == pytest.approx(1.10, abs=0.001)
    assert (recorded.n_before, recorded.n_after) == (6, 6)
    assert derived is None, "the trunk was measured at the same time, not before"
    assert rows["topic"].pull_request_url == "https://f/1"
    assert compare_sides("base:main", "branch:topic").before.name == "c0"
    assert compare_sides("base:", "branch:topic").before.name == "c0"


def test_a_merge_base_that_was_not_measured_is_a_time_up_to_which_the_trunk_counts() -> None:
    """The trunk of days later, when the branch was pushed, has changes that the branch lacks."""
    days = [NOW - timedelta(days=9 - day) for day in range(5)]
    for n, day in enumerate(days):
        key = RevisionKey(f"c{n}", day, "main", REPOSITORY)
        values = [100.0 * (1 + n / 10) + run / 10 for run in range(6)]
        push([point("gemm", key, value, MACHINE.with_code(key.name)) for value in values])
    fork = {"merge_base": "between c1 and c2", "merge_base_at": days[1] + timedelta(hours=1)}
    tip = RevisionKey("tip", NOW - timedelta(days=1), "topic", REPOSITORY, **fork)
    push([point("gemm", tip, 110.0 + run / 10, MACHINE.with_code("tip")) for run in range(6)])
    [row] = history_page(Series.objects.get().pk).branches
    assert row.trunk is not None
    assert (row.trunk.base, row.trunk.is_recorded, row.trunk.status) == ("c1", False, "same")
    assert compare_sides("base:main", "branch:topic").before.name == "c1"
    # A time of exactly that of a revision includes it.
    Revision.objects.filter(name="tip").update(merge_base_at=days[0])
    assert compare_sides("base:", "tip").before.name == "c0"
    [row] = history_page(Series.objects.get().pk).branches
    assert row.trunk is not None
    assert row.trunk.base == "c0"


def test_a_branch_without_a_merge_base_is_compared_with_the_trunk_before_it() -> None:
    push(history("gemm", commits(5), 100.0))
    after = datetime.now(UTC) + timedelta(minutes=2)
    branch = commits(3, prefix="b", branch="topic", last=after)
    push(history("gemm", branch, 110.0))
    [row] = history_page(Series.objects.get().pk).branches
    assert row.trunk is not None
    assert (row.trunk.status, row.trunk.ratio) == ("unknown", None), "the trunk has 4 points"
    assert (row.trunk.base, row.trunk.is_recorded) == ("c3", False)
    assert (row.points, row.newest.revision) == (3, "b2")
    newest = Datum.objects.get(revision__name="b2")
    assert point_page(newest.series_id, newest.pk).trunk == row.trunk


def test_one_value_of_a_branch_is_compared_with_the_history_of_the_trunk() -> None:
    push(history("gemm", commits(40), 100.0))
    after = datetime.now(UTC) + timedelta(minutes=2)
    for name, value in (("slower", 110.0), ("same", 100.2)):
        fork = commits(1, prefix=name, branch=name, last=after)
        fork = [replace(row, merge_base="c30") for row in fork]
        push(history("gemm", fork, value, MACHINE.with_code(name)))
    rows = {row.branch: row.trunk for row in history_page(Series.objects.get().pk).branches}
    slower, same = rows["slower"], rows["same"]
    assert slower is not None
    assert same is not None
    assert (slower.status, same.status) == ("slower", "same")
    assert slower.ratio == pytest.approx(1.10, abs=0.02)
    assert (slower.base, slower.n_after) == ("c30", 1)
    assert slower.n_before > 1


@pytest.mark.parametrize(
    ("repository", "text", "url"),
    [
        ("https://github.com/o/n", "12", "https://github.com/o/n/pull/12"),
        ("git@gitlab.com:o/n.git", "!12", "https://gitlab.com/o/n/-/merge_requests/12"),
        ("kernels", "12", ""),
        ("kernels", "https://forge.example/12", "https://forge.example/12"),
        ("https://github.com/o/n", "javascript:alert(1)", ""),
    ],
)
def test_a_pull_request_is_a_link_by_its_number_or_address(
    repository: str, text: str, url: str
) -> None:
    revision = Revision(repository=repository, name="a", pull_request=text)
    assert RevisionLinks({}).pull_request(revision) == url


def test_a_series_without_its_trunk_says_so_and_how_to_mend_it() -> None:
    push(history("gemm", commits(4, branch="develop"), 100.0))
    repository = Repository.objects.get()
    page = history_page(Series.objects.get().pk)
    assert page.untracked.startswith(
        f"It has no points of the trunk: the points are of “develop”, and the trunk of"
        f" {REPOSITORY} is main, master, trunk. Send results of the trunk, or default_branch"
    )
    assert f"/repository/{repository.pk}/change/" in page.untracked
    push(history("gemm", commits(1), 100.0))
    assert history_page(Series.objects.get().pk).untracked == ""


def test_a_dry_run_of_thresholds_counts_the_points_of_the_trunk() -> None:
    push(history("gemm", commits(12), 100.0) + history("gemm", commits(3, branch="topic"), 110.0))
    assert thresholds.dry_run(Series.objects.get(), thresholds.Proposal(), 10).points == 12


def test_points_of_branches_are_on_the_chart_only_if_they_are_asked_for(client: Client) -> None:
    push(history("gemm", commits(4), 100.0))
    push(history("gemm", commits(2, prefix="a", branch="a/<b>"), 110.0))
    push(history("gemm", commits(3, prefix="b", branch="b"), 120.0))
    series = Series.objects.get()
    client.force_login(User.objects.create_user("ada"))

    def counts(query: str) -> tuple[int, int]:
        [row] = client.get(f"{series.get_absolute_url()}/points.json{query}").json()["series"]
        return len(row["columns"]["id"]), len(row["branches"]["id"])

    assert counts("") == (4, 0)
    assert counts("?branch=*") == (4, 5)
    assert counts("?branch=a/%3Cb%3E") == (4, 2)
    assert counts("?branch=unknown") == (4, 0)
    html = client.get(series.get_absolute_url(), {"branch": "a/<b>"}).text
    assert "points.json?branch=a%2F%3Cb%3E" in html
    assert "a/<b>" not in html
    assert "with a/&lt;b&gt;" in html


def test_the_scale_of_a_series_without_its_trunk_is_that_of_its_branches() -> None:
    push(history("gemm", commits(3, branch="topic"), 5_000_000.0))
    [row] = history_chart([Series.objects.get().pk], branch="topic").series
    assert row.shown_unit == "ms"
    assert row.first_level == pytest.approx(5_000_000.0, rel=0.1)


def test_the_number_of_queries_does_not_grow_with_branches() -> None:
    push(history("gemm", commits(4), 100.0))
    series = Series.objects.get().pk
    push(history("gemm", commits(2, prefix="a", branch="a"), 110.0))
    few = queries_of(history_page, series)
    for n in range(5):
        push(history("gemm", commits(2, prefix=f"b{n}-", branch=f"b{n}"), 110.0))
    assert queries_of(history_page, series) == few <= 22


def test_links_follow_the_patterns_of_the_repository() -> None:
    push(history("gemm", commits(2, repository="kernels"), 100.0))
    first, second = Revision.objects.order_by("pk")
    assert revision_links([first]).commit(first) == ""
    Repository.objects.update(
        commit_url="https://forge.example/k/c/{commit}",
        compare_url="https://forge.example/k/{before}..{after}",
    )
    links = revision_links([first, second])
    first.name = "a/1?"
    assert links.commit(first) == "https://forge.example/k/c/a%2F1%3F"
    assert links.diff(first, second) == f"https://forge.example/k/a%2F1%3F..{second.name}"


@pytest.mark.parametrize(
    ("field", "pattern"),
    [
        ("commit_url", "https://forge.example/commit"),
        ("commit_url", "javascript:alert({commit})"),
        ("commit_url", "https://forge.example/{commit}/{commit}"),
        ("compare_url", "https://forge.example/{before}"),
        ("compare_url", "https://forge.example/{before}/{after}/{other}"),
    ],
)
def test_a_pattern_without_its_place_or_of_another_kind_is_refused(
    field: str, pattern: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        Repository(name="x", **{field: pattern}).full_clean()
    assert list(refused.value.message_dict) == [field]


def test_an_administrator_sets_trunk_and_links_and_it_is_recorded(client: Client) -> None:
    push(history("gemm", commits(4, branch="develop"), 100.0))
    repository = Repository.objects.get()
    client.force_login(User.objects.create_superuser("root"))
    address = admin_path(repository)
    assert client.get(address).status_code == 200
    form = {"default_branch": "develop", "commit_url": "https://f.example/{commit}"}
    assert client.post(address, form | {"compare_url": ""}).status_code == 302
    repository.refresh_from_db()
    assert (repository.default_branch, repository.marked_series) == ("develop", 0)
    assert repository.commit_url == "https://f.example/{commit}"
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"set the default branch", "change"} <= actions


def policy(days: int = 30) -> RetentionPolicy:
    row, _ = RetentionPolicy.objects.update_or_create(
        what=Kept.BRANCHES, defaults={"name": "branches", "days": days, "active": True}
    )
    return row


def age(branch: str, days: int) -> None:
    moment = timezone.now() - timedelta(days=days)
    Revision.objects.filter(branch=branch).update(last_stored_at=moment)


def test_points_of_a_branch_go_thirty_days_after_its_last_one() -> None:
    push(history("gemm", commits(4), 100.0))
    push(history("gemm", commits(3, prefix="o", branch="old"), 110.0))
    push(history("gemm", commits(3, prefix="n", branch="new"), 110.0))
    push(history("copy", commits(2, prefix="o", branch="old"), 110.0))
    age("old", 31)
    age("new", 31)
    Revision.objects.filter(branch="new", name="n2").update(last_stored_at=timezone.now())
    row = policy()
    assert rollup.format_count(row, rollup.count_due(row)) == "5 points"
    withdrawn = Datum.objects.filter(revision__branch="old").first()
    assert withdrawn is not None
    withdrawals.withdraw(withdrawn, "noisy", User.objects.create_superuser("admin"))
    assert rollup.roll_up(row) == 5
    gemm, copy = Series.objects.get(problem="gemm"), Series.objects.get(problem="copy")
    assert (gemm.points, gemm.branch_points) == (7, 3)
    assert (copy.points, copy.branch_points, copy.last_at) == (0, 0, None)
    assert rollup.count_due(row) == 0
    assert rollup.roll_up(row) == 0


def test_a_branch_that_gets_points_again_keeps_the_new_ones() -> None:
    push(history("gemm", commits(3, prefix="o", branch="old"), 110.0))
    age("old", 31)
    assert rollup.roll_up(policy()) == 3
    push(history("gemm", commits(4, prefix="o", branch="old"), 110.0))
    assert rollup.roll_up(policy()) == 0
    assert Series.objects.get().branch_points == 4


def test_a_point_that_is_stored_during_the_deletion_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """An upload is committed after the revisions of dead branches were read."""
    push(history("gemm", commits(3, prefix="o", branch="old"), 110.0))
    age("old", 31)
    deletable = point_deletion.deletable

    def store_first(*, is_trunk: bool) -> object:
        monkeypatch.undo()
        push(history("gemm", commits(1, prefix="o", branch="old"), 111.0))
        return deletable(is_trunk=is_trunk)

    monkeypatch.setattr(branch_retention, "deletable", store_first)
    branch_retention.delete_points(timezone.now() - timedelta(days=30), 100)
    assert Datum.objects.filter(revision__name="o0").count() == 2


def test_deletion_continues_after_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollup, "STEP_ROWS", 4)
    push(history("gemm", commits(10, prefix="o", branch="old"), 110.0))
    age("old", 31)
    row = policy()
    assert rollup.step(row.pk) == (4, False)
    assert Series.objects.get().branch_points == 6
    assert rollup.roll_up(row) == 6
    assert not Datum.objects.exists()


def test_what_a_site_has_stored_stays_a_history() -> None:
    """By the migration: a repository that was never measured on a usual trunk keeps its largest
    branch as one, and nothing is deleted where there are branches."""
    migration = import_module("codegen_app.migrations.0051_branches")
    rows = [
        *(("usual", "main"), ("usual", "topic"), ("plain", ""), ("plain", "topic")),
        *(("flow", "develop"), ("flow", "develop"), ("flow", "a b"), ("flow", "release")),
    ]
    for n, (repository, branch) in enumerate(rows):
        Revision.objects.create(repository=repository, branch=branch, name=f"r{n}")
    RetentionPolicy.objects.all().delete()
    migration._find_trunks(apps, connection.schema_editor())
    found = {row.name: (row.default_branch, row.marked_series) for row in Repository.objects.all()}
    assert found == {"usual": ("", 0), "plain": ("", 0), "flow": ("develop", 0)}
    on_branches = Revision.objects.filter(is_trunk=False).order_by("pk")
    assert [row.branch for row in on_branches] == ["topic", "topic", "a b", "release"]
    assert all(row.last_stored_at for row in on_branches)
    row = RetentionPolicy.objects.get()
    assert (row.what, row.days, row.active) == ("branches", 30, False)


def test_a_new_site_deletes_points_of_branches() -> None:
    migration = import_module("codegen_app.migrations.0051_branches")
    RetentionPolicy.objects.all().delete()
    migration._find_trunks(apps, connection.schema_editor())
    assert RetentionPolicy.objects.get().active


def upload(
    client: Client, token: str, key: str, revision: dict[str, str] | str, query: str = ""
) -> Any:
    """Send one point; the revision in the body, the query as it is written."""
    body = {
        "kind": "kiln points",
        "schema": 1,
        "defaults": {"device": "H200", "metric": "time", "unit": "ns", "revision": revision},
        "points": [{"problem": "gemm", "value": 1.5}],
    }
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": key}
    return client.post(
        f"/api/v1/results{query}", body, content_type="application/json", headers=headers
    )


@pytest.fixture
def token() -> str:
    owner = User.objects.create_superuser("ci")
    return tokens.create_token(owner, "CI", ["ingest", "read"], None)[1]


def test_the_answer_to_an_upload_says_that_a_series_lacks_its_trunk(
    client: Client, token: str
) -> None:
    sent = {"name": "a", "branch": "develop", "repository": "kernels"}
    answer = upload(client, token, "1", sent).json()
    assert (answer["points"], answer["branch_points"]) == (1, 1)
    [note] = answer["notes"]
    assert note.startswith(
        "1 series has no points of the trunk: the points are of “develop”, and the trunk of kernels"
        " is main, master, trunk. Send results of the trunk, or default_branch with the results;"
    )
    assert upload(client, token, "2", sent | {"default_branch": "develop"}).json()["notes"] == []
    other = sent | {"branch": "topic", "default_branch": "main"}
    [note] = upload(client, token, "3", other).json()["notes"]
    assert note.startswith("default_branch: “main” was sent, but the trunk of kernels is set to")


def test_a_benchmark_that_a_branch_adds_is_no_mistake(client: Client, token: str) -> None:
    push(history("copy", commits(2), 100.0))
    sent = {"name": "a", "branch": "topic", "repository": REPOSITORY}
    assert upload(client, token, "1", sent).json()["notes"] == [
        "1 series has no points of the trunk: no changes are found in them before the first results"
        " of main, master, trunk"
    ]


def test_notes_ask_whether_a_trunk_was_measured_and_read_no_list_of_its_revisions(
    client: Client, token: str
) -> None:
    push(history("copy", commits(2), 100.0))
    sent = RevisionKey("a", None, "topic", REPOSITORY)
    upload(client, token, "1", {"name": "a", "branch": "topic", "repository": REPOSITORY})
    statements = statements_of(upload_notes, Batch.objects.get(), [sent])
    of_revisions = [sql for sql in statements if "codegen_app_revision" in sql]
    assert len(of_revisions) == 1
    assert 'EXISTS(SELECT 1 AS "a" FROM "codegen_app_revision"' in of_revisions[0]


def test_what_is_sent_about_a_branch_comes_back(client: Client, token: str) -> None:
    """In the body, or as parameters for files of tools that do not say it."""
    upload(
        client,
        token,
        "1",
        "a",
        "?branch=topic&repository=kernels&merge_base=f00&pull_request=12&default_branch=develop",
    )
    assert Repository.objects.get().default_branch == "develop"
    series = Series.objects.get()
    [row] = client.get(
        f"/api/v1/series/{series.pk}/data", headers={"Authorization": f"Bearer {token}"}
    ).json()["data"]
    assert (row["branch"], row["is_trunk"]) == ("topic", False)
    assert (row["merge_base"], row["pull_request"]) == ("f00", "12")
    client.force_login(User.objects.create_user("ada"))
    table = client.get(f"/series/{series.pk}.csv")
    head, line = (b"".join(table)).decode().splitlines()  # type: ignore[arg-type]
    cells = dict(zip(head.split(","), line.split(","), strict=True))
    assert (cells["history"], cells["merge_base"], cells["pull_request"]) == ("branch", "f00", "12")


def test_a_default_branch_with_spaces_is_refused(client: Client, token: str) -> None:
    """It would be read as several."""
    sent = {"name": "a", "default_branch": "main topic"}
    refused = upload(client, token, "1", sent)
    assert refused.status_code == 422
    assert "revision.default_branch: a branch name has no spaces" in refused.json()["error"]
    refused = upload(client, token, "2", "a", "?default_branch=main+topic")
    assert refused.json()["error"] == "default_branch: a branch name has no spaces"
    assert not Repository.objects.exists()


def test_the_data_of_a_series_is_in_order_across_pages(client: Client, token: str) -> None:
    main = commits(5)
    push(history("gemm", main, 100.0))
    push(history("gemm", commits(5, prefix="b", branch="topic"), 110.0))
    series, names, after = Series.objects.get(), [], ""
    while True:
        page = client.get(
            f"/api/v1/series/{series.pk}/data",
            {"limit": 3, **({"after": after} if after else {})},
            headers={"Authorization": f"Bearer {token}"},
        ).json()
        names += [row["revision"] for row in page["data"]]
        if (after := page["next"]) is None:
            break
    assert names == [name for n in range(5) for name in (f"c{n}", f"b{n}")]


def test_a_point_that_a_change_began_with_stays_with_it() -> None:
    """It was of the trunk then. Whatever refers to points is asked."""
    develop = commits(40, branch="main")
    push(history("gemm", develop[:30], 100.0))
    push(history("gemm", develop[30:], 125.0, MACHINE.with_code("b")))
    first = Change.objects.get().datum_id
    admin = User.objects.create_superuser("root")
    trunk.set_default_branch(Repository.objects.get().pk, "other", admin)
    alert_pipeline.process_pending()
    age("main", 31)
    assert rollup.roll_up(policy()) == 39
    assert Datum.objects.get().pk == first
    assert rollup.count_due(policy()) == 0
    kinds = (CASCADE, PROTECT, RESTRICT, SET_NULL)
    asked = {rows.model for rows, _ in point_deletion._references(*kinds)}
    assert asked == {
        model
        for model in apps.get_models()
        for field in model._meta.concrete_fields
        if field.related_model is Datum
    }
