"""What is said about branches where a history lacks its trunk, and how to mend it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db.models import Exists, F, OuterRef
from django.urls import reverse

from codegen_app.tracking.models import Batch, Datum, Repository, Revision, Series
from scheduler.results.points.model import RevisionKey


def upload_notes(batch: Batch, sent: Iterable[RevisionKey]) -> list[str]:
    """Return notes for the answer to a batch with points of branches: series without any point of
    the trunk, and default branches that differ from the trunk that is set (2 queries)."""
    branches = {key.repository: set[str]() for key in sent}
    defaults = {key.repository: set[str]() for key in sent}
    for key in sent:
        branches[key.repository].add(key.branch)
        defaults[key.repository].add(key.default_branch)
    of_batch = Datum.objects.filter(batch=batch, is_trunk=False).values("series")
    untracked = Series.objects.filter(pk__in=of_batch, points=F("branch_points")).count()
    on_trunk = Revision.objects.filter(repository=OuterRef("name"), is_trunk=True)
    rows = Repository.objects.filter(name__in=branches).annotate(has_trunk=Exists(on_trunk))
    notes = []
    for row in rows:
        away = sorted(name for name in branches[row.name] if not row.is_trunk(name))
        if away and untracked:
            mend = (
                f"no changes are found in them before the first results of {', '.join(row.trunk)}"
                if row.has_trunk
                else _mend(row, away)
            )
            has = "has" if untracked == 1 else "have"
            notes.append(f"{untracked} series {has} no points of the trunk: {mend}")
        notes += [
            f"default_branch: “{name}” was sent, but the trunk of {row} is set to"
            f" “{row.default_branch}”; an administrator can change it at {admin_path(row)}"
            for name in sorted(defaults[row.name])
            if name and not row.is_trunk(name)
        ]
    return notes


def untracked_note(series: Series) -> str:
    """Return why no changes are found in a series whose points are all on branches, and how to mend
    it; "" for any other series (1 query, 2 with a note)."""
    if not series.points or series.points > series.branch_points:
        return ""
    on_branches = Datum.objects.filter(series=series, is_trunk=False)
    revisions = Revision.objects.filter(pk__in=on_branches.values("revision")).order_by()
    found = sorted(revisions.values_list("repository", "branch").distinct()[:_MOST])
    rows = Repository.objects.filter(name__in={repository for repository, _ in found})
    return " ".join(
        f"It has no points of the trunk: "
        f"{_mend(row, [branch for repository, branch in found if repository == row.name])}"
        for row in rows
    )


_MOST = 100  # branches that are looked at
_SHOWN = 3


def _mend(row: Repository, branches: Sequence[str]) -> str:
    """Name the trunk, the branches that points came from, and what to do."""
    trunk = ", ".join(row.trunk)
    shown = ", ".join(f"“{name}”" for name in branches[:_SHOWN])
    more = f" and {len(branches) - _SHOWN} more" if len(branches) > _SHOWN else ""
    return (
        f"the points are of {shown}{more}, and the trunk of {row} is {trunk}. Send results of the"
        " trunk, or default_branch with the results; or set the default branch at"
        f" {admin_path(row)}."
    )


def admin_path(row: Repository) -> str:
    """Return the path at which an administrator edits a repository."""
    return reverse("admin:codegen_app_repository_change", args=[row.pk])
