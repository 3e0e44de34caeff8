"""The redirect after a login: back to the requested page, with its whole URL."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from codegen_app.accounts.negotiation import reads_pages

_SAFE_METHODS = ("GET", "HEAD")
_LOGIN_HINT = "Not logged in: log in at /login/, or use the API (/api/v1/docs) with a token."


def return_url(request: HttpRequest) -> str:
    """Return the URL to come back to: the requested one, with its query. A URL that only accepts
    forms (cancelling, triage) shows nothing: then the page that the form was on, if the browser
    names one of ours."""
    if request.method in _SAFE_METHODS:
        return request.get_full_path()
    referer = request.headers.get("Referer", "")
    is_ours = url_has_allowed_host_and_scheme(
        referer, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    if not referer or not is_ours:
        return reverse("overview")
    parts = urlsplit(referer)
    path = f"/{parts.path.lstrip('/')}"
    return f"{path}?{parts.query}" if parts.query else path


def login_response(request: HttpRequest) -> HttpResponseBase:
    """Return the redirect to the login, which leads back. A fragment that a page polls gets an
    error instead, since the login's page does not fit there. So does a program, in JSON: it would
    take the login's page for a response."""
    if request.headers.get("HX-Request"):
        return HttpResponse("You are no longer logged in.", status=401, content_type="text/plain")
    if not reads_pages(request):
        return JsonResponse({"error": "Not logged in", "text": _LOGIN_HINT}, status=401)
    return redirect_to_login(return_url(request))


class LoginMiddleware(LoginRequiredMiddleware):
    """Django's middleware, but it leads back to a page that can be read."""

    def handle_no_permission(  # type: ignore[override]  # no redirect for parts
        self,
        request: HttpRequest,
        view_func: Any,  # noqa: ARG002
    ) -> HttpResponseBase:
        """Return the response that leads to the login."""
        return login_response(request)
