"""Error responses: faults of the machine are reported with a retry time.

These pages use neither the database nor the session, which may be what failed.
"""

from __future__ import annotations

import errno
import logging
import sys
from dataclasses import asdict, dataclass

from django.conf import settings
from django.core.exceptions import (
    DisallowedHost,
    RequestDataTooBig,
    TooManyFieldsSent,
    TooManyFilesSent,
)
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import get_template

from codegen_app.accounts.negotiation import wants_json
from codegen_app.platform.files import StorageAwayError
from scheduler.errors import MachineError

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
_NO_ROOM_STATES = {"53100"}  # PostgreSQL's disk_full
_BUSY_STATES = {"55P03", "57014"}  # lock_not_available, query_canceled (platform/config/serving.py)


@dataclass(frozen=True)
class Unavailable:
    """Why nothing can be shown now, and after how many seconds to retry (0: never)."""

    title: str
    text: str
    retry_after_s: int


_AWAY = Unavailable(
    "The database is not available",
    "It is restarting or has failed. Data accepted earlier is safe. Check whether your last "
    "request was saved, and send it again if not.",
    5,
)
_BUSY = Unavailable(
    "Kiln is busy",
    "A lock is held by another request, or the query exceeded its time limit. Your request changed "
    "nothing: try again.",
    5,
)
_FULL = Unavailable(
    "The disk is full",
    "The server's disk is full or read-only. Your request was not saved: send it again once the "
    "operator has freed space.",
    60,
)
_STORAGE = Unavailable(
    "The artifact storage is not available",
    "It is unreachable or rejects requests; see the server log. Stored data is safe. Your request "
    "was not saved: send it again once the storage is available.",
    10,
)
_BUG = Unavailable(
    "Internal error",
    "This is a bug in Kiln; the server log has the traceback.",
    0,
)


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's ``handler500``, called while the exception is handled."""
    reason = _reason(sys.exc_info()[1])
    status = 503 if reason.retry_after_s else 500
    response = error_response(request, status, reason)
    if reason.retry_after_s:
        response.headers["Retry-After"] = str(reason.retry_after_s)
    response.headers["Cache-Control"] = "no-store"
    return response


def error_response(request: HttpRequest, status: int, reason: Unavailable) -> HttpResponse:
    """Return a page, or JSON for a program."""
    if wants_json(request):
        return JsonResponse({"error": reason.title, **asdict(reason)}, status=status)
    context = {
        "request": request,  # its cookie names the theme
        "title": reason.title,
        "text": reason.text,
        "tone": "warn" if reason.retry_after_s else "bad",
        "again_s": reason.retry_after_s if request.method == "GET" else 0,
    }
    try:
        page, kind = get_template("web/unavailable.html").render(context), "text/html"
    except ValueError:  # static files were not collected: the page cannot link its styles
        page, kind = f"{reason.title}\n{reason.text}\n", "text/plain"
    return HttpResponse(page, status=status, content_type=f"{kind}; charset=utf-8")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's ``handler400``: requests that Django considers suspicious, and forms that are too
    large."""
    if isinstance(exception, RequestDataTooBig):
        return error_response(request, 413, request_too_large(settings.DATA_UPLOAD_MAX_MEMORY_SIZE))
    if isinstance(exception, DisallowedHost):
        text = "Unknown host in the request's Host header: the operator sets the allowed hosts."
    elif isinstance(exception, TooManyFieldsSent | TooManyFilesSent):
        text = "The form has too many fields or files."
    else:
        text = "The address, headers or form of the request are malformed."
    return error_response(request, 400, Unavailable("Request rejected", text, 0))


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001 - Django's
    """Django's ``CSRF_FAILURE_VIEW``."""
    text = (
        "The form was sent from another site, or from a page opened before you logged in. Nothing"
        " was changed: reload the page and submit the form again."
    )
    return error_response(request, 403, Unavailable("Request rejected", text, 0))


def request_too_large(limit: int) -> Unavailable:
    """The error for a body larger than its address accepts."""
    return Unavailable("Request too large", f"This address accepts at most {limit} bytes.", 0)


class OneLineFilter(logging.Filter):
    """A log filter: an unavailable database or a full disk takes one line per request."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep every record; shorten these."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and _reason(error) is not _BUG:
            record.exc_info, record.exc_text = None, None
            lines = str(error).strip().splitlines() or [type(error).__name__]
            record.msg, record.args = f"{record.getMessage()}: {lines[0]}", ()
        return True


def _reason(error: BaseException | None) -> Unavailable:
    if isinstance(error, OSError):
        return _FULL if error.errno in _NO_ROOM else _BUG
    if isinstance(error, InterfaceError | OperationalError):
        state = getattr(error.__cause__, "sqlstate", "")
        if state in _BUSY_STATES:
            return _BUSY
        return _FULL if state in _NO_ROOM_STATES else _AWAY
    if isinstance(error, StorageAwayError):
        return _STORAGE
    if isinstance(error, MachineError):
        return _FULL
    return _BUG
