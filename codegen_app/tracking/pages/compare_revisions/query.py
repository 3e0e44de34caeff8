"""The page that compares two revisions, branches or runs over all their series, or lists them to
choose from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.contrib.postgres.aggregates import BoolOr
from django.db import connection
from django.db.models import Count, Exists, F, Max, OuterRef, Q
from django.urls import reverse

from codegen_app.tracking.compare_revisions.comparison import (
    DEFAULT_SETTINGS,
    STATUS_NAMES,
    Grouping,
    compare_sides,
)
from codegen_app.tracking.compare_revisions.rows import ComparedRow
from codegen_app.tracking.compare_revisions.sides import (
    BASE,
    BRANCH,
    RUN,
    ComparedSide,
    comparison_url,
    revision_text,
)
from codegen_app.tracking.models import Datum, Revision
from codegen_app.tracking.queries.revision_links import revision_links
from codegen_app.tuning.models import TuningRun
from scheduler.track.compare import GroupMean
from scheduler.track.compared_series import CompareSettings, Status

PAGE_SIZE = 100
SLOWER = STATUS_NAMES[Status.SLOWER]
_MAX_BRANCHES, _MAX_REVISIONS, _MAX_RUNS = 12, 40, 12

# The newest change between the newest points of both sides, whichever side is older.
_CHANGES = """
SELECT DISTINCT ON (change.series_id) change.series_id, change.id
FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS shown(series, before, after)
JOIN codegen_app_datum AS before ON before.id = shown.before
JOIN codegen_app_datum AS after ON after.id = shown.after
JOIN codegen_app_change AS change ON change.series_id = shown.series
    AND change.at > LEAST(before.at, after.at) AND change.at <= GREATEST(before.at, after.at)
