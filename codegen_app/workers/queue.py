"""Messages to the workers. A message only says "look now": the work is in the rows.

A lost message delays the work until the next periodic round; an extra message finds nothing to do.
A queue never holds more messages than there are workers to wake.
"""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError

from codegen_app.platform.config.celery import app

# The periodic round repeats it, so a queue that no worker serves does not fill up.
_STALE_AFTER_S = 30
_SEND_RETRIES = 1  # the first use of a connection fails after the broker restarts

log = logging.getLogger(__name__)


class Kind(StrEnum):
    """Kinds of work, each with its own task."""

    PREPARE = "prepare"
    COMPILE = "compile"
    MEASURE = "measure"
    BISECT = "bisect"
    DETECT = "detect"
    NOTIFY = "notify"


def queue_name(kind: Kind, target: str = "") -> str:
    """Return the Celery queue: measurements go to the machines that have the architecture."""
    return f"measure.{target}" if kind is Kind.MEASURE else str(kind)


def notify(kind: Kind, count: int = 1, target: str = "") -> None:
    """Wake up to ``count`` workers once the current transaction is committed."""
    queue = queue_name(kind, target)
    messages = max(1, min(count, settings.WAKE_AT_MOST))
    arguments = {"target": target} if kind is Kind.MEASURE else {}
    transaction.on_commit(lambda: _send(kind, queue, arguments, messages))


def _send(kind: Kind, queue: str, arguments: dict[str, str], messages: int) -> None:
    """Fill the queue up to this many messages. An unavailable broker is no error for the caller:
    the rows are there, and the next round announces them."""

    def fill(producer: Any) -> None:
        present = app.amqp.queues[queue].bind(producer.channel).queue_declare().message_count
        for _ in range(messages - present):
            app.send_task(
                f"codegen_app.tasks.{kind}",
                kwargs=arguments,
                queue=queue,
                producer=producer,
                retry=False,
                expiration=_STALE_AFTER_S,
            )

    try:
        with app.producer_or_acquire() as producer:
            ensured = producer.connection.ensure(
                producer, fill, max_retries=_SEND_RETRIES, interval_start=0
            )
            ensured(producer)
    except OperationalError as error:
        log.warning("queue %s: workers are told by the next round: %s", queue, error)
