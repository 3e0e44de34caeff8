"""Alerts as lists show them: with their largest change, the alerts folded under them, and who may
triage them. Nothing here counts points or iterates over an alert's changes: there may be
thousands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, Permission, User
from django.db.models import Exists, OuterRef, Q
from django.db.models.expressions import RawSQL

from codegen_app.accounts import permissions
from codegen_app.tracking.models import (
    OPEN_ALERT_STATES,
    QUIET_KINDS,
    UNDOABLE_EVENTS,
    Alert,
    AlertEvent,
    AlertKind,
    Change,
    Relation,
    SeriesFinding,
)
from codegen_app.web.row import build_row, username
from scheduler.ir.bindings import format_bindings
from scheduler.track.resources import is_emulated

MAX_COUNTED = 99
MAX_FOLDED = 500
_TABLE = Alert._meta.db_table
# Alerts that are linked to these, and alerts that are linked to those in turn.
_FOLDED = f"""
    WITH RECURSIVE under(id) AS (
        SELECT id FROM {_TABLE} WHERE duplicate_of_id = ANY(%s) OR downstream_of_id = ANY(%s)
        UNION
        SELECT a.id FROM under JOIN {_TABLE} a
            ON a.duplicate_of_id = under.id OR a.downstream_of_id = under.id
    ) SELECT id FROM under ORDER BY id LIMIT {MAX_FOLDED}
"""  # noqa: S608 - our own names
# Uses the index change_worst: one row per alert, however many changes it has. Changes of a machine
# are withdrawn when its points are set aside.
_WORST_OF_EACH = f"""
    unnest(%s::bigint[]) AS alert(id)
    CROSS JOIN LATERAL (
        SELECT * FROM ((
            SELECT * FROM {Change._meta.db_table}
            WHERE alert_id = alert.id AND withdrawn_at IS NULL
            ORDER BY ABS(LN(after / before)) DESC, id LIMIT 1
        ) UNION ALL (
            SELECT withdrawn.* FROM {_TABLE} AS machine
            JOIN {Change._meta.db_table} AS withdrawn ON withdrawn.alert_id = machine.id
            WHERE machine.id = alert.id AND machine.kind = 'machine'
                AND withdrawn.withdrawn_at IS NOT NULL
            ORDER BY ABS(LN(after / before)) DESC, withdrawn.id LIMIT 1
        )) AS worst
        ORDER BY ABS(LN(after / before)) DESC, id LIMIT 1
    ) AS c
