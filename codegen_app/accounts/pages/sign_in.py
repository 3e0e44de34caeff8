"""The login, by password or through the organisation's identity provider."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from axes.handlers.proxy import AxesProxyHandler
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login as log_in
from django.contrib.auth import user_login_failed
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme

from codegen_app.accounts import throttle
from codegen_app.accounts.backends import IDENTITIES
from codegen_app.platform.config.sign_in import Provider
from codegen_app.web.addresses import absolute_url


class Login(LoginView):
    """Django's login view, with the provider beside the password or instead of it."""

    template_name = "accounts/login.html"

    @method_decorator(login_not_required)
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Refuse passwords if they are disabled."""
        if request.method == "POST" and not settings.PASSWORD_LOGIN:
            raise PermissionDenied("Password login is disabled: sign in with the provider.")
        return super().dispatch(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the provider's button, which returns to the same page."""
        context = super().get_context_data(**kwargs)
        after = context.get(self.redirect_field_name) or ""
        query = f"?{urlencode({'next': after})}" if after else ""
        return context | {
            "provider": settings.OIDC.name if settings.OIDC else "",
            "sign_in_url": f"{reverse('sign_in')}{query}",
            "has_passwords": settings.PASSWORD_LOGIN,
        }


@login_not_required
def sign_in(request: HttpRequest) -> HttpResponse:
    """Redirect to the provider, with a cookie for the values that must come back."""
    _provider()
    from codegen_app.accounts import oidc  # noqa: PLC0415 - of the extra

    after = _own_url(request, request.GET.get("next", ""))
    try:
        address, pending = oidc.start_sign_in(_callback_url(), after)
    except oidc.SignInError as error:
        return _back_to_login(request, str(error), after)
    response = redirect(address)
    response.headers["Cache-Control"] = "no-store"
    response.set_cookie(
        oidc.cookie_name(),
        pending.signed_cookie(),
        max_age=oidc.COOKIE_S,
        secure=settings.HTTPS,
        httponly=True,
        samesite="Lax",  # the provider's page leads back here
    )
    return response


@login_not_required
def sign_in_callback(request: HttpRequest) -> HttpResponse:
    """Handle the redirect from the provider with a code: log in and return to the previous page, or
    show one line with the reason for a failure."""
    provider = _provider()
    from codegen_app.accounts import identities, oidc  # noqa: PLC0415 - of the extra

    pending = oidc.pending_sign_in(request)
    if not AxesProxyHandler.is_allowed(request, {"username": _failure_username(provider, "")}):
        return throttle.lockout_response(request)
    try:
        person = oidc.finish_sign_in(request, pending, _callback_url())
        user = identities.get_or_create_account(provider, person)
    except oidc.SignInError as error:
        if error.counts:
            name = _failure_username(
                provider, error.subject or (pending.state[:8] if pending else "")
            )
            user_login_failed.send(__name__, credentials={"username": name}, request=request)
        response = _back_to_login(request, str(error), pending.after if pending else "")
    else:
        request.signed_in_by = provider.name  # type: ignore[attr-defined]  # for the audit log
        log_in(request, user, backend=IDENTITIES)
        after = pending.after if pending else ""
        response = redirect(_own_url(request, after) or settings.LOGIN_REDIRECT_URL)
    response.delete_cookie(oidc.cookie_name(), samesite="Lax")  # valid once
    response.headers["Cache-Control"] = "no-store"
    return response


def _provider() -> Provider:
    if settings.OIDC is None:
        raise Http404("no sign-in provider is configured")
    provider: Provider = settings.OIDC
    return provider


def _failure_username(provider: Provider, name: str) -> str:
    """Return the name by which failures are counted besides the address: never an account's name,
    so that nobody can be locked out."""
    return f"{provider.name}: {name}"[:150]


def _callback_url() -> str:
    return absolute_url(reverse("signed_in"))


def _own_url(request: HttpRequest, address: str) -> str:
    """Return an address of this site; "" for any other."""
    is_own = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return address if is_own else ""


def _back_to_login(request: HttpRequest, line: str, after: str) -> HttpResponse:
    messages.error(request, f"{line.rstrip('.')}.")
    query = f"?{urlencode({'next': after})}" if after else ""
    return redirect(f"{reverse('login')}{query}")
