"""Branches: a history is its trunk's, and points of other branches raise nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from codegen_app.accounts.models import AuditEntry
from codegen_app.tracking.models import Change, Datum, Repository, Revision, Series
from codegen_app.tracking.services import alert_pipeline, detection, trunk
from tests.support.team import MACHINE, REPOSITORY, alerts, commits, history, push, push_by_revision

pytestmark = pytest.mark.django_db


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
