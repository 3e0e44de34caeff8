"""Responses for missing pages and missing permissions, with suggestions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlencode

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import Resolver404, reverse

from codegen_app.accounts.negotiation import wants_json
from codegen_app.web.page import sentence

_MAX_SHOWN = 120  # characters of an address that are shown and searched for


@dataclass(frozen=True)
class Suggestion:
    """An alternative for the reader."""

    text: str
    url: str


# The first segment of an address, and the page that lists all its objects.
_LISTS = {
    "graphs": ("Graphs", "graphs"),
    "nodes": ("Graphs", "graphs"),
    "kernels": ("Kernels", "kernels"),
    "runs": ("Tuning runs", "tuning_runs"),
    "series": ("Series", "series_list"),
    "changes": ("Series", "series_list"),
    "alerts": ("Alerts", "alerts"),
    "compare": ("Compare kernels", "compare"),
    "selections": ("Selections", "selections"),
    "look": ("External kernels", "look"),
}


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's ``handler404``."""
    line = exception.args[0] if exception.args else ""
    unknown = isinstance(exception, Resolver404) or not isinstance(line, str) or not line
    why = "No page at this address." if unknown else sentence(str(line))
    # The list of the requested kind of object, and a search for its name.
    instead = []
    parts = [part for part in request.path.removesuffix(".json").split("/") if part]
    if parts:
        # The singular is accepted, too.
        title, name = _LISTS.get(parts[0]) or _LISTS.get(f"{parts[0]}s") or ("", "")
        if name and reverse(name) != request.path:
            instead.append(Suggestion(f"All {title[:1].lower()}{title[1:]}", reverse(name)))
        words = parts[-1][:_MAX_SHOWN]
        if not words.isdigit():
            query = urlencode({"q": words})
            instead.append(Suggestion(f"Search for “{words}”", f"{reverse('search')}?{query}"))
    return _error_page(request, 404, "Not found", why, instead)


def not_allowed(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's ``handler403``."""
    line = str(exception.args[0]) if exception.args else ""
    why = sentence(line) if line else "Your account does not have the permission for this."
    return _error_page(request, 403, "Not allowed", why, ())


def _error_page(
    request: HttpRequest, status: int, title: str, why: str, instead: Sequence[Suggestion]
) -> HttpResponse:
    if wants_json(request):
        return JsonResponse({"error": title, "text": why}, status=status)
    context = {
        "title": title,
        "asked": unquote(request.get_full_path())[:_MAX_SHOWN],
        "why": why,
        "instead": instead,
        "is_read": request.method in ("GET", "HEAD"),
    }
    return render(request, f"{status}.html", context, status=status)
