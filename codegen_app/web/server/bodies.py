"""The maximum body of a URL, decided by a request's headers alone.

Large bodies are only accepted for files, from people who may import them and from programs with a
token. The web server reads a body before the application sees the request, so the form for files
has a ticket in its URL: signed, for this session and this URL, for a day. A token is signed by
itself.
"""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlencode

from django.conf import settings
from django.core import signing
from django.core.files.uploadedfile import TemporaryUploadedFile
from django.core.files.uploadhandler import (
    FileUploadHandler,
    StopUpload,
    TemporaryFileUploadHandler,
)
from django.http import HttpRequest
from django.urls import reverse
from django.utils.crypto import constant_time_compare, salted_hmac

from codegen_app.accounts import token_text

DEFAULT_LIMIT = 1024 * 1024
_FORM_OVERHEAD = 64 * 1024  # a form's other fields and its separators
_DAY_S = 24 * 60 * 60
_SALT = "codegen_app.web.server.bodies"
_RESULTS_VIEW = "api_results"


def upload_limits() -> dict[str, int]:
    """Return the URLs that take files, by the names of their views, with their maximum bytes."""
    return {
        "import": settings.GRAPH_FILE_MAX_BYTES + _FORM_OVERHEAD,
        "look": settings.FOREIGN_KERNEL_MAX_BYTES + 2 * DEFAULT_LIMIT + _FORM_OVERHEAD,
        "import_selections": settings.SELECTIONS_FILE_MAX_BYTES + _FORM_OVERHEAD,
        _RESULTS_VIEW: settings.API_BODY_MAX_BYTES,
    }


def ticket_url(request: HttpRequest, name: str) -> str:
    """Return the URL of a view that takes files for this session's user; without a ticket if there
    is no session."""
    if request.session.session_key is None:
        return reverse(name)
    signed = signing.TimestampSigner(salt=_SALT).sign(
        _ticket_binding(request.session.session_key, name)
    )
    return f"{reverse(name)}?{urlencode({'ticket': signed.partition(':')[2]})}"


def max_body_bytes(path: str, query: str, cookies: str, authorization: str = "") -> int:
    """Return the longest accepted body at that URL with these headers."""
    for name, limit in upload_limits().items():
        if path != reverse(name):
            continue
        if name == _RESULTS_VIEW:
            valid = token_text.is_genuine(token_text.bearer_token(authorization))
        else:
            valid = _is_valid(name, query, cookies)
        if valid:
            return limit
    return DEFAULT_LIMIT


def _is_valid(name: str, query: str, cookies: str) -> bool:
    """Return whether the query has a ticket of this session for that view."""
    try:
        session = SimpleCookie(cookies).get(settings.SESSION_COOKIE_NAME)
        ticket = parse_qs(query, max_num_fields=10).get("ticket", [""])[0]
        if session is None:
            return False
        bound = _ticket_binding(session.value, name)
        signed = signing.TimestampSigner(salt=_SALT).unsign(f"{bound}:{ticket}", max_age=_DAY_S)
        return constant_time_compare(signed, bound)
    except (CookieError, ValueError, signing.BadSignature):
        return False


def _ticket_binding(session_key: str | None, name: str) -> str:
    return salted_hmac(_SALT, f"{name} {session_key}").hexdigest()


class PlainTemporaryFileHandler(TemporaryFileUploadHandler):
    """Django's handler, without the end of the sender's file name in the temporary file's name: one
    of more than 255 characters is invalid."""

    def new_file(self, field_name: str, file_name: str, *args: Any, **kwargs: Any) -> None:
        """Start a file."""
        FileUploadHandler.new_file(self, field_name, file_name, *args, **kwargs)
        self.file = TemporaryUploadedFile("upload", self.content_type, 0, self.charset)
        self.file.name = file_name
        self._received = 0

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Write a chunk, or stop if the file exceeds every limit."""
        self._received += len(raw_data)
        if self._received > max(upload_limits().values()):
            raise StopUpload(connection_reset=True)
        super().receive_data_chunk(raw_data, start)
