"""The origin of each request, for the audit log."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from codegen_app.accounts import audit
from codegen_app.accounts.addresses import client_address


class OriginMiddleware:
    """Sets the request's address as the origin of what it records."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        origin = audit.Origin(client_address(request), request.META.get("HTTP_USER_AGENT", ""))
        with audit.override_origin(origin), audit.override_user(lambda: request.user):
            return self.get_response(request)
