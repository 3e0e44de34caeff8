"""The page of a series: its identity, its changes, and people's notes. The chart fetches the points
(``chart.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from codegen_app.graphs.models import TemplateNode
from codegen_app.tracking.models import (
    AlertEvent,
    Baseline,
    Change,
    EventKind,
    Series,
)
from codegen_app.tracking.pages.history.answer import Answer, difference_sentences, history_answer
from codegen_app.tracking.pages.history.branches import BranchRow, branch_rows
from codegen_app.tracking.queries.series_findings import FindingRow, current_findings
from codegen_app.tracking.queries.series_rules import SHOWN_RULES, SeriesRules, series_rules
from codegen_app.tracking.queries.series_summary import (
    ChangeSummary,
    PointValue,
    SeriesHead,
    change_summary,
    latest_values,
    series_head,
)
from codegen_app.tracking.queries.withdrawals import WithdrawalRow, withdrawal_rows
from codegen_app.tracking.services.branch_notes import untracked_note
from codegen_app.tracking.services.point_notes import annotations_of
from codegen_app.web.row import username

MAX_BESIDE = 7  # other series in the chart: one per colour
MAX_CHANGES = 200
MAX_ALIKE = 24


@dataclass(frozen=True)
class BaselineRow:
    """A user's baseline: the level begins again here."""

    at: datetime
    reason: str
    by: str


@dataclass(frozen=True)
class NoteRow:
    """A user's note on an alert of a change of the series, or at a point (``alert`` is None);
    ``at`` is the position of the change or the point, ``url`` the page of the alert or the
    point."""

    at: datetime
    text: str
    by: str
    alert: int | None
    url: str
    written_at: datetime


@dataclass(frozen=True)
class ChangeRow:
    """A change of one of the shown series, and the differences in a few words."""

    moved: ChangeSummary
    series: int
    subject: str
    differs: tuple[str, ...]


@dataclass(frozen=True)
class OtherSeries:
    """Another series on the same chart."""

    head: SeriesHead
    latest: PointValue | None


@dataclass(frozen=True)
class HistoryPage:
    """A series and others in its chart. ``answer`` is None without points of the trunk; ``rules``
    are the settings in effect for the series; ``changes`` are the latest of all shown series,
    ``more_changes``: there are more; ``node`` links to the problem's node if the problem is ours;
    ``alike`` are other series of the same metric of that problem: at other sizes, on other devices;
    ``branches`` are those with the newest points shown as well, and ``untracked`` is why there
    is no history, if all points are of branches."""

    head: SeriesHead
    latest: PointValue | None
    answer: Answer | None
    first_at: datetime | None
    last_at: datetime | None
    unchecked: bool
    own_problem: int | None
    node: str
    node_url: str
    rules: SeriesRules
    beside: tuple[OtherSeries, ...]
    alike: tuple[SeriesHead, ...]
    missing: tuple[int, ...]
    changes: tuple[ChangeRow, ...]
    more_changes: bool
    baselines: tuple[BaselineRow, ...]
    notes: tuple[NoteRow, ...]
    withdrawals: tuple[WithdrawalRow, ...]
    branches: tuple[BranchRow, ...]
    untracked: str
    findings: tuple[FindingRow, ...]

    @property
    def has_subjects(self) -> bool:
        return any(row.subject for row in self.changes)

    @property
    def set_aside(self) -> WithdrawalRow | None:
        """The latest point if it is set aside with its machine; None if it is compared."""
        standing = [row for row in self.withdrawals if row.alert and row.restored_at is None]
        last = max(standing, key=lambda row: row.place, default=None)
        is_latest = last is not None and (self.latest is None or last.place > self.latest.at)
        return last if is_latest else None

    @property
    def machine_change(self) -> ChangeSummary | None:
        """The change of the machine of that point, as far as it moved this series."""
        alert = self.set_aside.alert if self.set_aside else None
        moved = (row.moved for row in self.changes if row.series == self.head.id)
        return next((row for row in moved if alert and row.alert == alert), None)

    @property
    def units(self) -> tuple[str, ...]:
        heads = (self.head, *(other.head for other in self.beside))
        return tuple(dict.fromkeys(head.unit for head in heads))


