"""The address of a request's client."""

from __future__ import annotations

from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest


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
