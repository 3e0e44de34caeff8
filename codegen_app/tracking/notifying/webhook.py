"""One POST to a webhook: to a checked address, without redirects, with limits of time and size."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from queue import Empty, SimpleQueue

from codegen_app.tracking.notifying import addresses
from codegen_app.tracking.notifying.addresses import Address, IpAddress, IpNetwork
from codegen_app.tracking.notifying.attempt import Attempt
from scheduler.errors import UserError

TIMEOUT_S = 10.0
_CONNECT_S = 5.0  # to each of the host's addresses
_READ_BYTES = 64 * 1024  # of the response, which is not used
_RETRYABLE = frozenset({408, 425, 429})


class _DeadlineError(Exception):
    """The time is over."""


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    allowed: Sequence[IpNetwork],
    within_s: float = TIMEOUT_S,
) -> Attempt:
    """Send the body once. Only the status of the response counts, and its body is never shown:
    otherwise a user who may add a channel could read other servers."""
    end = time.monotonic() + within_s
    try:
        to = addresses.parse(url)
        found = _resolve(to, allowed, end)
        connection, guard = _connect(to, found, end)
        with guard, _enforce_deadline(guard, end):
            return _exchange(connection, to, body, headers, end)
    except (UserError, addresses.NotAllowedError) as error:
        return Attempt.permanent(str(error))
    except (_DeadlineError, OSError, http.client.HTTPException) as error:
        if isinstance(error, _DeadlineError | TimeoutError) or time.monotonic() >= end:
            return Attempt.temporary(f"no response within {within_s:g} s")
        return Attempt.temporary(_failure(to, error))


def _failure(to: Address, error: Exception) -> str:
    if isinstance(error, socket.gaierror):
        return f"cannot resolve {to.host}: {error.strerror}"
    if isinstance(error, ssl.SSLError):
        why = getattr(error, "verify_message", "") or error.reason or str(error)
        return f"HTTPS with {to.host} failed: {why}"
    if isinstance(error, http.client.HTTPException):
        return f"{to.host}:{to.port} did not answer with HTTP: {type(error).__name__}"
    return f"no connection to {to.host}:{to.port}: {getattr(error, 'strerror', '') or error}"


def _resolve(to: Address, allowed: Sequence[IpNetwork], end: float) -> list[IpAddress]:
    """Return the addresses. The system's resolver has no timeout, so it runs in a thread."""
    answers: SimpleQueue[list[IpAddress] | Exception] = SimpleQueue()

    def ask() -> None:
        try:
            answers.put(addresses.resolve(to.host, to.port, allowed))
        except Exception as error:  # noqa: BLE001 - raised in the thread that waits for it
            answers.put(error)

    threading.Thread(target=ask, name="resolver", daemon=True).start()
    try:
        answer = answers.get(timeout=_remaining_s(end))
    except Empty:
        raise _DeadlineError from None
    if isinstance(answer, UnicodeError):
        raise UserError(f"{to.host!r} is not a valid host name")
    if isinstance(answer, Exception):
        raise answer
    return answer


def _connect(
    to: Address, found: Sequence[IpAddress], end: float
) -> tuple[http.client.HTTPConnection, socket.socket]:
    """Return a connection to the first address that accepts, and a second handle of its socket,
    which can end it from outside."""
    failure: OSError = OSError("the host has no address")
    for address in found:
        try:
            timeout = min(_CONNECT_S, _remaining_s(end))
            plain = socket.create_connection((str(address), to.port), timeout)
            break
        except OSError as error:
            failure = error
    else:
        raise failure
    guard = plain.dup()
    try:
        plain.settimeout(_remaining_s(end))
        if to.scheme == "http":
            connection = http.client.HTTPConnection(to.host, to.port)
            connection.sock = plain
        else:
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(to.host, to.port, context=context)
            with _enforce_deadline(guard, end):
                connection.sock = context.wrap_socket(plain, server_hostname=to.host)
    except BaseException:
        plain.close()
        guard.close()
        raise
    return connection, guard


@contextmanager
def _enforce_deadline(guard: socket.socket, end: float) -> Iterator[None]:
    """End the connection when the time is over: a slow trickle stays within the limit of every
    single read."""

    def shut() -> None:
        with suppress(OSError):  # it is over already
            guard.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(_remaining_s(end), shut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _exchange(
    connection: http.client.HTTPConnection,
    to: Address,
    body: bytes,
    headers: Mapping[str, str],
    end: float,
) -> Attempt:
    try:
        connection.request("POST", to.target, body, {**headers, "Connection": "close"})
        answer = connection.getresponse()
        _remaining_s(end)  # truncated headers look complete
        status, retry_after = answer.status, answer.getheader("Retry-After", "")
        with suppress(OSError, http.client.HTTPException):  # only the status counts
            answer.read(_READ_BYTES)
    finally:
        connection.close()
    if 200 <= status < 300:
        return Attempt.delivered(status)
    if 300 <= status < 400:
        return Attempt.permanent(f"HTTP {status}: redirects are not followed", status)
    if status in _RETRYABLE or status >= 500:
        return Attempt.temporary(f"HTTP {status}", status, _retry_after_s(retry_after))
    return Attempt.permanent(f"HTTP {status}", status)


def _retry_after_s(text: str) -> float:
    """Return seconds, also from a date; 0 if the text is invalid."""
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _remaining_s(end: float) -> float:
    remaining = end - time.monotonic()
    if remaining <= 0:
        raise _DeadlineError
    return remaining
