"""Claiming and sending deliveries, and recording the result.

A claim is one statement that counts an attempt and moves the next one behind a lease: only the
current attempt may record its result. If a sender dies before recording, another sends the same key
again after the lease.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils import timezone

from codegen_app.tracking.models import ChannelKind, Delivery, DeliveryState
from codegen_app.tracking.notifying import (
    digest,
    email,
    message,
    signing,
    slack,
    smtp,
    teams,
    webhook,
)
from codegen_app.tracking.notifying.attempt import Attempt, Outcome
from scheduler.text import one_line

LEASE = timedelta(seconds=60)  # longer than any attempt takes
GIVEN_UP_AFTER = timedelta(days=1)
_MAX_CONCURRENT = 8
_MAX_ATTEMPTS = 100
_CHAT_BODIES = {ChannelKind.SLACK: slack.body, ChannelKind.TEAMS: teams.body}
_FIRST_WAIT_S, _GROWTH, _MAX_WAIT_S = 10, 3, 3600
_MAX_RETRY_AFTER_S = 6 * 3600  # requested by a receiver

log = logging.getLogger(__name__)

# A time beyond any wait comes from a clock that was set back.
_CLAIM = """
UPDATE codegen_app_delivery SET attempts = attempts + 1, next_at = statement_timestamp() + %(lease)s
WHERE id = (
    SELECT delivery.id FROM codegen_app_delivery AS delivery
    JOIN codegen_app_channel AS channel ON channel.id = delivery.channel_id
    WHERE delivery.state = 'pending' AND channel.kind = ANY(%(kinds)s)
        AND (delivery.next_at <= statement_timestamp()
            OR delivery.next_at > statement_timestamp() + %(longest)s)
        AND delivery.channel_id <> ALL(%(busy)s)
    ORDER BY delivery.next_at, delivery.id
    LIMIT 1 FOR UPDATE OF delivery SKIP LOCKED
) RETURNING id
"""
# An unavailable receiver is tried once for all its deliveries.
_POSTPONE = """
UPDATE codegen_app_delivery SET next_at = %(at)s WHERE id IN (
    SELECT id FROM codegen_app_delivery
    WHERE channel_id = %(channel)s AND state = 'pending' AND next_at <= statement_timestamp()
    ORDER BY id FOR UPDATE SKIP LOCKED
)
"""


def send_due() -> int:
    """Send everything due, several at once but one per channel; return the number of attempts.

    Safe to call from any number of processes and threads at once.
    """
    attempts = 0
    running: dict[Future[Attempt], Delivery] = {}
    with ThreadPoolExecutor(_MAX_CONCURRENT, thread_name_prefix="sending") as pool:
        while True:
            while len(running) < _MAX_CONCURRENT:
                delivery = claim([delivery.channel_id for delivery in running.values()])
                if delivery is None:
                    break
                running[pool.submit(_prepare_send(delivery))] = delivery
                attempts += 1
            if not running:
                return attempts
            over, _ = wait(running, timeout=1, return_when=FIRST_COMPLETED)
            for future in over:
                if (error := future.exception()) is None:
                    attempt = future.result()
                else:
                    log.error("a delivery attempt failed", exc_info=error)
                    attempt = Attempt.permanent(f"internal error: {type(error).__name__}: {error}")
                record_attempt(running.pop(future), attempt)


def claim(busy: list[int]) -> Delivery | None:
    """Claim the first due delivery, of no ``busy`` channel; None if there is none."""
    # A process without the site's secret cannot sign.
    signed = ChannelKind.WEBHOOK
    kinds = [kind for kind in ChannelKind.values if kind != signed or settings.SECRET_KEY_GIVEN]
    parameters: dict[str, Any] = {
        "lease": LEASE,
        "longest": timedelta(seconds=_MAX_RETRY_AFTER_S) + LEASE,
        "kinds": kinds,
        "busy": busy,
    }
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, parameters)
        found = cursor.fetchone()
    if found is None:
        return None
    rows = Delivery.objects.select_related("channel")
    related = (
        f"event__alert__{name}"
        for name in (
            *("revision", "good_revision", "series", "finding"),
            "series_finding__revision",
        )
    )
    return rows.select_related(*related).get(pk=found[0])


@transaction.atomic
def record_attempt(delivery: Delivery, attempt: Attempt) -> None:
    """Record an attempt's result, unless another sender has claimed the delivery meanwhile."""
    claimed = Delivery.objects.filter(
        pk=delivery.pk, state=DeliveryState.PENDING, attempts=delivery.attempts
    )
    figures = {"status": attempt.status, "error": attempt.error}
    if attempt.outcome is Outcome.THROUGH:
        claimed.update(state=DeliveryState.DELIVERED, ended_at=Now(), **figures)
    elif attempt.outcome is Outcome.PERMANENT:
        claimed.update(state=DeliveryState.FAILED, ended_at=Now(), **figures)
    elif timezone.now() - delivery.created_at >= GIVEN_UP_AFTER:
        figures["error"] = one_line(
            f"given up after {delivery.attempts} attempts: {attempt.error}", 500
        )
        claimed.update(state=DeliveryState.FAILED, ended_at=Now(), **figures)
    else:
        at = timezone.now() + timedelta(seconds=backoff_s(delivery.attempts, attempt.retry_after_s))
        if claimed.update(next_at=at, **figures):
            with connection.cursor() as cursor:
                cursor.execute(_POSTPONE, {"at": at, "channel": delivery.channel_id})
    if attempt.outcome is not Outcome.THROUGH:
        log.warning("delivery %s to %s: %s", delivery.pk, delivery.channel.name, attempt.error)


