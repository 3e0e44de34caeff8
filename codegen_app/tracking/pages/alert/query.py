"""The page of an alert: its changes with their details, its events, and its links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from codegen_app.tracking.compare_revisions.sides import comparison_url, revision_text
from codegen_app.tracking.models import (
    LARGEST_FIRST,
    LISTED,
    UNDOABLE_EVENTS,
    Alert,
    AlertEvent,
    AlertState,
    Change,
    EventKind,
    Relation,
    SeriesFinding,
)
from codegen_app.tracking.pages.alert.causes import CauseGroup, group_causes
from codegen_app.tracking.pages.alert.machine import MachineSection, machine_section
from codegen_app.tracking.queries.alert_rows import (
    AlertRow,
    FoldedAlert,
    alert_rows,
    shared_columns,
    triagers,
)
from codegen_app.tracking.queries.alert_window import AlertWindow, alert_window
from codegen_app.tracking.queries.revision_links import revision_links
from codegen_app.tracking.queries.series_findings import FindingRow, finding_row
from codegen_app.tracking.queries.series_summary import (
    ChangeSummary,
    SeriesHead,
    change_summary,
    series_head,
)
from codegen_app.web.row import build_row, username

PAGE_SIZE = 100
MAX_EVENTS = 500
_RELATION_TEXTS = {
    Relation.DUPLICATE: "duplicated by this alert",
    Relation.DOWNSTREAM: "upstream of this alert",
}


@dataclass(frozen=True)
class ChangeRow:
    """A change of the alert: the size of the change, and details beyond those that its cause group
    states for all its changes."""

    moved: ChangeSummary
    series: SeriesHead
    rule: str
    besides: tuple[str, ...]
    explained: bool


@dataclass(frozen=True)
class EventRow:
    """An event of the alert. ``act`` is set if it can be undone."""

    id: int
    at: datetime
    by: str
    kind: str
    what: str
    note: str
    undone: bool
    act: UUID | None


@dataclass(frozen=True)
class LinkedAlert:
    """Another alert: one that this is linked to, one that is linked to this (directly or through
    others), or one of the same revision. ``relation`` names the relation, from the other's side."""

    id: int
    url: str
    title: str
    relation: str
    state: str
    state_label: str
    generated: bool


@dataclass(frozen=True)
class AlertPage:
    """An alert; ``changes`` are one page of its changes, the worst first, and ``why`` covers these.

    ``series`` is the series with missing data if the alert is about that; ``silent`` is how long it
    had no point. ``machine`` is set if the alert is about one, ``finding`` if it is about a drift,
    a change of spread or a second mode of ``series``. ``window`` is None for these, and if there
    was no earlier point. ``diff_url`` leads to its commits, ``compare_url`` to all series at the
    two revisions of the largest change.
    """

    alert: AlertRow
    repository: str
    source_url: str
    diff_url: str
    compare_url: str
    why: tuple[CauseGroup, ...]
    window: AlertWindow | None
    machine: MachineSection | None
    finding: FindingRow | None
    series: SeriesHead | None
    last_point_at: datetime | None
    silent: timedelta | None
    changes: tuple[ChangeRow, ...]
    start: int
    more: bool
    events: tuple[EventRow, ...]
    others: tuple[LinkedAlert, ...]

    @property
    def previous(self) -> int | None:
        """The start of the previous page of changes."""
        return max(0, self.start - PAGE_SIZE) if self.start else None

    @property
    def has_besides(self) -> bool:
        return any(change.besides for change in self.changes)

    @property
    def end(self) -> int:
        """The position after the last displayed change."""
        return self.start + len(self.changes)


