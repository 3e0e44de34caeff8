"""Triage of alerts by people: state, assignee, notes and links, for one or several at once, and
undoing the last action.

Each request is an action: one event per changed alert, all or none. An action can be undone once,
as a whole, while nothing that it changed was changed again.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, User
from django.db import IntegrityError, connection, transaction

from codegen_app.accounts import permissions
from codegen_app.platform.advisory_lock import LockClass, lock_transaction
from codegen_app.tracking.alerting.events import change_alert, column_values, record_event
from codegen_app.tracking.models import (
    OPEN_ALERT_STATES,
    QUIET_KINDS,
    UNDOABLE_EVENTS,
    Alert,
    AlertEvent,
    AlertKind,
    AlertState,
    EventKind,
    Relation,
)
from codegen_app.workers import queue
from scheduler.errors import UserError

MAX_ALERTS = 500
MAX_NOTE_LENGTH = 2000


@dataclass(frozen=True)
class TriageAction:
    """The result of an action: the ``alerts`` that it changed, and the key to undo it (None if
    nothing changed)."""

    key: uuid.UUID | None
    alerts: tuple[int, ...]
    line: str


@transaction.atomic
def set_state(
    alerts: Collection[int], state: AlertState, by: AbstractBaseUser, note: str = ""
) -> TriageAction:
    """Set the state of alerts; alerts that have it stay as they are.

    Raises ``UserError`` for an unknown alert, for history, which only Kiln sets, and if a series or
    a machine would have two open alerts.
    """
    if state == AlertState.HISTORY:
        raise UserError("state: history is set by Kiln alone, for points that were old on arrival")
    rows = _lock_alerts(alerts)
    changed = [row for row in rows if row.state != state]
    events = [_change(row, EventKind.STATE, by, {"state": state.value}, note) for row in changed]
    return _record_action(events, f"set to {state.label}", rows)


@transaction.atomic
def assign(
    alerts: Collection[int], to: AbstractBaseUser | None, by: AbstractBaseUser
) -> TriageAction:
    """Assign alerts to an account, or to none.

    Raises ``UserError`` for an account that may not triage.
    """
    if isinstance(to, User) and not to.has_perm(permissions.TRIAGE):
        raise UserError(
            f"{to.get_username()} has no permission to triage alerts: select another user"
        )
    rows = _lock_alerts(alerts)
    key = to.pk if to is not None else None
    changed = [row for row in rows if row.assignee_id != key]
    events = [_change(row, EventKind.ASSIGNEE, by, {"assignee": key}) for row in changed]
    whose = f"assigned to {to.get_username()}" if to is not None else "unassigned"
    return _record_action(events, whose, rows)


@transaction.atomic
def add_note(alerts: Collection[int], text: str, by: AbstractBaseUser) -> TriageAction:
    """Add a note to alerts. Raises ``UserError`` for an empty or too long note."""
    text = text.strip()
    if not text:
        raise UserError("note: enter a text")
    if len(text) > MAX_NOTE_LENGTH:
        raise UserError(f"note: at most {MAX_NOTE_LENGTH} characters, not {len(text)}")
    rows = _lock_alerts(alerts)
    events = [record_event(row, EventKind.NOTE, by, text) for row in rows]
    return _record_action(events, "noted", rows)


@transaction.atomic
def link(
    alerts: Collection[int], to: int, relation: Relation, by: AbstractBaseUser
) -> TriageAction:
    """Mark alerts as duplicates of another, or downstream of it; it is shown with them.

    Raises ``UserError`` if that alert does not exist, is one of them, or is itself linked.
    """
    lock_links()
    rows = _lock_alerts([*alerts, to])
    folded = [row for row in rows if row.pk != to]
    if to in alerts or not folded:
        raise UserError(f"alert {to}: an alert cannot be linked to itself")
    _check_circle(to, [row.pk for row in folded])
    columns = {other.value: to if other == relation else None for other in Relation}
    return _record_action(
        _change_links(folded, columns, by), f"{relation.label} alert {to}", folded
    )


@transaction.atomic
def unlink(alerts: Collection[int], by: AbstractBaseUser) -> TriageAction:
    """Remove the links of alerts."""
    lock_links()
    rows = _lock_alerts(alerts)
    events = _change_links(rows, {relation.value: None for relation in Relation}, by)
    return _record_action(events, "link removed", rows)


def _change_links(
    rows: Iterable[Alert], columns: Mapping[str, int | None], by: AbstractBaseUser
) -> list[AlertEvent]:
    changed = [row for row in rows if column_values(row, columns) != columns]
    return [_change(row, EventKind.LINK, by, columns) for row in changed]


@transaction.atomic
def undo(key: uuid.UUID, by: AbstractBaseUser) -> TriageAction:
    """Undo an action as a whole.

    Raises ``UserError``, with nothing undone, if there is no such action, it was undone, or
    something that it changed was changed since.
    """
    lock_links()
    events = list(AlertEvent.objects.filter(act=key, kind__in=UNDOABLE_EVENTS).order_by("pk"))
    if not events:
        raise UserError("there is nothing to undo")
    rows = {row.pk: row for row in _lock_alerts({event.alert_id for event in events})}
    if AlertEvent.objects.filter(undoes__in=events).exists():
        raise UserError("the action was already undone")
    for event in events:
        _check_unchanged(event, rows[event.alert_id])
        for relation in Relation:
            if to := event.before.get(relation.value):
                _check_circle(to, [event.alert_id])
    for event in events:
        undoing = _change(rows[event.alert_id], EventKind.UNDO, by, event.before)
        undoing.undoes = event
        undoing.save(update_fields=["undoes"])
    return TriageAction(None, tuple(rows), f"Undone: {_alert_prefix(rows)}{summary_of(events[0])}.")


def summary_of(event: AlertEvent) -> str:
    """Return what an event did, in a few words."""
    after = event.after
    if event.kind == EventKind.NOTE:
        return "a note"
    if "state" in after:
        return str(AlertState(after["state"]).label)
    if "assignee" in after:
        return "assigned" if after["assignee"] else "unassigned"
    targets = {relation: after.get(relation.value) for relation in Relation}
    return next(
        (f"{relation.label} alert {pk}" for relation, pk in targets.items() if pk), "link removed"
    )


def _lock_alerts(alerts: Collection[int]) -> list[Alert]:
    """Return the rows, locked in one order: two people who triage the same alerts wait for each
    other."""
    keys = sorted(set(alerts))
    if not keys:
        raise UserError("no alert is selected: check one, or move to it with j and k")
    if len(keys) > MAX_ALERTS:
        raise UserError(f"{len(keys)} alerts are selected, more than the limit of {MAX_ALERTS}")
    rows = list(Alert.objects.select_for_update().filter(pk__in=keys).order_by("pk"))
    if missing := sorted(set(keys) - {row.pk for row in rows}):
        raise UserError(f"alert {missing[0]} does not exist")
    return rows


def _change(
    row: Alert, kind: EventKind, by: AbstractBaseUser, columns: Mapping[str, Any], note: str = ""
) -> AlertEvent:
    """Set columns of an alert, and record the event. Raises ``UserError`` for a conflict."""
    try:
        with transaction.atomic():
            event = change_alert(row, kind, columns, by, note)
    except IntegrityError:
        reason = "the linked object no longer exists"
        if row.kind == AlertKind.MACHINE and row.state in OPEN_ALERT_STATES:
            reason = "the machine already has an open alert"
        if row.kind == AlertKind.MISSING and row.state in OPEN_ALERT_STATES:
            reason = "the series already has an open alert for missing data"
        if row.kind in QUIET_KINDS and row.state in OPEN_ALERT_STATES:
            reason = "the series already has an open alert of this kind"
        raise UserError(f"alert {row.pk}: {reason}") from None
    if row.kind == AlertKind.MACHINE and "state" in columns:
        queue.notify(queue.Kind.DETECT)  # the state decides about the machine's points
    return event


def _check_unchanged(event: AlertEvent, alert: Alert) -> None:
    """Raise ``UserError`` if what an event changed was changed again."""
    later = AlertEvent.objects.filter(alert=alert, pk__gt=event.pk, undone_by=None)
    later = later.exclude(kind=EventKind.UNDO).select_related("by").order_by("-pk")
    other = next((row for row in later if row.after.keys() & event.after.keys()), None)
    if other is not None:
        who = other.by.get_username() if other.by is not None else "Kiln"
        raise UserError(
            f"nothing was undone: alert {alert.pk} was changed "
            f"by {who} at {other.at:%Y-%m-%d %H:%M} UTC ({summary_of(other)})"
        )
    if column_values(alert, event.after) != event.after:
        raise UserError(f"nothing was undone: alert {alert.pk} was changed later")


def _record_action(events: Sequence[AlertEvent], what: str, rows: Sequence[Alert]) -> TriageAction:
    """Give one key to the events of an action."""
    if not events:
        return TriageAction(None, (), f"{_alert_prefix(row.pk for row in rows)}{what} (no change).")
    key = uuid.uuid4()
    AlertEvent.objects.filter(pk__in=[event.pk for event in events]).update(act=key)
    alerts = tuple(event.alert_id for event in events)
    return TriageAction(key, alerts, f"{_alert_prefix(alerts)}{what}.")


def _alert_prefix(alerts: Iterable[int]) -> str:
    keys = tuple(alerts)
    return f"alert {keys[0]}: " if len(keys) == 1 else f"{len(keys)} alerts: "


def lock_links() -> None:
    """Lock all links until the end of the transaction; before any alert is locked."""
    lock_transaction(LockClass.ALERT_LINKS)


def lock_for_actions(alerts: Collection[int]) -> None:
    """Lock all links, and then these alerts, before several actions in one transaction: each of
    them would lock in this order, but not after another has locked its alerts."""
    lock_links()
    _lock_alerts(alerts)


def _check_circle(to: int, alerts: Collection[int]) -> None:
    """Raise ``UserError`` if an alert that is linked to these alerts, directly or through others,
    would become their target."""
    table = Alert._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH RECURSIVE above(id) AS (SELECT id FROM {table} WHERE id = %s"  # noqa: S608
            f" UNION SELECT COALESCE(a.duplicate_of_id, a.downstream_of_id) FROM above"
            f" JOIN {table} a ON a.id = above.id) SELECT id FROM above WHERE id IS NOT NULL",
            [to],
        )
        above = {pk for (pk,) in cursor.fetchall()}
    if circle := next((pk for pk in alerts if pk in above), None):
        raise UserError(f"alert {to} is itself linked to alert {circle}: remove that link first")
