"""Where a request came from."""

from __future__ import annotations

from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest


def client_address(request: HttpRequest) -> str:
    """The client's IP address; "" where the server was reached through a socket in a folder.

    ``KILN_TRUSTED_PROXIES`` says how many proxies of ours stand before the server. Each appends
    whom it heard from to ``X-Forwarded-For``: so many entries from the right are ours, and what
    a client writes to their left counts for nothing.
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