def backoff_s(attempts: int, asked_s: float = 0.0) -> float:
    """Return the seconds until the next attempt: growing, at least what the receiver requested, and
    partly random, so that joint failures are not retried together."""
    grown = min(_FIRST_WAIT_S * _GROWTH ** min(attempts - 1, 20), _MAX_WAIT_S)
    jitter = grown * random.uniform(0.75, 1.0)  # noqa: S311 - it is no secret
    return float(max(jitter, min(asked_s, _MAX_RETRY_AFTER_S)))


def _prepare_send(delivery: Delivery) -> Callable[[], Attempt]:
    """Return the part that needs no database."""
    channel = delivery.channel
    if delivery.attempts > _MAX_ATTEMPTS:  # none of them ended
        return lambda: Attempt.permanent(f"given up after {_MAX_ATTEMPTS} attempts")
    if not channel.active:
        return lambda: Attempt.permanent("the channel is switched off")
    try:
        if _is_digest(delivery):
            return _prepare_digest(delivery)
        content = message.build_message(delivery)
        if channel.kind == ChannelKind.EMAIL:
            to = channel.address.split()
            return partial(smtp.send, email.subject(content), email.text(content), to, delivery.key)
        headers = {"Content-Type": "application/json", "User-Agent": "Kiln-Webhook/1"}
        if (build_body := _CHAT_BODIES.get(ChannelKind(channel.kind))) is not None:
            body = build_body(content)
        else:
            body = content.as_json()
            headers |= _signed_headers(content, body, signing.key(channel.key_salt))
        return partial(webhook.post, channel.address, body, headers, settings.WEBHOOK_NETWORKS)
    except signing.OtherSecretError as error:
        attempt = Attempt.temporary(str(error))  # left to a process with the site's secret
    except Exception as error:
        log.exception("building the message of delivery %s failed", delivery.pk)
        attempt = Attempt.permanent(f"internal error: {type(error).__name__}: {error}")
    return lambda: attempt


def _is_digest(delivery: Delivery) -> bool:
    """Return whether a delivery is a digest, also if its channel was changed since; a test is what
    the channel gets now."""
    if delivery.event is not None:
        return False
    return delivery.digest_until is not None or delivery.channel.weekday is not None


def _prepare_digest(delivery: Delivery) -> Callable[[], Attempt]:
    """Return the part of sending a weekly digest that needs no database; a test is about the last
    seven days."""
    channel = delivery.channel
    until = delivery.digest_until or timezone.now()
    since = delivery.digest_since or until - digest.PERIOD
    content = digest.build_digest(channel, since, until, is_test=delivery.digest_until is None)
    to = channel.address.split()
    return partial(smtp.send, content.subject, content.text, to, delivery.key)


def _signed_headers(content: message.Message, body: bytes, key: str) -> dict[str, str]:
    timestamp = str(int(content.sent_at.timestamp()))
    return {
        "Kiln-Delivery": content.delivery,
        "Kiln-Event": content.event,
        "Kiln-Timestamp": timestamp,
        "Kiln-Signature": f"v1={signing.signature(key, timestamp, body)}",
    }
