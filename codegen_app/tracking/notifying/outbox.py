"""Deliveries: written with their event, sent afterwards, and deleted if a retention policy says so.

Pending deliveries and events are never deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import connection
from django.db.models import QuerySet

from codegen_app.tracking.models import AlertEvent, Delivery, DeliveryState, EventKind
from codegen_app.workers import queue

#: Kiln's own events are sent; people's actions are shown on the site and in the feed.
SENT_EVENTS = (EventKind.RAISED, EventKind.GREW, EventKind.RECOVERED)

# Whether a channel's search words match a series of an alert: of its changes, or without new
# points. Changes of a machine are withdrawn with its points.
_CHANNEL_MATCHES = """
    (channel.search = '' OR EXISTS (
        SELECT 1 FROM codegen_app_series AS series
        WHERE series.id IN (
            SELECT series_id FROM codegen_app_change
            WHERE alert_id = {alert}.id
                AND (withdrawn_at IS NULL OR {alert}.kind = 'machine')
            UNION SELECT {alert}.series_id
        )
        AND NOT EXISTS (
            SELECT 1 FROM regexp_split_to_table(lower(channel.search), '\\s+') AS word
            WHERE position(word IN lower(series.problem || ' ' || series.device_name)) = 0
        )
    ))
"""

# A notification describes the alert at the time of sending: a delivery without an attempt covers
# this event, too. Its lock makes a sender skip it until this transaction ends; one that a sender
# took first has an attempt by now, and this event gets its own delivery. An alert that repeats
# others is only sent to channels that match none of these, and once: not if another repetition of
# the same was sent.
_ENQUEUE = f"""
WITH untold AS (
    SELECT delivery.channel_id FROM codegen_app_delivery AS delivery
    JOIN codegen_app_alertevent AS event ON event.id = delivery.event_id
    WHERE event.alert_id = %(alert)s AND delivery.state = 'pending' AND delivery.attempts = 0
    ORDER BY delivery.id FOR UPDATE OF delivery
)
INSERT INTO codegen_app_delivery
    (channel_id, event_id, key, state, attempts, next_at, error, created_at)
SELECT channel.id, %(event)s, gen_random_uuid(), 'pending', 0, statement_timestamp(), '',
    statement_timestamp()
FROM codegen_app_channel AS channel JOIN codegen_app_alert AS alert ON alert.id = %(alert)s
WHERE channel.active AND channel.weekday IS NULL AND alert.kind = ANY(channel.alerts)
    AND channel.id NOT IN (SELECT channel_id FROM untold)
    AND {_CHANNEL_MATCHES.format(alert="alert")}
    AND NOT EXISTS (
        SELECT 1 FROM codegen_app_alert AS repeated
        WHERE repeated.id = ANY(%(repeats)s) AND repeated.kind = ANY(channel.alerts)
            AND {_CHANNEL_MATCHES.format(alert="repeated")}
    )
    AND NOT EXISTS (
        SELECT 1 FROM codegen_app_alert AS linked
        JOIN codegen_app_alertevent AS event ON event.alert_id = linked.id
        JOIN codegen_app_delivery AS told
            ON told.channel_id = channel.id AND told.event_id = event.id
        WHERE %(first)s IN (linked.duplicate_of_id, linked.downstream_of_id)
            AND linked.id < alert.id
    )
ON CONFLICT DO NOTHING
"""  # noqa: S608 - our own text


def enqueue(event: AlertEvent, repeats: Sequence[int] = ()) -> int:
    """Write a delivery for each active channel that matches, and wake the senders after the commit;
    return how many were written.

    One statement in the event's transaction; repeating it writes none. The alert's changes must be
    written before, since a channel may match words of their series. ``repeats`` are the alerts that
    it repeats, the nearest first: channels that match one of these are not notified again.
    """
    if event.kind not in SENT_EVENTS:
        return 0
    parameters: dict[str, int | list[int] | None] = {
        "event": event.pk,
        "alert": event.alert_id,
        "repeats": list(repeats),
        "first": repeats[-1] if repeats else None,
    }
    with connection.cursor() as cursor:
        cursor.execute(_ENQUEUE, parameters)
        count = int(cursor.rowcount)
    if count:
        queue.notify(queue.Kind.NOTIFY, count)
    return count


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
