"""Deletion of old deliveries, if a retention policy says so: what was sent, when, and why it
failed. Pending deliveries and events are never deleted."""

from __future__ import annotations

from datetime import datetime

from django.db.models import QuerySet

from codegen_app.tracking.models import Delivery, DeliveryState


def deliveries_ended_before(moment: datetime) -> QuerySet[Delivery]:
    """Return deliveries that succeeded or failed before then, by the index ``delivery_ended``."""
    over = (DeliveryState.DELIVERED, DeliveryState.FAILED)
    return Delivery.objects.filter(state__in=over, ended_at__lt=moment)


def delete_deliveries(before: datetime, most: int) -> int:
    """Delete some, the oldest first; return how many. Part of the caller's transaction."""
    oldest = deliveries_ended_before(before).order_by("ended_at")
    keys = list(oldest.select_for_update(skip_locked=True).values_list("pk", flat=True)[:most])
    Delivery.objects.filter(pk__in=keys).delete()
    return len(keys)
