"""Endpoints for monitoring: whether the process answers, whether it could serve, and what waits.

They are answered before everything else: load balancers use HTTP, an IP address instead of a host
name, and no session; and the first two must not fail because the database does.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.utils.crypto import constant_time_compare

from codegen_app.accounts.origin import client_address
from codegen_app.accounts.token_text import bearer_token
from codegen_app.platform import readiness
from codegen_app.site import metrics

SAFE_METHODS = ("GET", "HEAD")
_TEXT = "text/plain; charset=utf-8"
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class ProbesMiddleware:
    """The first middleware: ``/healthz``, ``/readyz``, and ``/metrics`` if it is enabled."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        answer = ANSWERS.get(request.path_info)
        has_metrics = settings.METRICS_TOKEN or settings.METRICS_NETWORKS
        if answer is None or (answer is metrics_text and not has_metrics):
            return self.get_response(request)
        if request.method not in SAFE_METHODS:
            return HttpResponseNotAllowed(SAFE_METHODS)
        response = answer(request)
        for name, value in _HEADERS.items():
            response.headers[name] = value
        response.headers["Content-Length"] = str(len(response.content))
        if request.method == "HEAD":
            response.content = b""
        return response


def health(_: HttpRequest) -> HttpResponse:
    """Report that this process answers; nothing else is checked."""
    return HttpResponse("ok\n", content_type=_TEXT)


def ready(_: HttpRequest) -> HttpResponse:
    """Report each dependency by name; 503 if one is missing."""
    checks = readiness.run_checks()
    is_ready = all(result == readiness.OK for result in checks.values())
    body = {"ready": is_ready, "checks": checks}
    response = JsonResponse(body, status=200 if is_ready else 503)
    response._has_been_logged = True  # type: ignore[attr-defined]  # each check has said why
    return response


def metrics_text(request: HttpRequest) -> HttpResponse:
    """Return the metrics to clients with the token, or from a listed network."""
    token = bearer_token(request.headers.get("Authorization", ""))
    may_read = False
    if settings.METRICS_TOKEN and constant_time_compare(token, settings.METRICS_TOKEN):
        may_read = True
    elif address := client_address(request):  # "" for a Unix socket
        may_read = any(ip_address(address) in network for network in settings.METRICS_NETWORKS)
    if not may_read:
        denied = HttpResponse("A token is needed.\n", status=401, content_type=_TEXT)
        denied.headers["WWW-Authenticate"] = "Bearer"
        return denied
    if readiness.database() != readiness.OK:
        return HttpResponse("The database does not answer.\n", status=503, content_type=_TEXT)
    return HttpResponse(metrics.exposition(), content_type=metrics.CONTENT_TYPE)


ANSWERS: dict[str, Callable[[HttpRequest], HttpResponse]] = {
    "/healthz": health,
    "/readyz": ready,
    "/metrics": metrics_text,
}
