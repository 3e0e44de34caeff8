"""URLs with an extra trailing slash redirect to the URL without it."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.urls import Resolver404, resolve
from django.utils.http import escape_leading_slashes


class SlashMiddleware:
    """Redirects only reads: a browser does not send a form again."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if (
            request.method in ("GET", "HEAD")
            and request.path_info.endswith("/")
            and not _is_page(request.path_info)
            and _is_page(path := request.path_info.rstrip("/") or "/")
        ):
            query = request.META.get("QUERY_STRING", "")
            # "//elsewhere" would be another host.
            address = escape_leading_slashes(path) + (f"?{query}" if query else "")
            return HttpResponsePermanentRedirect(address)
        return self.get_response(request)


def _is_page(path: str) -> bool:
    try:
        resolve(path)
    except Resolver404:
        return False
    return True
