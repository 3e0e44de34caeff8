"""Who may read the metrics: clients with the token, or from a listed network."""

from __future__ import annotations

from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from codegen_app.accounts.origin import client_address
from codegen_app.accounts.token_text import bearer_token


def is_enabled() -> bool:
    """Return whether anybody may."""
    return bool(settings.METRICS_TOKEN or settings.METRICS_NETWORKS)


def may_read(request: HttpRequest) -> bool:
    """Return whether this client may."""
    token = bearer_token(request.headers.get("Authorization", ""))
    if settings.METRICS_TOKEN and constant_time_compare(token, settings.METRICS_TOKEN):
        return True
    address = client_address(request)  # "" for a Unix socket
    return bool(address) and any(
        ip_address(address) in network for network in settings.METRICS_NETWORKS
    )
