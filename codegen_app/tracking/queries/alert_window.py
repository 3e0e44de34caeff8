"""The window of an alert or of a change as pages and messages show it: the last good and the first
bad revision, and the commits in between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef

from codegen_app.tracking.models import Alert, Change, Datum, Revision
from codegen_app.tracking.queries.revision_links import RevisionLinks

MAX_COMMITS = 50


@dataclass(frozen=True)
class WindowCommit:
    """A commit of the window; ``text`` is its short name. ``at``, ``subject`` and ``author`` are
    empty if none were sent."""

    name: str
    text: str
    url: str
    at: datetime | None
    subject: str
    author: str
    measured: bool


@dataclass(frozen=True)
class AlertWindow:
    """Something happened after ``good``, which is at ``since`` in the history, and at the latest at
    ``bad``. ``n_between`` revisions in between were measured, of other series or too noisy to tell.

    ``commits`` are the newest ``MAX_COMMITS`` of ``n_commits`` from the first bad one down: all
    commits if ``complete``, from a Git mirror; else those that were measured.
    """

    good: str
    good_text: str
    good_url: str
    since: datetime
    bad: str
    bad_text: str
    bad_url: str
    n_between: int
    commits: tuple[WindowCommit, ...]
    n_commits: int
    complete: bool
    diff_url: str

    @property
    def more(self) -> int:
        """The number of commits that are not shown."""
        return self.n_commits - len(self.commits)


def alert_window(alert: Alert, links: RevisionLinks) -> AlertWindow | None:
    """Return the window of an alert whose revisions are loaded (1 query, one more if not all
    commits fit); None if it has no last good revision."""
    good, bad, since = alert.good_revision, alert.revision, alert.since
    if good is None or bad is None or since is None:
        return None
    return _window(good, since, bad, alert.at, links, alert.commits)


def change_window(change: Change, links: RevisionLinks) -> AlertWindow | None:
    """Return the window of a change whose revisions and alert are loaded, likewise; None without an
    earlier point, and for rows of earlier versions."""
    good, bad, alert = change.good_revision, change.bad_revision, change.alert
    if good is None or bad is None or change.since is None or change.until is None:
        return None
    of_alert = (alert.good_revision_id, alert.revision_id) if alert else None
    commits = alert.commits if alert and of_alert == (good.pk, bad.pk) else None
    return _window(good, change.since, bad, change.until, links, commits)


def _window(
    good: Revision,
    since: datetime,
    bad: Revision,
    until: datetime,
    links: RevisionLinks,
    mirrored: Mapping[str, Any] | None,
) -> AlertWindow:
    """``mirrored`` are the commits in between from a Git mirror, if there is one."""
    between = (
        Revision.objects.filter(
            Exists(Datum.objects.filter(revision=OuterRef("pk"))),
            repository=bad.repository,
            is_trunk=True,
            at__gt=since,
            at__lt=until,
        )
        .exclude(name__in=(good.name, bad.name))
        .order_by("-at", "-pk")
    )
    rows = list(between[: MAX_COMMITS + 1])
    n_between = len(rows) if len(rows) <= MAX_COMMITS else between.count()
    measured = [_commit(row, links) for row in (bad, *rows)]
    commits, n_commits = measured, n_between + 1
    if mirrored is not None:
        names = {commit.name for commit in measured}
        of_mirror = [
            Revision(
                repository=bad.repository,
                name=str(one["name"]),
                at=datetime.fromisoformat(one["at"]) if one["at"] else None,
                subject=str(one["subject"]),
                author=str(one["author"]),
            )
            for one in mirrored["commits"]
        ]
        commits = [_commit(row, links, measured=row.name in names) for row in of_mirror]
        n_commits = int(mirrored["count"])
    return AlertWindow(
        good=good.name,
        good_text=str(good),
        good_url=links.commit(good),
        since=since,
        bad=bad.name,
        bad_text=str(bad),
        bad_url=links.commit(bad),
        n_between=n_between,
        commits=tuple(commits[:MAX_COMMITS]),
        n_commits=n_commits,
        complete=mirrored is not None,
        diff_url=links.diff(good, bad),
    )


def _commit(row: Revision, links: RevisionLinks, *, measured: bool = True) -> WindowCommit:
    return WindowCommit(
        name=row.name,
        text=str(row),
        url=links.commit(row),
        at=row.at,
        subject=row.subject,
        author=row.author,
        measured=measured,
    )
