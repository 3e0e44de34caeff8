"""How long a login lasts: until a time without use, and a maximum in any case."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import cast

from django.conf import settings
from django.contrib.auth import logout, user_logged_in
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse

_BEGAN_KEY, _USED_KEY = "began_at", "used_at"
_WRITE_EVERY_S = 60  # not every page may cost a write


@receiver(user_logged_in)
def _start_session(request: HttpRequest, **_: object) -> None:
    request.session[_BEGAN_KEY] = request.session[_USED_KEY] = int(time.time())


class SessionLimitsMiddleware:
    """Ends unused and old logins; a login's pages are not cached."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if settings.SESSION_COOKIE_NAME in request.COOKIES and request.user.is_authenticated:
            _enforce_limits(request, int(time.time()))
        response = self.get_response(request)
        # A page that did not use the session is the same for everybody. A view's mark says the
        # same: the text does not depend on the user.
        is_for_all = getattr(response, "is_for_all", False)
        if request.session.accessed and request.user.is_authenticated and not is_for_all:
            response.headers["Cache-Control"] = "no-store"
        return response


def _enforce_limits(request: HttpRequest, now: int) -> None:
    session = request.session
    began, used = cast(int, session.get(_BEGAN_KEY, 0)), cast(int, session.get(_USED_KEY, 0))
    # A clock that was set back must not extend a login.
    if not (0 <= now - began < settings.SESSION_COOKIE_AGE) or not (
        now - used < settings.SESSION_IDLE_S
    ):
        logout(request)
    elif now - used >= _WRITE_EVERY_S and not request.headers.get("HX-Request"):
        session[_USED_KEY] = now  # a page that polls every two seconds is not use
