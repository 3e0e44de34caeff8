"""Sides of a comparison: a revision, a branch's newest revision, a branch's merge base, or a run;
how addresses write them, and the rows that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.db.models import F, Q, QuerySet, Subquery
from django.db.models.functions import Left
from django.urls import reverse

from codegen_app.tracking.models import Revision
from codegen_app.tuning.models import TuningRun
from scheduler.errors import UserError

BRANCH, RUN, BASE, REVISION = "branch:", "run:", "base:", "revision:"
_SHORTEST = 4
_MAX_NAMED = 4
_LONGEST_NAME = 500


@dataclass(frozen=True)
class ComparedSide:
    """One side. ``text`` is the requested text, ``name`` the resolved revision (or run), ``keys``
    its rows: one commit may have been sent on several branches. ``at`` is when the revision was
    made or the run began; None if unknown. ``is_trunk`` says whether a history leads up to it;
    ``commit``, ``author``, ``merge_base`` and ``pull_request`` are as sent with it."""

    text: str
    name: str
    branches: tuple[str, ...]
    repository: str
    at: datetime | None
    keys: tuple[int, ...]
    run: int | None = None
    run_url: str = ""
    is_trunk: bool = True
    commit: str = ""
    author: str = ""
    merge_base: str = ""
    pull_request: str = ""

    @property
    def title(self) -> str:
        """The title for readers: ``3f2a9c01b4de (main)``."""
        short = self.name[:12] if len(self.name) == 40 else self.name
        return f"{short} ({', '.join(self.branches)})" if self.branches else short


def revision_text(name: str) -> str:
    """Return a revision's text, with a prefix if its name could be read as another kind of side."""
    return f"{REVISION}{name}" if name.startswith((BRANCH, RUN, BASE, REVISION)) else name


def comparison_url(before: str, after: str, **others: object) -> str:
    """Return the address of a comparison; empty parameters are left out."""
    values = {"before": before, "after": after, **others}
    query = urlencode({name: value for name, value in values.items() if value})
    return f"{reverse('compare_revisions')}?{query}"


def resolve_sides(
    before: str, after: str, repository: str = ""
) -> tuple[ComparedSide, ComparedSide]:
    """Resolve both sides (2 queries; at most 5 for a branch against its merge base, one more if a
    name must be looked up by prefix). Raises ``UserError`` if a side does not exist, is ambiguous,
    or equals the other."""
    new = _side(after, "after", repository)
    if before.startswith(BASE):
        old = _merge_base(before, new, after, repository)
    else:
        old = _side(before, "before", repository)
    if (old.keys, old.run) == (new.keys, new.run):
        raise UserError(f"before and after are the same: {old.title}")
    return old, new


def _side(text: str, parameter: str, repository: str) -> ComparedSide:
    if not text:
        raise UserError(f"{parameter}: specify a revision, branch:NAME or run:NUMBER")
    if len(text) > _LONGEST_NAME:
        raise UserError(f"{parameter}: a name has at most {_LONGEST_NAME} characters")
    if text.startswith(RUN):
        number = text.removeprefix(RUN)
        key = int(number) if number.isascii() and number.isdecimal() and len(number) < 19 else 0
        row = TuningRun.objects.select_related("graph").filter(pk=key).first()
        if row is None:
            raise UserError(f"{parameter}: tuning run “{number}” does not exist")
        return ComparedSide(
            text=text,
            name=f"run {row.pk} of {row.graph.name}",
            branches=(),
            repository="",
            at=row.created_at,
            keys=(),
            run=row.pk,
            run_url=row.get_absolute_url(),
        )
    if text.startswith(BRANCH):
        name = text.removeprefix(BRANCH)
        rows = _commit_rows(_newest(_revisions(repository).filter(branch=name)))
        nothing = f"{parameter}: branch “{name}” has no revisions"
        return _make_side(text, rows, parameter, nothing)
    if text.startswith(BASE):
        raise UserError(f"{parameter}: {BASE}NAME is valid for the side before only")
    return _revision(text, parameter, repository)


def _revisions(repository: str) -> QuerySet[Revision]:
    rows = Revision.objects.all()
    return rows.filter(repository=repository) if repository else rows


