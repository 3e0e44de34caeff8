"""Events of alerts: one row each, with the notified channels, in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from codegen_app.tracking.models import Alert, AlertEvent, AlertState, EventKind
from codegen_app.tracking.notifying import outbox

# Foreign keys as keys.
_ATTRIBUTES = {field.name: field.attname for field in Alert._meta.concrete_fields}


@transaction.atomic
def record_event(
    alert: Alert,
    kind: EventKind,
    by: AbstractBaseUser | None = None,
    note: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> AlertEvent:
    """Record the event, and its deliveries to the channels for such alerts.

    ``by`` is None if Kiln itself did it. ``before`` and ``after`` are the alert's changed columns,
    as JSON. Call it in the transaction that changes the alert.
    Kiln's own events of an alert that repeats another are only sent to channels that the other
    alert was not for; those of history are not sent.
    """
    event = AlertEvent.objects.create(
        alert=alert,
        kind=kind,
        by_id=by.pk if by is not None else None,
        note=note,
        before=dict(before or {}),
        after=dict(after or {}),
    )
    if kind in outbox.SENT_EVENTS and alert.state != AlertState.HISTORY:
        outbox.enqueue(event, tuple(original.pk for original in _originals(alert)))
    return event


def change_alert(
    alert: Alert,
    kind: EventKind,
    columns: Mapping[str, Any],
    by: AbstractBaseUser | None = None,
    note: str = "",
) -> AlertEvent:
    """Set columns of an alert (foreign keys as keys), and record the event."""
    before = column_values(alert, columns)
    set_columns(alert, columns)
    return record_event(alert, kind, by, note, before, columns)


def set_columns(alert: Alert, columns: Mapping[str, Any]) -> None:
    """Set columns of an alert (foreign keys as keys), and save them."""
    for name, value in columns.items():
        setattr(alert, _ATTRIBUTES[name], value)
    alert.save(update_fields=[*columns, "changed_at"])


def column_values(alert: Alert, names: Iterable[str]) -> dict[str, Any]:
    """Return columns as events record them: foreign keys as keys."""
    return {name: getattr(alert, _ATTRIBUTES[name]) for name in names}


def was_closed_by_kiln(alerts: Collection[int]) -> set[int]:
    """Return those of some closed alerts, by key, whose state Kiln itself set last (1 query)."""
    if not alerts:
        return set()
    changes = AlertEvent.objects.filter(
        alert__in=alerts, kind__in=(EventKind.STATE, EventKind.UNDO)
    )
    latest = changes.order_by("alert_id", "-pk").distinct("alert_id")
    return {alert for alert, by in latest.values_list("alert_id", "by_id") if by is None}


def _originals(alert: Alert) -> Iterator[Alert]:
    """Yield the alerts that this alert repeats, the nearest first: links have no cycles."""
    other = alert.downstream_of
    if other is None and alert.duplicate_of is not None and alert.duplicate_of.kind == alert.kind:
        other = alert.duplicate_of
    if other is not None:
        yield other
        yield from _originals(other)