def alert_page(pk: int, start: int = 0) -> AlertPage:
    """Return an alert by number (9 queries; 10 for a machine's, or for a window with many
    commits). Raises ``Alert.DoesNotExist``."""
    linked = (
        f"{relation.value}__{name}" for relation in Relation for name in ("revision", "series")
    )
    findings = ("finding", "series_finding__revision", "series_finding__series")
    related = ("revision", "good_revision", "series", "assignee", *findings, *linked)
    alert = Alert.objects.select_related(*related).get(pk=pk)
    changes = list(
        Change.objects.filter(LISTED, alert=pk)
        .select_related("series", "revision", "previous", "alert")
        .order_by(*LARGEST_FIRST)[start : start + PAGE_SIZE + 1]
    )
    shown = changes[:PAGE_SIZE]
    causes, details = group_causes(shown)
    diff_url = compare_url = ""
    links = revision_links([alert.revision])
    if changes and changes[0].previous is not None and not alert.machine:
        sides = changes[0].previous, changes[0].revision
        texts = [revision_text(side.name) for side in sides]
        diff_url = links.diff(*sides)
        compare_url = comparison_url(*texts) if all(texts) else ""
    window = alert_window(alert, links)
    if window is not None and window.diff_url:
        diff_url = window.diff_url
    row = alert_rows([alert])[0]
    series = alert.series
    return AlertPage(
        alert=row,
        repository=alert.revision.repository if alert.revision else "",
        source_url=links.commit(alert.revision) if alert.revision else "",
        diff_url=diff_url,
        compare_url=compare_url,
        why=causes,
        window=window,
        machine=machine_section(alert),
        finding=_finding(alert),
        series=series_head(series) if series else None,
        last_point_at=series.last_at if series else None,
        silent=alert.created_at - series.last_at if series and series.last_at else None,
        changes=tuple(
            ChangeRow(
                moved=change_summary(change, change.series.unit),
                series=series_head(change.series),
                rule=change.rule,
                besides=details.get(change.pk, ()),
                explained=change.explained_at is not None,
            )
            for change in shown
        ),
        start=start,
        more=len(changes) > PAGE_SIZE,
        events=_events(alert),
        others=_linked_alerts(alert, row.folded),
    )


def _finding(alert: Alert) -> FindingRow | None:
    finding: SeriesFinding | None = getattr(alert, "series_finding", None)
    return finding_row(finding) if finding is not None else None


def _events(alert: Alert) -> tuple[EventRow, ...]:
    """Return the events, the oldest first; only the latest if there are too many (2 queries)."""
    rows = list(
        AlertEvent.objects.filter(alert=alert)
        .select_related("by", "undone_by", "undoes")
        .order_by("-pk")[:MAX_EVENTS]
    )
    named = {
        key for row in rows for side in (row.before, row.after) if (key := side.get("assignee"))
    }
    names = {key: name for key, (name, _) in triagers(named).items()}
    changed_later: set[str] = set()
    found = []
    for row in rows:
        undone = getattr(row, "undone_by", None) is not None
        open_to_undo = row.kind in UNDOABLE_EVENTS and row.act is not None and not undone
        latest = not changed_later & row.after.keys()
        found.append(
            build_row(
                EventRow,
                row,
                by=username(row.by),
                what=_event_text(row, names),
                undone=undone,
                act=row.act if open_to_undo and latest else None,
            )
        )
        if not undone and row.kind != EventKind.UNDO:
            changed_later |= row.after.keys()
    return tuple(reversed(found))


def _event_text(row: AlertEvent, names: Mapping[int, str]) -> str:
    if row.kind == EventKind.UNDO:
        return f"undid: {_event_text(row.undoes, names)}" if row.undoes else "undid an action"
    before, after = row.before, row.after
    if row.kind == EventKind.STATE:
        states = dict(AlertState.choices)
        sides = [str(states.get(side.get("state"), "")) for side in (before, after)]
        return " → ".join(side for side in sides if side)
    if row.kind == EventKind.ASSIGNEE:
        key = after.get("assignee")
        return f"assigned to {names.get(key, 'a deleted account')}" if key else "unassigned"
    if row.kind == EventKind.LINK:
        targets = {relation: after.get(relation.value) for relation in Relation}
        texts = (f"{relation.label} #{pk}" for relation, pk in targets.items() if pk)
        return next(texts, "link removed")
    return str(row.get_kind_display())


def _linked_alerts(alert: Alert, folded: Sequence[FoldedAlert]) -> tuple[LinkedAlert, ...]:
    """Return the alert that it is linked to, the alerts linked to it, and other alerts of its
    revision, each once (1 query)."""
    siblings = Alert.objects.filter(revision=alert.revision_id or 0).exclude(pk=alert.pk)
    found = {}
    for other in folded:
        to = "this" if other.to == alert.pk else f"#{other.to}"
        found[other.id] = build_row(
            LinkedAlert,
            other,
            title=f"#{other.id} {other.title}",
            relation=f"{other.relation} {to}",
        )
    for relation in Relation:
        above: Alert | None = getattr(alert, relation.value)
        if above is not None:
            found[above.pk] = _linked_alert(above, _RELATION_TEXTS[relation])
    for row in siblings.select_related("revision", "series").order_by("pk"):
        found.setdefault(row.pk, _linked_alert(row, "same revision"))
    return tuple(found.values())


def _linked_alert(row: Alert, relation: str) -> LinkedAlert:
    title = f"#{row.pk} {row}"
    return build_row(LinkedAlert, row, **shared_columns(row), title=title, relation=relation)
