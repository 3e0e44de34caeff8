"""How many failed logins stop further ones: counted by django-axes, in the database.

While logins are stopped, no password is checked, right or wrong. An address alone has more attempts
than an account from that address, since a team may share one; an account has the most, since
otherwise anybody who knows its name could lock its owner out from a single machine.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from axes.models import AccessAttempt
from django.conf import settings
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from codegen_app.accounts import audit

COOL_OFF: timedelta = settings.AXES_COOLOFF_TIME
MAX_FAILURES = (5, 20, 100)  # failures, for each of settings.AXES_LOCKOUT_PARAMETERS


class Throttle(AxesDatabaseHandler):  # type: ignore[misc]
    """Weighs failures by their shared parameters, and writes them into the audit log."""

    def get_failures(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """Return the failures of the fullest of the three counts, in hundredths of its limit:
        django-axes compares one number (``settings.AXES_FAILURE_LIMIT``)."""
        counted = zip(self.get_user_attempts(request, credentials), MAX_FAILURES, strict=True)
        return max(
            (attempts.aggregate(sum=Sum("failures_since_start"))["sum"] or 0) * 100 // allowed
            for attempts, allowed in counted
        )

    def user_login_failed(
        self, sender: Any, credentials: dict[str, Any], request: Any = None, **kwargs: Any
    ) -> None:
        """Count and record a failure; a stopped login is neither, so that nothing grows."""
        stopped_before = getattr(request, "axes_locked_out", False)
        super().user_login_failed(sender, credentials, request, **kwargs)
        if stopped_before:
            return
        name = str(credentials.get("username", ""))
        audit.note(None, "login failed", f"account {name!r}")
        if getattr(request, "axes_locked_out", False):
            audit.note(None, "logins stopped", f"account {name!r}", f"for {COOL_OFF}")

    def user_logged_in(self, sender: Any, request: Any, user: Any, **kwargs: Any) -> None:
        """Forget the account's own failures from there.

        Failures at other accounts stay: one's own account must not buy further guesses.
        """
        super().user_logged_in(sender, request, user, **kwargs)
        AccessAttempt.objects.filter(
            username=user.get_username(), ip_address=request.axes_ip_address
        ).delete()


def lockout_response(request: HttpRequest, *_: Any) -> HttpResponse:
    """Return the response while logins are stopped."""
    context = {"title": "Logins are stopped", "minutes": COOL_OFF.seconds // 60}
    response = render(request, "accounts/login_stopped.html", context, status=429)
    response.headers["Retry-After"] = str(COOL_OFF.seconds)
    return response
