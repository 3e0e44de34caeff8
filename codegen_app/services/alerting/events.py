"""What happened to an alert: one row each, with who is told of it, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from codegen_app.models import Alert, AlertEvent, EventKind
from codegen_app.services.notifying import outbox

_FOUND = (EventKind.RAISED, EventKind.GREW, EventKind.RECOVERED)


@transaction.atomic
def record(
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

    What Kiln finds of an alert that only repeats another is sent to nobody.
    """
    event = AlertEvent.objects.create(
        alert=alert,
        kind=kind,
        by_id=by.pk if by is not None else None,
        note=note,
        before=dict(before or {}),
        after=dict(after or {}),
    )
    if not (kind in _FOUND and _hangs(alert)):
        outbox.enqueue(event)
    return event


def _hangs(alert: Alert) -> bool:
    """Whether it only repeats what another alert told whoever is told of such alerts."""
    if alert.downstream_of_id is not None:
        return True
    other = alert.duplicate_of
    return other is not None and other.kind == alert.kind
