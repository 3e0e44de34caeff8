"""Errors in the client's format: JSON under ``/api/``, wherever the response comes from; a page, or
JSON, if the web server refuses a request that the application never sees."""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus
from http.client import responses
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from waitress.task import ErrorTask as PlainErrorTask

from codegen_app.accounts.negotiation import API
from codegen_app.web.errors import Unavailable, error_response, request_too_large
from codegen_app.web.server.uploads import UnsupportedFile

_JSON = "application/json"
log = logging.getLogger(__name__)


class ApiErrorsMiddleware:
    """The outermost middleware of all that may refuse a request (hosts, HTTPS, methods, forms): an
    error under ``/api/`` that is not JSON is converted."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        kind = response.headers.get("Content-Type", "")
        if (
            response.status_code < 400
            or kind.startswith(_JSON)
            or not request.path_info.startswith(API)
        ):
            return response
        reason = responses.get(response.status_code, "Error")
        converted = JsonResponse({"error": reason}, status=response.status_code)
        for name, value in response.headers.items():
            if not name.startswith("Content-"):
                converted.headers.setdefault(name, value)
        converted.cookies = response.cookies
        converted._has_been_logged = getattr(response, "_has_been_logged", False)  # type: ignore[attr-defined]
        # Not response.close(), which signals the end of the request.
        converted._resource_closers.extend(response._resource_closers)  # type: ignore[attr-defined]
        return converted


class ErrorTask(PlainErrorTask):  # type: ignore[misc]
    """Waitress's response to a refused request, made readable: a body that is too large, invalid
    headers."""

    def execute(self) -> None:
        """Send it, and close the connection."""
        try:
            response = _answer(self.request)
        except Exception:  # the client would wait for a response
            log.exception("the page of a refused request cannot be rendered")
            super().execute()
            return
        self.status = f"{response.status_code} {response.reason_phrase}"
        self.response_headers.extend(response.headers.items())
        self.set_close_on_finish()
        self.content_length = len(response.content)
        self.write(response.content)


def _answer(parsed: Any) -> HttpResponse:
    """Return the response to what waitress parsed, perhaps in part."""
    request = HttpRequest()
    headers = getattr(parsed, "headers", {})
    request.path = request.path_info = getattr(parsed, "path", "") or "/"
    request.META = {"HTTP_ACCEPT": headers.get("ACCEPT", "*/*")}
    error = parsed.error
    if error.code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        reason = request_too_large(parsed.limit)
    elif isinstance(error, UnsupportedFile):
        reason = Unavailable("File not imported", error.body, 0)
    else:
        reason = Unavailable("Request rejected", f"{error.reason}: {error.body}", 0)
    response = error_response(request, error.code, reason)
    response.headers["Cache-Control"] = "no-store"
    return response