"""  # noqa: S608 - our own names


@dataclass(frozen=True)
class WorstChange:
    """The change of an alert whose ratio is furthest from 1: after / before, its 95% interval if
    known, and the number of points on each side."""

    series: str
    ratio: float
    low: float | None
    high: float | None
    n_before: int
    n_after: int
    worse: bool
    generated: bool
    emulated: bool


@dataclass(frozen=True)
class FoldedAlert:
    """An alert that is linked to another. ``generated``: its data was generated, not measured."""

    id: int
    url: str
    title: str
    relation: str
    to: int
    state: str
    state_label: str
    generated: bool


@dataclass(frozen=True)
class AlertRow:
    """One alert in a list. ``subject`` is the revision, the series without new points, or the
    machine; ``commit`` and ``author`` are those of the revision, "" if they were not sent;
    ``generated``: its data was generated, not measured."""

    id: int
    url: str
    kind: str
    kind_label: str
    state: str
    state_label: str
    subject: str
    commit: str
    author: str
    branch: str
    n_series: int
    worst: WorstChange | None
    cause: str
    assignee: str
    at: datetime
    created_at: datetime
    recovered_at: datetime | None
    is_open: bool
    linked: str
    generated: bool
    finding: str
    folded: tuple[FoldedAlert, ...]

    @property
    def proposes_fixed(self) -> bool:
        """Whether later points are back at the level before and the alert is open."""
        return self.recovered_at is not None and self.is_open


@dataclass(frozen=True)
class UndoableAction:
    """The last action of a user that was not undone."""

    act: UUID
    kind: str
    alert: int
    others: int
    after: Mapping[str, object]
    at: datetime


def alert_rows(alerts: Iterable[Alert]) -> tuple[AlertRow, ...]:
    """Return rows of alerts with their revision, series and assignee (2 queries; 3 with quiet
    kinds)."""
    return with_folded(unfolded_rows(alerts))


def unfolded_rows(alerts: Iterable[Alert]) -> tuple[AlertRow, ...]:
    """Return the same rows without the alerts folded under them (1 query; 2 with quiet kinds)."""
    rows = list(alerts)
    worst = worst_changes([row.pk for row in rows])
    quiet = {row.pk: row for row in rows if row.kind in QUIET_KINDS}
    summaries = finding_summaries(quiet) if quiet else {}
    found = []
    for row in rows:
        linked = next(
            (relation for relation in Relation if getattr(row, f"{relation.value}_id")), None
        )
        found.append(
            build_row(
                AlertRow,
                row,
                **shared_columns(row),
                kind_label=row.get_kind_display(),
                subject=row.subject,
                commit=row.revision.subject if row.revision else "",
                author=row.revision.author if row.revision else "",
                branch=row.revision.branch if row.revision else "",
                worst=worst.get(row.pk),
                assignee=username(row.assignee),
                is_open=row.state in OPEN_ALERT_STATES,
                linked=f"{linked.label} #{getattr(row, f'{linked.value}_id')}" if linked else "",
                finding=summaries.get(row.pk, ""),
                folded=(),
            )
        )
    return tuple(found)


def shared_columns(row: Alert) -> dict[str, Any]:
    """Return what every row of an alert has, besides equal fields of the model."""
    return {
        "url": row.get_absolute_url(),
        "state_label": row.get_state_display(),
        "generated": row.is_generated,
    }


def with_folded(rows: Sequence[AlertRow]) -> tuple[AlertRow, ...]:
    """Return the rows with the alerts folded under them (1 query)."""
    under = folded_under([row.id for row in rows])
    return tuple(replace(row, folded=under.get(row.id, ())) for row in rows)


def folded_under(alerts: Collection[int]) -> dict[int, tuple[FoldedAlert, ...]]:
    """Return the alerts linked to each of these, directly or through others, by alert (1 query)."""
    keys = list(alerts)
    rows = list(
        Alert.objects.filter(pk__in=RawSQL(_FOLDED, [keys, keys]))  # noqa: S611 - no text of others
        .select_related("revision", "series")
        .order_by("pk")
    )
    parents = {row.pk: row.duplicate_of_id or row.downstream_of_id for row in rows}
    found: dict[int, list[FoldedAlert]] = defaultdict(list)
    for row in rows:
        top = parents[row.pk]
        while top is not None and top not in keys and top in parents:
            top = parents[top]
        if top is not None:
            relation = Relation.DUPLICATE if row.duplicate_of_id else Relation.DOWNSTREAM
            folded = build_row(
                FoldedAlert,
                row,
                **shared_columns(row),
                title=str(row),
                relation=str(relation.label),
                to=parents[row.pk],
            )
            found[top].append(folded)
    return {key: tuple(folded) for key, folded in found.items()}


def worst_changes(alerts: Collection[int]) -> dict[int, WorstChange]:
    """Return the change furthest from 1 of each alert (1 query)."""
    found = {}
    rows = Change.objects.filter(pk__in=worst_change_ids(alerts)).select_related("series")
    for row in rows.defer("explanation"):
        series, sizes = row.series, format_bindings(row.series.sizes)
        subject = f"{series.metric} of {series.problem}{f' at {sizes}' if sizes else ''}"
        found[row.alert_id or 0] = build_row(
            WorstChange,
            row,
            series=f"{subject} on {series.device_name}",
            generated=series.is_generated,
            emulated=is_emulated(series.target),
        )
    return found


def finding_summaries(alerts: Mapping[int, Alert]) -> dict[int, str]:
    """Return in a few words what alerts about the course of a series are about, by key (1
    query)."""
    found = {}
    for finding in SeriesFinding.objects.filter(alert__in=alerts):
        finding.alert = alerts[finding.pk]
        found[finding.pk] = finding.summary
    return found


def worst_change_ids(alerts: Collection[int]) -> RawSQL:
    """Return the keys of the change furthest from 1 of each of these alerts, for a query's
    condition."""
    return RawSQL(f"SELECT c.id FROM {_WORST_OF_EACH}", [list(alerts)])  # noqa: S608, S611


def top_level_alerts() -> Q:
    """A condition: alerts that are not folded under another."""
    return Q(duplicate_of=None, downstream_of=None)


def open_regressions() -> int:
    """Count open top-level regressions, up to one more than ``MAX_COUNTED``."""
    rows = Alert.objects.filter(
        top_level_alerts(), kind=AlertKind.REGRESSION, state__in=OPEN_ALERT_STATES
    )
    return rows.order_by()[: MAX_COUNTED + 1].count()


def open_regressions_label() -> str:
    """Return their number for the bar of every page: "" for none, "99+" beyond ``MAX_COUNTED``."""
    count = open_regressions()
    return "" if not count else str(count) if count <= MAX_COUNTED else f"{MAX_COUNTED}+"


def triagers(also: Collection[int] = ()) -> dict[int, tuple[str, bool]]:
    """Return the accounts that may triage and those in ``also``, by key: the name, and whether the
    account may triage (1 query)."""
    app, _, codename = permissions.TRIAGE.partition(".")
    rights = Permission.objects.filter(codename=codename, content_type__app_label=app)
    may = Q(is_superuser=True) | Q(user_permissions__in=rights)
    may |= Q(groups__permissions__in=rights)
    able = User.objects.filter(may, is_active=True).values("pk")
    people = User.objects.filter(Q(pk__in=able) | Q(pk__in=list(also)))
    rows = people.annotate(able=Exists(able.filter(pk=OuterRef("pk")))).order_by("username")
    return {row.pk: (row.get_username(), bool(row.able)) for row in rows}


def last_undoable_action(reader: AbstractBaseUser) -> UndoableAction | None:
    """Return the last action of the reader that can be undone (1 query)."""
    mine = AlertEvent.objects.filter(by_id=reader.pk, act__isnull=False, kind__in=UNDOABLE_EVENTS)
    latest = mine.filter(undone_by=None).order_by("-pk").values("act")[:1]
    events = list(AlertEvent.objects.filter(act__in=latest).order_by("pk"))
    if not events:
        return None
    first = events[0]
    assert first.act is not None
    return UndoableAction(
        first.act, first.kind, first.alert_id, len(events) - 1, first.after, first.at
    )
