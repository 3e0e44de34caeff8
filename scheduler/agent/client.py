"""The HTTP client of the server: HTTPS only, one address, retries with growing pauses."""

from __future__ import annotations

import ipaddress
import json
import logging
import random
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from scheduler.agent.protocol import SESSION_HEADER, URL_PREFIX
from scheduler.errors import UserError
from scheduler.text import one_line

MAX_PAUSE_S = 30.0
_FIRST_PAUSE_S = 0.5
_MAX_ANSWER_BYTES = 64 << 20
_CHUNK_BYTES = 1 << 20
_TEMPORARY_STATUSES = (408, 425, 429, 500, 502, 503, 504)

log = logging.getLogger(__name__)


class TokenError(UserError):
    """The token is invalid, expired, or not permitted for this request."""


class LeaseOverError(Exception):
    """The lease or the session has ended: its work belongs to another worker."""


class StoppedError(Exception):
    """This worker must end, and the server could not be reached first."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuse redirects, so that the token is sent only to the configured address."""

    def redirect_request(self, *_: object) -> None:
        """Return None: the answer is taken as it is."""


class ServerClient:
    """A connection to one server with one token. Every request raises ``TokenError``,
    ``LeaseOverError``, ``StoppedError`` if ``stop`` is set before the server was reached,
    ``UserError`` for a request that the server rejects."""

    def __init__(self, url: str, token: str, stop: threading.Event, timeout_s: float = 60) -> None:
        self._root = f"{checked_url(url)}/{URL_PREFIX}"
        self._token = token
        self._stop = stop
        self._timeout_s = timeout_s
        self._opener = urllib.request.build_opener(_NoRedirects)
        self.session = ""

    def post(self, path: str, body: Any, max_tries: int | None = None) -> dict[str, Any]:
        """Send JSON and return the JSON answer."""
        data = json.dumps(body, allow_nan=False).encode()

        def answer() -> dict[str, Any]:
            with self._open(path, data) as response:
                text = response.read(_MAX_ANSWER_BYTES + 1)
            if len(text) > _MAX_ANSWER_BYTES:
                raise UserError(f"{self._root}/{path}: the answer is too large")
            message = json.loads(text)
            if not isinstance(message, dict):
                raise ValueError("not an answer of a Kiln server")
            return message

        message: dict[str, Any] = self._retry(path, answer, max_tries)
        return message

    def fetch(self, path: str, size: int, max_tries: int | None = None) -> bytes:
        """Return a file of ``size`` bytes."""

        def answer() -> bytes:
            with self._open(path, None) as response:
                data: bytes = response.read(size + 1)
            if len(data) != size:
                raise ValueError(f"received {len(data)} of {size} bytes")
            return data

        data: bytes = self._retry(path, answer, max_tries)
        return data

    def _open(self, path: str, data: bytes | None) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "User-Agent": "kiln-worker/1"}
        if self.session:
            headers[SESSION_HEADER] = self.session
        if data is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(f"{self._root}/{path}", data, headers)  # noqa: S310
        return self._opener.open(request, timeout=self._timeout_s)

    def _retry(self, path: str, send_request: Callable[[], Any], max_tries: int | None) -> Any:
        attempt = 0
        while True:
            attempt += 1
            pause_s = min(MAX_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(attempt - 1, 16))
            pause_s *= random.uniform(0.5, 1.0)  # noqa: S311 - so that retries are spread out
            try:
                return send_request()
            except urllib.error.HTTPError as error:
                server_message = _error_line(error)
                if error.code in (401, 403):
                    raise TokenError(server_message) from None
                if error.code == 409:
                    raise LeaseOverError(server_message) from None
                if error.code not in _TEMPORARY_STATUSES:
                    raise UserError(f"the server answered {error.code}: {server_message}") from None
                pause_s = _retry_after_s(error.headers.get("Retry-After"), pause_s)
                reason = f"{error.code}: {server_message}"
            except (OSError, HTTPException, ValueError) as error:  # URLError, timeouts are OSErrors
                reason = str(getattr(error, "reason", error)) or type(error).__name__
            if attempt == max_tries:
                raise StoppedError(reason)
            log.warning(
                "%s: %s; retrying in %.1f s", path.partition("?")[0], one_line(reason), pause_s
            )
            if self._stop.wait(pause_s) and max_tries is None:
                raise StoppedError(reason)


def checked_url(url: str) -> str:
    """Return the address without a trailing slash. Raises ``UserError`` for an address that would
    send the token unencrypted over a network."""
    text = url.strip().rstrip("/")
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(f"{url}: not a server address; it must begin with https://")
    if parts.username or parts.query or parts.fragment:
        raise UserError(f"{url}: give the server address only, such as https://kiln.example")
    is_loopback = parts.hostname == "localhost"
    with suppress(ValueError):
        is_loopback = is_loopback or ipaddress.ip_address(parts.hostname).is_loopback
    if parts.scheme == "http" and not is_loopback:
        raise UserError(f"{url}: http:// would send the token unencrypted; use https://")
    return text


def _error_line(error: urllib.error.HTTPError) -> str:
    """Return the error's message, in one line."""
    try:
        return one_line(str(json.loads(error.read(_CHUNK_BYTES))["error"]))
    except (OSError, ValueError, KeyError, TypeError, HTTPException):
        return one_line(str(error.reason))


def _retry_after_s(header: str | None, default_s: float) -> float:
    """Return the seconds that ``Retry-After`` asks to wait."""
    try:
        seconds = float(header or "")
    except ValueError:
        return default_s
    return min(max(seconds, 0.0), MAX_PAUSE_S) if seconds == seconds else default_s  # noqa: PLR0124
