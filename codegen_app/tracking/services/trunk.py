"""The trunk of each repository, and the marks of points by it (``Datum.is_trunk``).

``Revision.is_trunk`` follows the repository's trunk at once; points follow series by series, each
in one transaction, so that the detector sees no history that is half marked. A killed worker leaves
its place in ``Repository.marked_series``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from django.contrib.auth.models import AbstractBaseUser
from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from codegen_app.accounts import audit
from codegen_app.tracking.models import Repository, Revision, Series
from codegen_app.tracking.services.recount import recount_and_recheck
from codegen_app.workers import queue
from scheduler.results.points.model import RevisionKey

STEP_SERIES = 50
"""Series whose points are marked in one transaction."""

# An upload keeps the trunk from being changed until it is committed; uploads do not wait for each
# other, nor for points that are marked.
_HOLD = """
SELECT * FROM codegen_app_repository WHERE name = ANY(%s) ORDER BY name FOR KEY SHARE
"""
_MARK = """
UPDATE codegen_app_datum AS datum SET is_trunk = {mark}
FROM codegen_app_revision AS revision
WHERE datum.series_id = ANY(%s) AND datum.is_trunk = NOT {mark}
    AND revision.id = datum.revision_id AND revision.repository = %s AND revision.is_trunk = {mark}
RETURNING datum.series_id, datum.at
"""


def hold_repositories(revisions: Iterable[RevisionKey]) -> Mapping[str, Repository]:
    """Return the repositories by name, inserted if new; their trunks stay as they are until the end
    of the transaction. A default branch that is sent is stored if the repository has none."""
    sent: dict[str, str] = {}
    for key in sorted(revisions, key=lambda key: (key.repository, key.default_branch)):
        sent[key.repository] = sent.get(key.repository) or key.default_branch
    names = list(sent)
    known = dict(Repository.objects.filter(name__in=names).values_list("name", "default_branch"))
    if missing := [name for name in names if name not in known]:
        rows = [Repository(name=name, default_branch=sent[name]) for name in missing]
        Repository.objects.bulk_create(rows, ignore_conflicts=True)
    if any(sent[name] and not default_branch for name, default_branch in known.items()):
        for row in Repository.objects.filter(name__in=names).order_by("name").select_for_update():
            if sent[row.name] and not row.default_branch:
                row.default_branch = sent[row.name]
                _save_trunk(row)
    return {row.name: row for row in Repository.objects.raw(_HOLD, [names])}


@transaction.atomic
def set_default_branch(pk: int, default_branch: str, by: AbstractBaseUser) -> None:
    """Set the trunk of a repository ("" for automatic), and have its points marked again."""
    row = Repository.objects.select_for_update().get(pk=pk)
    names = " ".join(default_branch.split())
    if names == row.default_branch:
        return
    row.default_branch = names
    _save_trunk(row)
    audit.record(by, "set the default branch", row, names or "automatic")


def _save_trunk(row: Repository) -> None:
    """Save the default branch of a locked repository; revisions follow at once, points later."""
    is_trunk = Q(branch="") | Q(branch__in=row.trunk)
    revisions = Revision.objects.filter(repository=row.name)
    changed = revisions.filter(is_trunk, is_trunk=False).update(is_trunk=True)
    changed += revisions.filter(~is_trunk, is_trunk=True).update(
        is_trunk=False, last_stored_at=Now()
    )
    if changed:
        row.marked_series = 0
        queue.notify(queue.Kind.DETECT)
    row.save(update_fields=["default_branch", "marked_series"])


def repositories_to_mark() -> QuerySet[Repository]:
    """Return repositories with points that may be marked by an earlier trunk."""
    return Repository.objects.filter(marked_series__isnull=False)


@transaction.atomic
def mark_points() -> int:
    """Mark the points of some series by the present trunk of one repository, and have the series
    checked again; return how many series were read (0: nothing waits, or others do it)."""
    waiting = repositories_to_mark().select_for_update(skip_locked=True, no_key=True)
    repository = waiting.order_by("pk").first()
    if repository is None:
        return 0
    following = Series.objects.filter(pk__gt=repository.marked_series).order_by("pk")
    series = {row.pk: row for row in following.select_for_update()[:STEP_SERIES]}
    firsts: dict[int, datetime] = {}
    with connection.cursor() as cursor:
        for mark in ("TRUE", "FALSE"):
            cursor.execute(_MARK.format(mark=mark), [list(series), repository.name])
            for pk, at in cursor.fetchall():
                firsts[pk] = min(firsts.get(pk, at), at)
    recount_and_recheck((series[pk], at) for pk, at in sorted(firsts.items()))
    repository.marked_series = max(series) if len(series) == STEP_SERIES else None
    repository.save(update_fields=["marked_series"])
    return max(1, len(series))
