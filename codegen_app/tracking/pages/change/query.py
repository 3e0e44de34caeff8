"""The page of a change: its two sides, the differences between them, and the cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from codegen_app.kernels.models import Build
from codegen_app.kernels.pages.compare.query import ComparePage, compare_page
from codegen_app.tracking.models import Change, Datum
from codegen_app.tracking.pages.change.actions import ChangeActions, change_actions
from codegen_app.tracking.queries.alert_window import AlertWindow, change_window
from codegen_app.tracking.queries.point_facts import FactRow, compare_facts, previous_point
from codegen_app.tracking.queries.revision_links import RevisionLinks, revision_links
from codegen_app.tracking.queries.series_summary import (
    ChangeSummary,
    PointValue,
    SeriesHead,
    change_summary,
    point_value,
    series_head,
)
from codegen_app.web.row import build_row
from scheduler.track.differences import Aspect

_FACT_ASPECTS = {
    *(Aspect.REVISION, Aspect.SOURCE, Aspect.CONFIGURATION, Aspect.COMPILER, Aspect.HEADERS),
    *(Aspect.CODE, Aspect.DRIVER, Aspect.RUNTIME, Aspect.HOST),
}
"""Aspects that are among the recorded facts of both sides."""


@dataclass(frozen=True)
class RevisionFacts:
    """A revision, with the address of its source if known; ``is_trunk``: it is part of
    histories."""

    name: str
    branch: str
    repository: str
    at: datetime | None
    is_trunk: bool
    merge_base: str
    pull_request: str
    pull_request_url: str
    subject: str
    author: str
    url: str


@dataclass(frozen=True)
class ChangeSide:
    """The point nearest to the change on one side. ``kernel`` and ``build`` are set if they are
    Kiln's own and still kept; ``address`` is the source's address as given by the sender."""

    title: str
    reading: PointValue
    measured_at: datetime
    datum_url: str
    revision: RevisionFacts
    kernel: str
    kernel_url: str
    build: int | None
    run: int | None
    run_url: str
    address: str


@dataclass(frozen=True)
class DifferenceRow:
    """A difference in a sentence; ``here``: at the point of the change itself, not only near it."""

    aspect: str
    sentence: str
    here: bool


@dataclass(frozen=True)
class Explanation:
    """The cause of the change by the first ``rule`` that applies; ``candidates`` if several causes
    remain, and what to measure next."""

    cause: str
    rule: str
    reasons: tuple[str, ...]
    candidates: tuple[str, ...]
    next_step: str
    at: datetime
    feeds_noise_floor: bool


@dataclass(frozen=True)
class ChangePage:
    """A change. ``facts`` begins with the differences. ``compared`` has the two builds side by side
    if both are Kiln's own and distinct; otherwise ``why_not_compared`` has the reason."""

    series: SeriesHead
    moved: ChangeSummary
    errors: float
    found_at: datetime
    withdrawn_at: datetime | None
    before: ChangeSide | None
    after: ChangeSide
    source_diff_url: str
    window: AlertWindow | None
    actions: ChangeActions
    explained: Explanation | None
    differences: tuple[DifferenceRow, ...]
    facts: tuple[FactRow, ...]
    compared: ComparePage | None
    why_not_compared: str

    @property
    def sides(self) -> tuple[ChangeSide, ...]:
        return (self.before, self.after) if self.before else (self.after,)

    @property
    def changed_facts(self) -> tuple[FactRow, ...]:
        return tuple(row for row in self.facts if row.differs)

    @property
    def other_facts(self) -> tuple[FactRow, ...]:
        """The facts that are equal, telemetry, or known on one side only."""
        return tuple(row for row in self.facts if not row.differs)

    @property
    def other_differences(self) -> tuple[DifferenceRow, ...]:
        """The differences that the changed facts do not show: those of resources and telemetry, and
        those that lie a few points off."""
        rows = self.differences
        return tuple(row for row in rows if not row.here or row.aspect not in _FACT_ASPECTS)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons for the cause that are no differences."""
        reasons = self.explained.reasons if self.explained else ()
        return tuple(
            row for row in reasons if row not in {one.sentence for one in self.differences}
        )


def change_page(pk: int) -> ChangePage:
    """Return a change by number (4 queries, at most 2 more for its commits, 3 for a problem of
    ours, 10 for kernels of ours). Raises ``Change.DoesNotExist``."""
    change = Change.objects.select_related(
        *("series", "revision", "previous", "good_revision", "bad_revision", "alert"),
        *("datum__revision", "datum__conditions", "datum__kernel", "datum__run"),
    ).get(pk=pk)
    after, unit = change.datum, change.series.unit
    before = previous_point(after)
    explanation: Mapping[str, Any] = change.explanation
    explained = None
    if change.explained_at is not None:
        explained = Explanation(
            cause=change.cause,
            rule=change.rule,
            reasons=tuple(map(str, explanation.get("reasons", ()))),
            candidates=tuple(map(str, explanation.get("candidates", ()))),
            next_step=str(explanation.get("next_step", "")),
            at=change.explained_at,
            feeds_noise_floor=bool(explanation.get("feeds_noise_floor")),
        )
    differences = [
        DifferenceRow(
            str(row.get("aspect", "")), str(row.get("sentence", "")), bool(row.get("here", True))
        )
        for row in explanation.get("differences", [])
    ]
    compared, why_not_compared = _comparison(before, after)
    links = revision_links([after.revision, before.revision if before else None])
    return build_row(
        ChangePage,
        change,
        series=series_head(change.series),
        moved=change_summary(change, unit),
        before=_side("before", before, unit, links) if before else None,
        after=_side("after", after, unit, links),
        source_diff_url=links.diff(before.revision, after.revision) if before else "",
        window=change_window(change, links),
        actions=change_actions(change),
        explained=explained,
        differences=tuple(sorted(differences, key=lambda row: not row.here)),
        facts=compare_facts(before.conditions.facts if before else {}, after.conditions.facts),
        compared=compared,
        why_not_compared=why_not_compared,
    )


def _side(title: str, datum: Datum, unit: str, links: RevisionLinks) -> ChangeSide:
    kernel, facts = datum.kernel, datum.conditions.facts
    kernel_url = kernel.get_absolute_url() if kernel else ""
    if kernel and datum.build_id:
        kernel_url += f"?build={datum.build_id}"
    address = str(facts.get("source", ""))
    return ChangeSide(
        **point_columns(datum, unit, links),
        title=title,
        datum_url=datum.get_absolute_url(),
        kernel=kernel.name if kernel else str(facts.get("kernel", "")),
        kernel_url=kernel_url,
        build=datum.build_id,
        address=address if address.startswith(("https://", "http://")) else "",
    )


def point_columns(datum: Datum, unit: str, links: RevisionLinks) -> dict[str, Any]:
    """Return what the page of a point and a side of a change share, without a query."""
    revision, run = datum.revision, datum.run
    return {
        "reading": point_value(datum, unit),
        "measured_at": datum.measured_at,
        "revision": build_row(
            RevisionFacts,
            revision,
            url=links.commit(revision),
            pull_request_url=links.pull_request(revision),
        ),
        "run": datum.run_id,
        "run_url": run.get_absolute_url() if run else "",
    }


def _comparison(before: Datum | None, after: Datum) -> tuple[ComparePage | None, str]:
    """Return the two builds side by side, or the reason why not (2 queries, or none)."""
    if before is None:
        return None, "No comparison: the point before the change no longer exists."
    if before.kernel is None or after.kernel is None:
        return None, (
            "No kernels to compare: Kiln has no kernel for either side. See the facts sent with the"
            " points."
            if before.kernel is after.kernel
            else "No kernels to compare: Kiln has a kernel for one side only."
        )
    builds: Sequence[int] = [key for key in (before.build_id, after.build_id) if key is not None]
    if len(builds) < 2:
        return (
            None,
            "No comparison: a build is no longer stored. The kernel pages show both sources.",
        )
    if builds[0] == builds[1]:
        return None, "Both sides ran the same build: same source, compiler and code object."
    try:
        return compare_page(builds), ""
    except Build.DoesNotExist as error:
        return None, f"Not compared: {error}."
