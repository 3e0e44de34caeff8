"""Each request is a span of a trace, and so is each of its queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse

from codegen_app.platform.config import context
from codegen_app.platform.config.tracing import tracing

_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
_MAX_TEXT = 2_000  # characters of a query
_ERROR_STATUS = 500


class TracesMiddleware:
    """Uses OpenTelemetry's conventions for HTTP and databases. The path is without its query, which
    can hold keys, and queries are without their values."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        method = str(request.method) if request.method in _METHODS else "_OTHER"
        attributes = {
            "http.request.method": method,
            "url.path": request.path,
            "url.scheme": str(request.scheme),
            context.REQUEST_ID: str(request.META.get(context.REQUEST_ID, "")),
        }
        # A client that is not behind our proxy does not decide which requests are traced.
        caller = request.headers if settings.TRUSTED_PROXIES else None
        with tracing.span(method, attributes, "SERVER", caller) as span:
            with connection.execute_wrapper(_query):
                response = self.get_response(request)
            if span is None:
                return response
            span.set_attribute("http.response.status_code", response.status_code)
            if request.resolver_match is not None:
                route = f"/{request.resolver_match.route}"
                span.update_name(f"{method} {route}")
                span.set_attribute("http.route", route)
            if response.status_code >= _ERROR_STATUS:
                tracing.failed(str(response.status_code))
        return response


def _query(execute: Callable[..., Any], sql: Any, params: Any, many: bool, about: Any) -> Any:
    text = str(sql)[:_MAX_TEXT]
    attributes = {"db.system.name": "postgresql", "db.query.text": text}
    with tracing.span(text.partition(" ")[0], attributes, "CLIENT"):
        return execute(sql, params, many, about)
