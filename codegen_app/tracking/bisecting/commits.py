"""Commits of a window that nothing was sent for, from the Git mirror of the repository."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from codegen_app.tracking.models import Alert, Revision


def add_commits(alert: Alert, good: Revision, bad: Revision) -> None:
    """Store the trunk's commits between two revisions as revisions, so that they can be measured,
    if the alert has all of them. Known ones, also by shortened hashes, are left as they are."""
    if (good, bad) != (alert.good_revision, alert.revision):
        return
    rows = trunk_commits(alert.commits)
    alike = Revision.objects.filter(repository=bad.repository, is_trunk=True)
    known = tuple(
        alike.filter(at__gte=good.at, at__lte=bad.at).values_list("name", flat=True) if rows else ()
    )
    Revision.objects.bulk_create(
        (
            Revision(
                repository=bad.repository,
                name=row["name"],
                branch=bad.branch,
                at=datetime.fromisoformat(row["at"]),
                subject=row["subject"],
                author=row["author"],
            )
            for row in rows
            if not row["name"].startswith(known)
        ),
        ignore_conflicts=True,
    )


def trunk_commits(commits: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return the commits from the newest along the first parents: the states of the trunk, without
    commits of branches that were merged. Empty unless all commits are known, with their times."""
    if not commits or commits["count"] != len(commits["commits"]):
        return []
    by_name = {row["name"]: row for row in commits["commits"]}
    chain = []
    row = commits["commits"][0] if by_name else None
    while row is not None and row["at"]:
        chain.append(row)
        row = by_name.pop(row.get("parent"), None)
    return chain if row is None else []
