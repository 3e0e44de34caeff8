"""What happened to an alert: one row each, with who is told of it, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from codegen_app.models import Alert, AlertEvent, EventKind
from codegen_app.services.notifying import outbox


@transaction.atomic
def record_event(
    alert: Alert,
    kind: EventKind,
    by: AbstractBaseUser | None = None,
    note: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> AlertEvent:
    """Write the event, and the deliveries of it to whoever is told of such alerts.

    ``by`` is None where Kiln itself did it. ``before`` and ``after`` are the columns of the alert
    that it changed, as JSON holds them. Call it in the transaction that changes the alert.

    What Kiln finds of an alert that only repeats another is sent to those alone whom that other did
    not concern.
    """
    event = AlertEvent.objects.create(
        alert=alert,
        kind=kind,
        by_id=by.pk if by is not None else None,
        note=note,
        before=dict(before or {}),
        after=dict(after or {}),
    )
    if kind in outbox.SENT_EVENTS:
        outbox.enqueue(event, tuple(one.pk for one in _originals(alert)))
    return event


def _originals(alert: Alert) -> Iterator[Alert]:
    """The alerts that it only repeats, the nearest first: links lead in no circle."""
    other = alert.downstream_of
    if other is None and alert.duplicate_of is not None and alert.duplicate_of.kind == alert.kind:
        other = alert.duplicate_of
    if other is not None:
        yield other
        yield from _originals(other)
