"""Addresses of pages: with other parameters, and in full for readers outside the site."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest


def replace_query(request: HttpRequest, **changes: Any) -> str:
    """The page's address with some parameters changed; empty ones are left out."""
    query = request.GET.copy()
    for key, value in changes.items():
        query.pop(key, None)
        if value not in ("", None):
            query[key] = str(value)
    return f"{request.path}?{query.urlencode()}" if query else request.path


def absolute_url(path: str) -> str:
    """The page's whole address; its path alone where ``KILN_SITE_URL`` is not set.

    Never by the request's ``Host``, which the client chooses: what is cached, exported or sent is
    read by others.
    """
    return f"{settings.SITE_URL}{path}"
