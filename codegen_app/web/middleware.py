"""Response headers of every page, responses that replace a page, and redirects."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.shortcuts import render
from django.urls import Resolver404, resolve
from django.utils.http import escape_leading_slashes

from codegen_app.accounts.hashing import TooManyHashesError

# Nothing inline, no eval, no other host. The node graph's layout runs in a worker of our own
# origin; Plotly draws into data: images when a chart is saved. Browsers report violations
# (web/csp_reports.py); in both formats, since browsers differ.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "worker-src 'self'",
        "manifest-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "report-uri /csp-reports",
        "report-to csp",
    )
)
# No page uses these; injected content must not either.
_FEATURES = (
    "accelerometer",
    "autoplay",
    "camera",
    "display-capture",
    "encrypted-media",
    "fullscreen",
    "geolocation",
    "gyroscope",
    "hid",
    "magnetometer",
    "microphone",
    "midi",
    "payment",
    "publickey-credentials-get",
    "screen-wake-lock",
    "serial",
    "usb",
    "xr-spatial-tracking",
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Reporting-Endpoints": 'csp="/csp-reports"',
    "Permissions-Policy": ", ".join(f"{feature}=()" for feature in _FEATURES),
    "Cross-Origin-Resource-Policy": "same-origin",
}


class HeadersMiddleware:
    """Adds the headers; a header that a view set (for a download) stays."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response


class HashingMiddleware:
    """Responds with a page while the maximum number of passwords is being hashed."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Return the page; None for every other exception."""
        if not isinstance(error, TooManyHashesError):
            return None
        response = render(request, "429.html", {"title": "Try again"}, status=429)
        response.headers["Retry-After"] = "1"
        return response


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