WHERE change.withdrawn_at IS NULL
ORDER BY change.series_id, change.at DESC, change.id DESC
"""


@dataclass(frozen=True)
class SideChoice:
    """A choice for a side: its text for the address, its name, and its description. ``base_url``
    compares a branch with the trunk at its merge base; "" for others."""

    text: str
    kind: str
    title: str
    of: str
    repository: str
    at: datetime | None
    base_url: str = ""


@dataclass(frozen=True)
class RevisionRow:
    """A row with the change found between its sides; "" if there is none."""

    row: ComparedRow
    change_url: str


@dataclass(frozen=True)
class SideLinks:
    """The web pages of the commits and pull requests of both sides, and of the commits between; ""
    where unknown."""

    before: str
    before_pull_request: str
    after: str
    after_pull_request: str
    diff: str


@dataclass(frozen=True)
class RevisionsPage:
    """A comparison and a part of its rows; or ``choices`` if a side is missing or ``problem`` says
    what is wrong with one. ``worst`` is the series with the largest slowdown, displayed or not.

    ``counts`` covers all series by status; ``total`` rows match the status and the words, and those
    from ``start`` on are shown. ``pairs`` of the same code gave the noise ``floor`` (0: assumed).
    """

    find: str = ""
    problem: str = ""
    choices: tuple[SideChoice, ...] = ()
    before: ComparedSide | None = None
    after: ComparedSide | None = None
    grouping: str = Grouping.GRAPH.value
    least_effect: float = DEFAULT_SETTINGS.least_effect
    status: str = ""
    search: str = ""
    within: str = ""
    counts: Mapping[str, int] | None = None
    could_be_compared: int = 0
    floor: float = 0.0
    pairs: int = 0
    groups: tuple[GroupMean, ...] = ()
    total: int = 0
    start: int = 0
    rows: tuple[RevisionRow, ...] = ()
    worst: ComparedRow | None = None
    links: SideLinks | None = None

    @property
    def is_off_base(self) -> bool:
        """Whether the branch after was measured at a known merge base, and before is another
        revision."""
        if self.before is None or self.after is None or self.after.is_trunk:
            return False
        is_base = self.before.text.startswith(BASE) or self.before.name == self.after.merge_base
        return bool(self.after.merge_base) and not is_base

    @property
    def base_url(self) -> str:
        """The comparison of the side after with the trunk at its merge base."""
        after = self.after
        return comparison_url(BASE, after.text, repository=after.repository) if after else ""

    @property
    def other_counts(self) -> str:
        """The number of series of each status except slower, in words."""
        counts = (self.counts or {}).items()
        return ", ".join(f"{n:,} {name}" for name, n in counts if n and name != SLOWER)

    @property
    def previous(self) -> int | None:
        """The start of the previous page; None on the first."""
        return max(0, self.start - PAGE_SIZE) if self.start else None

    @property
    def end(self) -> int:
        """The position after the last displayed row."""
        return self.start + len(self.rows)

    @property
    def has_expected(self) -> bool:
        """Whether a displayed row was compared with its history."""
        return any(row.row.expected_low is not None for row in self.rows)

    @property
    def all(self) -> int:
        """The number of series on either side."""
        return sum((self.counts or {}).values())


def side_choices_page(find: str = "", problem: str = "", other: str = "") -> RevisionsPage:
    """Return the choices (3 queries), newest first; ``find`` is a part of the name, ``other`` the
    side already chosen, which is left out."""
    branches = (
        Revision.objects.exclude(branch="")
        .filter(Q(branch__icontains=find) | Q(pull_request__icontains=find))
        .order_by()
        .values("repository", "branch")
        .annotate(
            newest=Max("at"),
            n=Count("pk"),
            request=Max("pull_request"),
            of_trunk=BoolOr("is_trunk"),
        )
        .order_by(F("newest").desc(nulls_last=True), "branch")
    )
    revisions = Revision.objects.filter(
        Q(name__icontains=find) | Q(branch__icontains=find) | Q(subject__icontains=find)
    ).order_by(F("at").desc(nulls_last=True), "-pk")
    runs = (
        TuningRun.objects.select_related("graph")
        .filter(graph__name__icontains=find)
        .filter(Exists(Datum.objects.filter(run=OuterRef("pk"))))
        .order_by("-pk")
    )
    choices = (
        *(
            SideChoice(
                text=f"{BRANCH}{row['branch']}",
                kind="branch",
                title=row["branch"],
                of=_branch_text(row["n"], row["request"]),
                repository=row["repository"],
                at=row["newest"],
                base_url=(
                    ""
                    if row["of_trunk"]
                    else comparison_url(
                        BASE, f"{BRANCH}{row['branch']}", repository=row["repository"]
                    )
                ),
            )
            for row in branches[:_MAX_BRANCHES]
        ),
        *(
            SideChoice(
                text=revision_text(row.name),
                kind="revision",
                title=str(row),
                of=": ".join(filter(None, (row.branch, row.subject))),
                repository=row.repository,
                at=row.at,
            )
            for row in revisions[:_MAX_REVISIONS]
        ),
        *(
            SideChoice(
                text=f"{RUN}{row.pk}",
                kind="run",
                title=f"run {row.pk}",
                of=f"{row.graph.name} for {row.target}",
                repository="",
                at=row.created_at,
            )
            for row in runs[:_MAX_RUNS]
        ),
    )
    return RevisionsPage(find, problem, tuple(choice for choice in choices if choice.text != other))


def _branch_text(n: int, pull_request: str) -> str:
    text = f"newest of {n:,} revision{'' if n == 1 else 's'}"
    return f"{text}, pull request {pull_request}" if pull_request else text


def revisions_page(
    before: str,
    after: str,
    repository: str = "",
    grouping: Grouping = Grouping.GRAPH,
    settings: CompareSettings = DEFAULT_SETTINGS,
    status: str = "",
    search: str = "",
    within: str = "",
    start: int = 0,
) -> RevisionsPage:
    """Compare two revisions by their names (11 queries; 12 for a branch against its base; 4 more
    for histories), and show ``PAGE_SIZE`` rows. Raises ``UserError`` if a side cannot be found."""
    found = compare_sides(before, after, repository, grouping, settings)
    rows = found.select(status, search, within)
    displayed = rows[start : start + PAGE_SIZE]
    shown = found.shown([*found.select(SLOWER)[:1], *displayed])
    worst = shown[0] if found.counts[SLOWER] else None
    shown = shown[len(shown) - len(displayed) :]
    both = [row for row in shown if row.n_before and row.n_after]
    points = [found.newest_points(row.name) for row in both]
    sides = [[before for before, _ in points], [after for _, after in points]]
    with connection.cursor() as cursor:
        cursor.execute(_CHANGES, [[row.series for row in both], *sides])
        changes = dict(cursor.fetchall())
    return RevisionsPage(
        before=found.before,
        after=found.after,
        grouping=grouping.value,
        least_effect=settings.least_effect,
        status=status,
        search=search,
        within=within,
        counts=found.counts,
        could_be_compared=found.comparison.compared,
        floor=found.comparison.floor,
        pairs=found.comparison.pairs,
        groups=found.comparison.groups,
        total=len(rows),
        start=start,
        worst=worst,
        links=_side_links(found.before, found.after),
        rows=tuple(
            RevisionRow(
                row,
                reverse("change", args=[changes[row.series]]) if row.series in changes else "",
            )
            for row in shown
        ),
    )


def _side_links(before: ComparedSide, after: ComparedSide) -> SideLinks | None:
    """Return the links of two revisions (2 queries); None for a run."""
    revisions = Revision.objects.in_bulk([*before.keys, *after.keys])
    if not before.keys or not after.keys:
        return None
    links = revision_links(revisions.values())
    old, new = (
        max((revisions[key] for key in side.keys), key=lambda row: bool(row.pull_request))
        for side in (before, after)
    )
    return SideLinks(
        before=links.commit(old),
        before_pull_request=links.pull_request(old),
        after=links.commit(new),
        after_pull_request=links.pull_request(new),
        diff=links.diff(old, new),
    )
