"""Deliveries that are due: written with the event that they tell of, sent afterwards."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

from codegen_app.models import AlertEvent, EventKind
from codegen_app.services import queue

#: What Kiln found is sent; what people do on the site is seen there, and in the feed.
SENT_EVENTS = (EventKind.RAISED, EventKind.GREW, EventKind.RECOVERED)

# Whether a channel asks for words of a series of an alert: of its changes, or without new points.
_CHANNEL_MATCHES = """
    (channel.search = '' OR EXISTS (
        SELECT 1 FROM codegen_app_series AS series
        WHERE series.id IN (
            SELECT series_id FROM codegen_app_change
            WHERE alert_id = {alert}.id AND withdrawn_at IS NULL
            UNION SELECT {alert}.series_id
        )
        AND NOT EXISTS (
            SELECT 1 FROM regexp_split_to_table(lower(channel.search), '\\s+') AS word
            WHERE position(word IN lower(series.problem || ' ' || series.device_name)) = 0
        )
    ))
"""

# What is sent says how the alert is at that time: a delivery of it that nobody has tried yet tells
# of this event, too. Its lock makes a sender pass it by until this transaction is over; one that
# a sender took first has an attempt by now, and this event gets a delivery of its own.
# An alert that repeats others is told of to those alone who ask for none of them, and once: not
# where another one that repeats the same was.
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
WHERE channel.active AND alert.kind = ANY(channel.alerts)
    AND channel.id NOT IN (SELECT channel_id FROM untold)
    AND {_CHANNEL_MATCHES.format(alert="alert")}
    AND NOT EXISTS (
        SELECT 1 FROM codegen_app_alert AS repeated
        WHERE repeated.id = ANY(%(repeats)s) AND repeated.kind = ANY(channel.alerts)
            AND {_CHANNEL_MATCHES.format(alert="repeated")}
    )
    AND NOT EXISTS (
        SELECT 1 FROM codegen_app_alert AS beside
        JOIN codegen_app_alertevent AS event ON event.alert_id = beside.id
        JOIN codegen_app_delivery AS told
            ON told.channel_id = channel.id AND told.event_id = event.id
        WHERE %(first)s IN (beside.duplicate_of_id, beside.downstream_of_id)
            AND beside.id < alert.id
    )
ON CONFLICT DO NOTHING
"""  # noqa: S608 - our own text


def enqueue(event: AlertEvent, repeats: Sequence[int] = ()) -> int:
    """Write a delivery for each active channel that is told of such alerts, and wake who sends them
    once the transaction is committed; how many were written.

    One statement, part of the transaction of the event; again it writes none. The alert's changes
    have to be written before, since a channel may ask for words of their series. ``repeats`` are
    the alerts that it only repeats, the nearest first: who asks for one of these is not told again.
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
