"""Who asks: somebody who reads pages, or a program."""

from __future__ import annotations

from django.http import HttpRequest

API = "/api/"


def wants_json(request: HttpRequest) -> bool:
    """Whether a program asks, which reads no page."""
    return (
        request.path_info.startswith(API)
        or request.path.endswith(".json")
        or request.get_preferred_type(["text/html", "application/json"]) == "application/json"
    )


def reads_pages(request: HttpRequest) -> bool:
    """Whether whoever asks could read a page that is answered instead: a browser says so, also
    where it was led to a ``.json``; programs say that they take anything, or nothing."""
    return "text/html" in request.headers.get("Accept", "") or not wants_json(request)