def history_page(pk: int, beside: Sequence[int] = ()) -> HistoryPage:
    """Return a series by number, and others in its chart (11 queries, at most 12 more for points of
    branches). Raises ``Series.DoesNotExist``."""
    keys = [pk, *beside]
    found = Series.objects.select_related(*SHOWN_RULES).in_bulk(keys)
    if pk not in found:
        raise Series.DoesNotExist
    series = found[pk]
    shown = [found[key] for key in keys if key in found]
    latest = latest_values(shown)
    node = TemplateNode.objects.filter(problem=series.own_problem_id or 0).order_by("-pk").first()
    alike = Series.objects.filter(metric=series.metric, unit=series.unit)
    if series.own_problem_id:
        alike = alike.filter(own_problem=series.own_problem_id)
    else:
        alike = alike.filter(problem=series.problem)
    units = {row.pk: row.unit for row in shown}
    alike = alike.exclude(pk__in=units).order_by("-last_at", "-pk")
    found_changes = list(
        Change.objects.filter(series__in=units)
        .select_related("revision", "previous", "alert__assignee")
        .order_by("-at", "-pk")[: MAX_CHANGES + 1]
    )
    changes = [
        ChangeRow(
            change_summary(row, units[row.series_id]),
            row.series_id,
            row.revision.subject,
            difference_sentences(row),
        )
        for row in found_changes
    ]
    standing = [row for row in found_changes if row.series_id == pk and row.withdrawn_at is None]
    return HistoryPage(
        head=series_head(series),
        latest=latest.get(pk),
        answer=history_answer(series, latest[pk].at, standing) if pk in latest else None,
        first_at=series.first_at,
        last_at=series.last_at,
        unchecked=series.unchecked_from is not None,
        own_problem=series.own_problem_id,
        node=node.name if node else "",
        node_url=node.get_absolute_url() if node else "",
        rules=series_rules(series),
        beside=tuple(OtherSeries(series_head(row), latest.get(row.pk)) for row in shown[1:]),
        alike=tuple(map(series_head, alike[:MAX_ALIKE])),
        missing=tuple(key for key in beside if key not in found),
        changes=tuple(changes[:MAX_CHANGES]),
        more_changes=len(changes) > MAX_CHANGES,
        baselines=baselines_of([pk]).get(pk, ()),
        notes=notes_of([pk]).get(pk, ()),
        withdrawals=withdrawal_rows(series.unit, series=pk),
        branches=branch_rows(series),
        untracked=untracked_note(series),
        findings=current_findings(pk),
    )


def baselines_of(series: Sequence[int]) -> dict[int, tuple[BaselineRow, ...]]:
    """Return the active baselines by series (1 query)."""
    found: dict[int, tuple[BaselineRow, ...]] = {}
    rows = Baseline.objects.filter(series__in=series, removed_at=None)
    for row in rows.select_related("created_by").order_by("at"):
        line = BaselineRow(row.at, row.reason, username(row.created_by))
        found[row.series_id] = (*found.get(row.series_id, ()), line)
    return found


def notes_of(series: Sequence[int]) -> dict[int, tuple[NoteRow, ...]]:
    """Return notes at the series' points and on alerts of their changes, by series (2 queries)."""
    found: dict[int, tuple[NoteRow, ...]] = {}
    rows = (
        AlertEvent.objects.filter(kind=EventKind.NOTE, alert__changes__series__in=series)
        .exclude(note="")
        .values_list(
            *("alert__changes__series", "alert__changes__at", "note", "by__username"),
            *("alert", "at"),
        )
        .order_by("alert__changes__at", "pk")
    )
    for key, at, text, by, alert, written_at in rows[:500]:
        found[key] = (
            *found.get(key, ()),
            NoteRow(at, text, by or "", alert, f"/alerts/{alert}", written_at),
        )
    for row in annotations_of(series):
        url, by = row.datum.get_absolute_url(), username(row.created_by)
        note = NoteRow(row.datum.at, row.text, by, None, url, row.created_at)
        found[row.series_id] = (*found.get(row.series_id, ()), note)
    return found
