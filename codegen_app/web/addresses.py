"""Page URLs: with changed parameters, and absolute for readers outside the site."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest


def replace_query(request: HttpRequest, **changes: Any) -> str:
    """Return the page's URL with some parameters changed; empty ones are left out."""
    query = request.GET.copy()
    for key, value in changes.items():
        query.pop(key, None)
        if value not in ("", None):
            query[key] = str(value)
    return f"{request.path}?{query.urlencode()}" if query else request.path


def absolute_url(path: str) -> str:
    """Return the page's absolute URL, or its path alone if ``KILN_SITE_URL`` is not set.

    The request's ``Host``, which the client chooses, is never used: others read what is cached,
    exported or sent.
    """
    return f"{settings.SITE_URL}{path}"
