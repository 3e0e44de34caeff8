"""Deliveries that are due: written with the event that they tell of, sent afterwards."""

from __future__ import annotations

import uuid

from django.db.models import Q
from django.utils import timezone

from codegen_app.models import Alert, AlertEvent, Channel, Delivery, EventKind, Series

_SENT = (EventKind.RAISED, EventKind.GREW, EventKind.RECOVERED, EventKind.STATE)


def enqueue(event: AlertEvent) -> list[Delivery]:
    """A delivery for each active channel that wants to know of it; again it adds none.

    Part of the transaction of the event.
    """
    if event.kind not in _SENT:
        return []
    active = Channel.objects.filter(active=True, alerts__contains=[event.alert.kind])
    due = [
        Delivery(channel=channel, event=event, key=uuid.uuid4(), next_at=timezone.now())
        for channel in active
        if _concerns(channel, event.alert)
    ]
    return Delivery.objects.bulk_create(due, ignore_conflicts=True)


def _concerns(channel: Channel, alert: Alert) -> bool:
    """Whether all words of its search are in problem or device of a series of the alert."""
    words = channel.search.split()
    if not words:
        return True
    of = Series.objects.filter(
        Q(changes__alert=alert, changes__withdrawn_at=None) | Q(alerts=alert)
    )
    for word in words:
        of = of.filter(Q(problem__icontains=word) | Q(device_name__icontains=word))
    return of.exists()
