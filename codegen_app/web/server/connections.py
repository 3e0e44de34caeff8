"""Connections: their time limits, the size of requests, and which connection is closed first."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import Any

from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.server import BaseWSGIServer, TcpWSGIServer, UnixWSGIServer
from waitress.utilities import BadRequest, RequestEntityTooLarge

from codegen_app.web.server import bodies, uploads
from codegen_app.web.server.errors import ErrorTask

HEADERS_S = 10.0  # for a request line and headers to arrive
IDLE_S = 15.0  # without a request, or without the client reading a response
BODY_S = 20.0  # for a body, and a second more for each of
BODY_BYTES_PER_S = 32 * 1024
LINGER_S = 5.0  # for a client to read why its body is refused, while it is sending it
_ACCEPTS_PER_TURN = 8  # connections accepted per turn of the loop


class Parser(HTTPRequestParser):  # type: ignore[misc]
    """A request as it arrives. It is refused by its headers if its URL does not accept it, by the
    first bytes of a file that cannot be imported, and a body of unknown length once it exceeds the
    limit."""

    limit = bodies.DEFAULT_LIMIT
    is_checked = False

    def __init__(self, adj: Any) -> None:
        super().__init__(adj)
        self.began = time.monotonic()

    def parse_header(self, header_plus: bytes) -> None:
        """Parse the header as waitress does, and set the limit of the body."""
        super().parse_header(header_plus)
        if self.chunked or self.content_length > bodies.DEFAULT_LIMIT:
            headers = (self.headers.get(name, "") for name in ("COOKIE", "AUTHORIZATION"))
            self.limit = bodies.max_body_bytes(self.path, self.query, *headers)
        if self.content_length > self.limit:
            self._reject(self._too_large())

    def received(self, data: bytes) -> int:
        """Return how many of these bytes belong to this request."""
        size: int = super().received(data)
        if self.error or self.completed:
            return size
        if self.body_bytes_received > self.limit:
            self._reject(self._too_large())
        elif not self.is_checked and self.body_bytes_received >= uploads.CHECKED_BYTES:
            self.is_checked = True
            beginning = self.body_rcv.getbuf().get(uploads.CHECKED_BYTES)
            error = uploads.check_upload(self.path, beginning)
            if error is not None:
                self._reject(error)
        return size

    def is_late(self, now: float) -> bool:
        """Return whether the rest of the request has taken too long."""
        if not self.headers_finished:
            return now - self.began > HEADERS_S
        return bool(now - self.began > BODY_S + self.body_bytes_received / BODY_BYTES_PER_S)

    def _too_large(self) -> RequestEntityTooLarge:
        return RequestEntityTooLarge(f"at most {self.limit} bytes are taken here")

    def _reject(self, error: BadRequest) -> None:
        self.close()
        self.error = error
        self.completed = True


class Channel(HTTPChannel):  # type: ignore[misc]
    """One connection."""

    parser_class = Parser
    error_task_class = ErrorTask
    is_closed = False
    close_when_flushed: bool

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._answered = time.time()
        self._is_rejected = False
        self._lingers_until = 0.0  # 0 for a connection that does not linger

    def handle_close(self) -> None:
        """Close the connection. Its descriptor may be another connection's before this turn of the
        loop ends."""
        self.is_closed = True
        super().handle_close()

    def readable(self) -> bool:
        """Return whether to read from it."""
        if self._lingers_until and not self.will_close:
            return not self.is_closed
        return not self.is_closed and bool(super().readable())

    def writable(self) -> bool:
        """Return whether to write to it, or close it."""
        return not self.is_closed and bool(super().writable())

    def received(self, data: bytes) -> bool:
        """Process received bytes; the rest of a refused request is discarded."""
        if self._lingers_until:
            return False
        accepted = bool(super().received(data))
        self._is_rejected |= any(request.error for request in self.requests)
        return accepted

    def handle_write(self) -> None:
        """Send, or close. After a refusal only our side is closed at first: otherwise a client that
        is still sending its body would be reset, and never see the response."""
        over = self.close_when_flushed and not self.total_outbufs_len and not self.requests
        if over and self._is_rejected and not self._lingers_until:
            self.close_when_flushed = False
            self._lingers_until = time.monotonic() + LINGER_S
            with suppress(OSError):  # it is closed already
                self.socket.shutdown(socket.SHUT_WR)
            return
        super().handle_write()

    def handle_read(self) -> None:
        """Read; a client that has read its refusal and closes is released."""
        super().handle_read()
        if self._lingers_until and not self.connected:
            self.will_close = True

    def is_late(self, now: float) -> bool:
        """Return whether to close it: no request is being answered, or the response is not read."""
        if self._lingers_until:
            return now > self._lingers_until
        if self.requests:
            return False  # a thread handles it, or will
        if self.request is not None:
            return bool(self.request.is_late(now))
        return bool(time.time() - self.last_activity > IDLE_S)

    def waiting_since(self) -> float | None:
        """Return since when only the client has had to act, by sending or reading; None while the
        server has to."""
        if self.requests:
            return None
        if self.total_outbufs_len:
            return float(self.last_activity)
        return self._answered

    def service(self) -> None:
        """Answer a request, in a thread."""
        super().service()
        self._answered = time.time()


class _Limited(BaseWSGIServer):  # type: ignore[misc]
    """Accepts connections, and closes those that take too long."""

    channel_class = Channel

    def maintenance(self, now: float) -> None:  # noqa: ARG002 - waitress's clock is the wall's
        """Close late connections; called each second."""
        elapsed = time.monotonic()
        for channel in list(self.active_channels.values()):
            if channel.is_late(elapsed):
                channel.will_close = True

    def readable(self) -> bool:
        """Return whether to accept. At the limit the connection that has waited longest for its
        client is closed: idle connections keep nobody out."""
        excess = len(self._map) + _ACCEPTS_PER_TURN - self.adj.connection_limit
        if self.accepting and excess > 0:
            waiting = sorted(
                (since, number)
                for number, channel in self.active_channels.items()
                if (since := channel.waiting_since()) is not None
            )
            for _, number in waiting[:excess]:
                self.active_channels[number].handle_close()
        return bool(super().readable())

    def handle_accept(self) -> None:
        """Accept waiting connections, some at a time: a turn of the loop takes longer the more
        there are."""
        for _ in range(_ACCEPTS_PER_TURN):
            super().handle_accept()

    def stop_accepting(self) -> None:
        """Leave new connections to other processes; existing ones continue."""
        self.accepting = False
        self.del_channel(self._map)
        self.socket.close()

    def is_busy(self) -> bool:
        """Return whether a request is being answered, or a response sent."""
        return any(
            channel.requests or channel.total_outbufs_len
            for channel in self.active_channels.values()
        )


class Server(_Limited, TcpWSGIServer):  # type: ignore[misc]
    """On an address and port."""


class UnixServer(_Limited, UnixWSGIServer):  # type: ignore[misc]
    """On a socket of the file system."""
