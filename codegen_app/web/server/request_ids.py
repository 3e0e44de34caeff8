"""Each request has an id: in all its log lines, and in its response."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from codegen_app.platform.config import context

HEADER = "X-Request-ID"
_WELL_FORMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{7,127}")


class RequestIdMiddleware:
    """Uses the id of a proxy or a client if it is valid: 8 to 128 letters, digits, dots, hyphens
    and underscores. Otherwise it creates one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        sent = request.headers.get(HEADER, "")
        request_id = sent if _WELL_FORMED.fullmatch(sent) else uuid.uuid4().hex
        request.META[context.REQUEST_ID] = request_id  # the server's own log reads it here
        with context.request_context(request):
            response = self.get_response(request)
        response.headers[HEADER] = request_id
        return response
