"""Deliveries that are due: written with the event that they tell of, sent afterwards."""

from __future__ import annotations

from django.db import connection

from codegen_app.models import AlertEvent, EventKind
from codegen_app.services import queue

#: What Kiln found is sent; what people do on the site is seen there, and in the feed.
SENT = (EventKind.RAISED, EventKind.GREW, EventKind.RECOVERED)

# What is sent says how the alert is at that time: a delivery of it that nobody has tried yet tells
# of this event, too. Its lock makes a sender pass it by until this transaction is over; one that
# a sender took first has an attempt by now, and this event gets a delivery of its own.
_ENQUEUE = """
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
FROM codegen_app_channel AS channel
WHERE channel.active AND %(kind)s = ANY(channel.alerts)
    AND channel.id NOT IN (SELECT channel_id FROM untold)
    AND (channel.search = '' OR EXISTS (
        SELECT 1 FROM codegen_app_series AS series
        WHERE series.id IN (
            SELECT series_id FROM codegen_app_change
            WHERE alert_id = %(alert)s AND withdrawn_at IS NULL
            UNION SELECT %(series)s
        )
        AND NOT EXISTS (
            SELECT 1 FROM regexp_split_to_table(lower(channel.search), '\\s+') AS word
            WHERE position(word IN lower(series.problem || ' ' || series.device_name)) = 0
        )
    ))
ON CONFLICT DO NOTHING
"""


def enqueue(event: AlertEvent) -> int:
    """Write a delivery for each active channel that is told of such alerts, and wake who sends them
    once the transaction is committed; how many were written.

    One statement, part of the transaction of the event; again it writes none. The alert's changes
    have to be written before, since a channel may ask for words of their series.
    """
    if event.kind not in SENT:
        return 0
    alert = event.alert
    parameters: dict[str, int | str | None] = {
        "event": event.pk,
        "alert": alert.pk,
        "kind": alert.kind,
        "series": alert.series_id,
    }
    with connection.cursor() as cursor:
        cursor.execute(_ENQUEUE, parameters)
        count = int(cursor.rowcount)
    if count:
        queue.notify(queue.Kind.NOTIFY, count)
    return count
