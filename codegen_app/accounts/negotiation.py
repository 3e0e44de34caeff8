"""Whether a client is a browser or a program."""

from __future__ import annotations

from django.http import HttpRequest

API = "/api/"


def wants_json(request: HttpRequest) -> bool:
    """Return whether the client is a program, which does not read pages."""
    return (
        request.path_info.startswith(API)
        or request.path.endswith(".json")
        or request.get_preferred_type(["text/html", "application/json"]) == "application/json"
    )


def reads_pages(request: HttpRequest) -> bool:
    """Return whether the client could read a page in place of the response: a browser accepts HTML,
    also when it was led to a ``.json``; programs accept anything, or nothing."""
    return "text/html" in request.headers.get("Accept", "") or not wants_json(request)
