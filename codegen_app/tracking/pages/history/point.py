"""The page of a point of a series: its value and everything recorded with it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from codegen_app.tracking.compare_revisions.branches import TrunkComparison, compare_with_trunk
from codegen_app.tracking.models import Datum
from codegen_app.tracking.pages.change.query import RevisionFacts, point_columns
from codegen_app.tracking.queries.point_facts import (
    FactRow,
    compare_facts,
    fact_texts,
    previous_point,
)
from codegen_app.tracking.queries.revision_links import revision_links
from codegen_app.tracking.queries.series_summary import PointValue, SeriesHead, series_head
from codegen_app.tracking.queries.withdrawals import WithdrawalRow, withdrawal_rows
from codegen_app.tracking.services.point_notes import annotations_of
from codegen_app.web.row import build_row, username
from scheduler.track.units import format_value


@dataclass(frozen=True)
class PointNote:
    """A note at the point."""

    id: int
    text: str
    by: str
    written_at: datetime


@dataclass(frozen=True)
class PointDay:
    """The points of its day that a point stands for, as their median."""

    points: int
    low: float
    high: float
    unit: str

    @property
    def span(self) -> str:
        """The smallest and the largest value."""
        return " to ".join(format_value(value, self.unit) for value in (self.low, self.high))


@dataclass(frozen=True)
class PointPage:
    """One point. ``samples`` is the number of kept samples: none once they were rolled up.
    ``facts`` are its conditions by name; ``previous`` is the revision of the point before it in the
    history, from which the ``changed`` facts differ, and ``diff_url`` has the commits in between;
    ``change_url`` is the page of the change that begins with it; ``not_compared`` is why it is not
    compared with others, "" if it is; ``trunk`` is how the revision of a branch compares with the
    trunk at its merge base; ``day`` are the points that it stands for since the others were rolled
    up."""

    id: int
    url: str
    series: SeriesHead
    reading: PointValue
    revision: RevisionFacts
    measured_at: datetime
    samples: int
    facts: tuple[tuple[str, str], ...]
    previous: str
    changed: tuple[FactRow, ...]
    diff_url: str
    kernel: str
    kernel_url: str
    run: int | None
    run_url: str
    change_url: str
    not_compared: str
    trunk: TrunkComparison | None
    day: PointDay | None
    withdrawals: tuple[WithdrawalRow, ...]
    notes: tuple[PointNote, ...]

    @property
    def withdrawn(self) -> WithdrawalRow | None:
        """The active withdrawal; None for a valid point."""
        return next((row for row in self.withdrawals if row.restored_at is None), None)

    @property
    def of_parts(self) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
        """The conditions named "part: name", by part: the functions of a kernel."""
        found: dict[str, list[tuple[str, str]]] = {}
        for name, text in self.facts:
            part, mark, rest = name.partition(": ")
            if mark:
                found.setdefault(part, []).append((rest, text))
        return tuple((part, tuple(rows)) for part, rows in found.items())

    @property
    def of_all(self) -> tuple[tuple[str, str], ...]:
        """The conditions that belong to no part."""
        return tuple((name, text) for name, text in self.facts if ": " not in name)


def point_page(series: int, pk: int) -> PointPage:
    """Return a point of a series by numbers (6 queries, at most 7 more for a point of a branch).
    Raises ``Datum.DoesNotExist``."""
    related = ("series", "revision", "conditions", "kernel", "run", "day_summary")
    datum = Datum.objects.select_related(*related).get(pk=pk, series=series)
    change = datum.changes.filter(withdrawn_at=None).first()
    kernel, unit = datum.kernel, datum.series.unit
    withdrawals = withdrawal_rows(unit, datum=datum.pk)
    not_compared = "at or below 0, so no ratio can be formed" if datum.value <= 0 else ""
    if any(row.restored_at is None for row in withdrawals):
        not_compared = "withdrawn"
    revision = datum.revision
    previous = previous_point(datum)
    links = revision_links([revision, previous.revision if previous else None])
    facts = datum.conditions.facts
    differences = compare_facts(previous.conditions.facts, facts) if previous else ()
    trunk = None
    if not datum.is_trunk:
        trunk = compare_with_trunk(datum.series, {revision.pk: revision.name}).get(revision.pk)
    return PointPage(
        **point_columns(datum, unit, links),
        id=datum.pk,
        url=datum.get_absolute_url(),
        series=series_head(datum.series),
        samples=len(datum.samples or ()),
        facts=tuple(fact_texts(facts)),
        previous=str(previous.revision) if previous else "",
        changed=tuple(row for row in differences if row.differs),
        diff_url=links.diff(previous.revision, revision) if previous else "",
        kernel=kernel.name if kernel else "",
        kernel_url=kernel.get_absolute_url() if kernel else "",
        change_url=change.get_absolute_url() if change else "",
        not_compared=not_compared,
        trunk=trunk,
        day=build_row(PointDay, datum.day_summary, unit=unit)
        if hasattr(datum, "day_summary")
        else None,
        withdrawals=withdrawals,
        notes=tuple(
            PointNote(row.pk, row.text, username(row.created_by), row.created_at)
            for row in annotations_of([series]).filter(datum=pk)
        ),
    )
