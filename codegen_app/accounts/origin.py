"""The origin of each request: its client's address, and what the audit log records."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from codegen_app.accounts import audit


def client_address(request: HttpRequest) -> str:
    """Return the client's IP address; "" if the server was reached through a Unix socket.

    ``KILN_TRUSTED_PROXIES`` is the number of our proxies before the server. Each appends its client
    to ``X-Forwarded-For``: that many entries from the right are ours, and what a client writes to
    their left is ignored.
    """
    peer = _valid(request.META.get("REMOTE_ADDR", ""))
    proxies: int = settings.TRUSTED_PROXIES
    if not proxies:
        return peer
    entries = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    return (_valid(entries[-proxies].strip()) if len(entries) >= proxies else "") or peer


def _valid(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        return ""


class OriginMiddleware:
    """Sets the request's address as the origin of what it records."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        origin = audit.Origin(client_address(request), request.META.get("HTTP_USER_AGENT", ""))
        with audit.override_origin(origin), audit.override_user(lambda: request.user):
            return self.get_response(request)
