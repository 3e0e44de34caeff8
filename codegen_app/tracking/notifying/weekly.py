"""When weekly digests are due: each period is one delivery, whichever process writes it."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from codegen_app.tracking.models import Channel, Delivery
from codegen_app.tracking.notifying.digest import PERIOD
from codegen_app.workers import queue


def enqueue_due(now: datetime | None = None) -> int:
    """Write the deliveries of digests that are due; return how many.

    A digest begins where the channel's last one ended (``digest_until``), so nothing is left out if
    Kiln was stopped for weeks, and nothing is sent twice.
    """
    moment = now or timezone.now()
    count = 0
    for channel in Channel.objects.filter(active=True, weekday__isnull=False):
        until = last_scheduled(channel, moment)
        if channel.digest_until is None or channel.digest_until < until:
            count += _enqueue(channel, until, moment)
    if count:
        queue.notify(queue.Kind.NOTIFY, count)
    return count


def enqueue_rest(channel: Channel) -> None:
    """Write the delivery of what no digest covered yet, before the channel gets one message for
    each event: no notification was sent."""
    now = timezone.now()
    if _enqueue(channel, now, now):
        queue.notify(queue.Kind.NOTIFY)


def last_scheduled(channel: Channel, moment: datetime) -> datetime:
    """Return the latest time up to a moment at which the channel's digest is scheduled."""
    local = timezone.localtime(moment, timezone.get_default_timezone())
    day = local - timedelta(days=(local.weekday() - (channel.weekday or 0)) % 7)
    scheduled = day.replace(hour=channel.hour, minute=0, second=0, microsecond=0)
    return scheduled if scheduled <= local else scheduled - PERIOD


@transaction.atomic
def _enqueue(channel: Channel, until: datetime, now: datetime) -> bool:
    """Write one delivery, unless another process did."""
    same = Q(digest_until=channel.digest_until)
    if not Channel.objects.filter(same, pk=channel.pk, active=True).update(digest_until=until):
        return False
    since = channel.digest_until or until - PERIOD
    Delivery.objects.create(
        channel=channel, key=uuid.uuid4(), next_at=now, digest_since=since, digest_until=until
    )
    return True
