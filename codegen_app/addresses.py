"""Addresses of pages, as they are changed by what is chosen on them."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest


def changed(request: HttpRequest, **changes: Any) -> str:
    """The page's address with some parameters changed; empty ones are left out."""
    query = request.GET.copy()
    for key, value in changes.items():
        query.pop(key, None)
        if value not in ("", None):
            query[key] = str(value)
    return f"{request.path}?{query.urlencode()}" if query else request.path
