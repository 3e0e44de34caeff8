"""Kombu's side of the broker: a virtual transport whose queues are rows (``session.py``).

Direct exchanges only: nothing is broadcast here, so the workers' remote control and gossip are
disabled (``settings.py``, ``deploy/README.md``).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from queue import Empty
from time import monotonic
from typing import Any

import psycopg
from django.conf import settings
from kombu.transport import TRANSPORT_ALIASES, virtual

from codegen_app.platform.broker.session import Session

SCHEME = "database"
DEFAULT_URL = f"{SCHEME}://localhost"
# Polling without a notification: it finds what a killed process had taken.
LOOK_EVERY_S = 5.0
# The polling interval while present messages may not be taken yet.
_FULL_LOOK_S = 0.1

log = logging.getLogger(__name__)


def register() -> None:
    """Register this transport for ``database://``."""
    TRANSPORT_ALIASES[SCHEME] = f"{__name__}:Transport"


def parameters() -> dict[str, Any]:
    """Return libpq's connection parameters for the application's database."""
    database = settings.DATABASES["default"]
    fields = {
        "dbname": database["NAME"],
        "user": database.get("USER"),
        "password": database.get("PASSWORD"),
        "host": database.get("HOST"),
        "port": database.get("PORT"),
    }
    options = {
        key: value
        for key, value in database.get("OPTIONS", {}).items()
        if key.startswith("ssl") or key in {"service", "passfile", "target_session_attrs"}
    }
    return {key: value for key, value in fields.items() if value} | options


class _QoS(virtual.QoS):  # type: ignore[misc]
    """Delivered and unacknowledged messages: rows that this session holds."""

    restore_at_shutdown = False  # closing the session frees them

    def ack(self, delivery_tag: str) -> None:
        self.channel.session.remove(int(delivery_tag))
        super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        if requeue:
            self.channel.session.give_back(int(delivery_tag))
        else:
            self.channel.session.remove(int(delivery_tag))
        self._quick_ack(delivery_tag)

    def restore_unacked(self) -> list[Any]:
        self._flush()
        while self._delivered:
            tag, _ = self._delivered.popitem()
            self.channel.session.give_back(int(tag))
        return []


class Channel(virtual.Channel):  # type: ignore[misc]
    """Queues over the connection's session."""

    QoS = _QoS
    do_restore = False

    @property
    def session(self) -> Session:
        """The session of the connection that this channel is part of."""
        session: Session = self.connection.session
        return session

    def basic_consume(
        self,
        queue: str,
        no_ack: bool,
        callback: Callable[[Any], Any],
        consumer_tag: str,
        **kwargs: Any,
    ) -> None:
        self.session.begin_taking()
        self.connection.poll_now()

        def acknowledged(message: Any) -> Any:
            message.ack()
            return callback(message)

        super().basic_consume(
            queue, False, acknowledged if no_ack else callback, consumer_tag, **kwargs
        )

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> Any:
        message = super().basic_get(queue, no_ack=False, **kwargs)
        if message is not None and no_ack:
            message.ack()
        return message

    def close(self) -> None:
        if not self.closed and self._qos is not None:
            with suppress(psycopg.Error):  # then the session's end does it
                self._qos.restore_unacked()
        super().close()

    def waits_for_acknowledgement(self) -> bool:
        """Return whether it may not take more messages before an acknowledgement."""
        return bool(self._consumers) and not self.qos.can_consume()

    def _put(self, queue: str, message: dict[str, Any], **_: Any) -> None:
        expiration_ms = message.get("properties", {}).get("expiration")
        ttl_s = None if expiration_ms is None else float(expiration_ms) / 1000
        self.session.put(queue, json.dumps(message), ttl_s)

    def _get(self, queue: str) -> dict[str, Any]:
        while (row := self.session.take(queue)) is not None:
            number, body = row
            try:
                message: dict[str, Any] = json.loads(body)
                message["properties"]["delivery_tag"] = str(number)
                self.Message(message, channel=self)
            except (ValueError, TypeError, LookupError, AttributeError):  # no kombu message
                log.error("message %d of queue %s cannot be read and is dropped", number, queue)
                self.session.remove(number)
            else:
                return message
        raise Empty

    def _size(self, queue: str) -> int:
        return self.session.size(queue)

    def _purge(self, queue: str) -> int:
        return self.session.purge(queue)


class Transport(virtual.Transport):  # type: ignore[misc]
    """One connection: a session with the database."""

    Channel = Channel
    driver_type = SCHEME
    driver_name = "psycopg"
    # Any failure of the database to serve: connect again.
    connection_errors = (*virtual.Transport.connection_errors, psycopg.Error)
    implements = virtual.Transport.implements.extend(
        asynchronous=False, exchange_type=frozenset(["direct"]), heartbeats=False
    )

    def __init__(self, client: Any, **kwargs: Any) -> None:
        super().__init__(client, **kwargs)
        self.session: Session | None = None
        self._may_wait = True
        self._next_look = 0.0

    def driver_version(self) -> str:
        """Return psycopg's version."""
        return psycopg.__version__

    def establish_connection(self) -> Any:
        """Connect; raises ``psycopg.Error``."""
        self.session = Session(parameters())
        self._may_wait, self._next_look = True, 0.0
        return super().establish_connection()

    def close_connection(self, connection: Any) -> None:
        """Close the channels and the session."""
        super().close_connection(connection)
        if self.session is not None:
            self.session.close()

    def verify_connection(self, _: Any) -> bool:
        """Return whether the session exists, as far as known."""
        return self.session is not None and not self.session.closed

    def poll_now(self) -> None:
        """Check for messages before waiting for notifications."""
        self._may_wait = True

    def drain_events(self, _: Any, timeout: float | None = None) -> None:
        """Deliver one message, waiting for it; ``TimeoutError`` if none came in time."""
        session = self.session
        if session is None or session.closed:
            raise psycopg.OperationalError("the connection for messages is closed")
        deadline = None if timeout is None else monotonic() + timeout
        while True:
            if self._is_due(session):
                try:
                    self.cycle.get(self._deliver, timeout=timeout)
                except Empty:
                    self._may_wait = any(
                        channel.waits_for_acknowledgement() for channel in self.channels
                    )
                else:
                    return
            now = monotonic()
            if deadline is not None and now >= deadline:
                raise TimeoutError
            pause = _FULL_LOOK_S if self._may_wait else self._next_look - now
            if deadline is not None:
                pause = min(pause, deadline - now)
            if session.wait(max(0.0, pause)):
                self._may_wait = True

    def _is_due(self, session: Session) -> bool:
        """Return whether a message may be there: one was announced, or the last check is old."""
        if monotonic() >= self._next_look:
            session.tidy()
            self._next_look = monotonic() + LOOK_EVERY_S
            return True
        return self._may_wait
