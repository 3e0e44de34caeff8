"""Changes found in imported histories, compared with how the code changed at these commits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from codegen_app.tracking.models import Change, Datum, Source
from codegen_app.web.row import build_row
from scheduler.results.model import RevisionRecord


@dataclass(frozen=True)
class Finding:
    """A change, at the first commit of its new level; ``ratio`` is after / before, with its 95%
    interval (None if unknown). ``code_changed``: whether the code of the series' kernel differs
    from that of the previous commit in the series."""

    commit: str
    subject: str
    series: str
    ratio: float
    low: float | None
    high: float | None
    n_before: int
    n_after: int
    cause: str
    code_changed: bool


@dataclass(frozen=True)
class FindingsReport:
    """All findings in the order of commits. ``code_changes`` counts commits that changed the code
    of a series, once per series; ``waiting`` counts series that no detector has checked yet."""

    found: tuple[Finding, ...]
    points: int
    series: int
    revisions: int
    code_changes: int
    code_changes_found: int
    waiting: int


def findings(revisions: Iterable[RevisionRecord], repository: str) -> FindingsReport:
    """Return the findings of the series that have imported points at these commits (3 queries)."""
    subjects = {revision.commit: revision.subject for revision in revisions}
    points = list(
        Datum.objects.trunk()
        .filter(
            source=Source.IMPORT,
            revision__repository=repository,
            revision__name__in=subjects,
            result=None,
        )
        .order_by("series", "at", "pk")
        .values_list(
            "series", "revision__name", "conditions__facts__code_digest", "series__unchecked_from"
        )
    )
    changed = set()  # each series and commit whose code differs from that of the previous point
    last: dict[int, object] = {}
    for key, commit, code, _ in points:
        if last.get(key, code) != code:
            changed.add((key, commit))
        last[key] = code
    series = {key for key, _, _, _ in points}
    rows = (
        Change.objects.filter(series__in=series, withdrawn_at=None)
        .select_related("series", "revision")
        .order_by("at", "series", "pk")
    )
    found = tuple(
        build_row(
            Finding,
            row,
            commit=row.revision.name,
            subject=subjects.get(row.revision.name, ""),
            series=f"{row.series.problem} {row.series.toolchain}".strip(),
            code_changed=(row.series_id, row.revision.name) in changed,
        )
        for row in rows
    )
    change_points = {(row.series_id, row.revision.name) for row in rows}
    return FindingsReport(
        found,
        len(points),
        len(series),
        len({commit for _, commit, _, _ in points}),
        len(changed),
        len(changed & change_points),
        len({key for key, _, _, unchecked_from in points if unchecked_from is not None}),
    )