def _revision(text: str, parameter: str, repository: str) -> ComparedSide:
    name = text.removeprefix(REVISION)
    rows = list(_revisions(repository).filter(name=name).order_by("pk"))
    if not rows and len(name) >= _SHORTEST:
        begins = _revisions(repository).annotate(start=Left("name", len(name))).filter(start=name)
        rows = list(begins.order_by("name", "pk")[:100])
    if not rows:
        least = f" (a prefix needs {_SHORTEST} characters)" if len(name) < 40 else ""
        raise UserError(f"{parameter}: no measured revision is named “{name}”{least}")
    names = sorted({row.name for row in rows})
    if len(names) > 1:
        raise UserError(f"{parameter}: “{name}” matches several revisions: {_name_list(names)}")
    return _make_side(text, rows, parameter)


def _merge_base(text: str, branch: ComparedSide, after: str, repository: str) -> ComparedSide:
    """Return the merge base that was sent with the branch's newest revision if it was measured;
    else the newest revision of the base up to its time, or, if that is unknown, up to the time of
    the branch's first revision."""
    base = text.removeprefix(BASE)
    shown = f"“{base}”" if base else "the trunk"
    of_repository = _revisions(repository or branch.repository)
    recorded = Revision.objects.filter(pk__in=branch.keys).exclude(merge_base="").order_by("-pk")
    newest = recorded.first()
    if newest is not None:
        of_recorded = of_repository.filter(
            _is_of_base(base) | Q(is_trunk=True, branch=""),
            name__in=recorded.order_by().values("merge_base"),
        )
        if rows := _commit_rows(of_recorded.order_by("pk")):
            return _make_side(text, rows, "before")
        if newest.merge_base_at is not None:
            earlier = of_repository.filter(_is_of_base(base), at__lte=newest.merge_base_at)
            nothing = (
                f"before: no revision of {shown} up to the merge base {newest.merge_base[:12]}"
                " was measured"
            )
            return _make_side(text, _commit_rows(_newest(earlier)), "before", nothing)
    names = [after.removeprefix(BRANCH)] if after.startswith(BRANCH) else list(branch.branches)
    if len(names) != 1 or names[0] == base:
        raise UserError(
            f"before: {text} requires branch:NAME after it, with another branch than {shown}, or"
            " results with merge_base"
        )
    of_branch = of_repository.filter(branch=names[0])
    first = of_branch.order_by(F("at").asc(nulls_first=True), "pk").first()
    if first is None or first.at is None:
        raise UserError(
            f"before: the revisions of “{names[0]}” have no time (send revision_at):"
            " specify the revision that the branch forked from"
        )
    earlier = of_repository.filter(_is_of_base(base), at__lte=first.at)
    of_base = earlier.exclude(name__in=of_branch.values("name"))
    nothing = f"before: no revision of {shown} is older than the first one of “{names[0]}”"
    return _make_side(text, _commit_rows(_newest(of_base)), "before", nothing)


def _is_of_base(base: str) -> Q:
    """Return the condition for revisions of a branch, or of the trunk if it has no name."""
    return Q(branch=base) if base else Q(is_trunk=True)


def _newest(rows: QuerySet[Revision]) -> QuerySet[Revision]:
    return rows.order_by(F("at").desc(nulls_last=True), "-pk")


def _commit_rows(newest: QuerySet[Revision]) -> list[Revision]:
    """Return all rows of the commit of the first revision (1 query)."""
    rows = Revision.objects.filter(
        name=Subquery(newest.values("name")[:1]),
        repository=Subquery(newest.values("repository")[:1]),
    )
    return list(rows.order_by("pk"))


def _make_side(
    text: str, rows: Sequence[Revision], parameter: str, nothing: str = ""
) -> ComparedSide:
    if not rows:
        raise UserError(nothing)
    repositories = sorted({row.repository for row in rows})
    if len(repositories) > 1:
        raise UserError(
            f"{parameter}: “{rows[0].name}” is in several repositories"
            f" ({_name_list(repositories)}): specify the repository"
        )
    moments = [row.at for row in rows if row.at]
    first = {
        name: next(filter(None, (getattr(row, name) for row in rows)), "")
        for name in ("subject", "author", "merge_base", "pull_request")
    }
    return ComparedSide(
        text=text,
        name=rows[0].name,
        branches=tuple(dict.fromkeys(row.branch for row in rows if row.branch)),
        repository=rows[0].repository,
        at=min(moments, default=None),
        keys=tuple(row.pk for row in rows),
        is_trunk=any(row.is_trunk for row in rows),
        commit=first["subject"],
        author=first["author"],
        merge_base=first["merge_base"],
        pull_request=first["pull_request"],
    )


def _name_list(names: Sequence[str]) -> str:
    shown = ", ".join(name or "none" for name in names[:_MAX_NAMED])
    return f"{shown} …" if len(names) > _MAX_NAMED else shown
