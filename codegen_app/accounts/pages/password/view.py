"""Change one's own password."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import authenticate, update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods


class OwnPasswordForm(PasswordChangeForm):
    """Django's form; the old password is checked like a login, so that guesses are counted."""

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(request.user, *args, **kwargs)
        self._request = request

    def clean_old_password(self) -> str:
        """Return the old password if it is correct."""
        password: str = self.cleaned_data["old_password"]
        name = self.user.get_username()
        if authenticate(self._request, username=name, password=password) is None:
            raise forms.ValidationError("The old password is wrong.")
        return password


@sensitive_post_parameters()
@login_required
@require_http_methods(["GET", "POST"])
def password(request: HttpRequest) -> HttpResponse:
    """Ask for the old and the new password; all other sessions of the account end."""
    user = cast(User, request.user)
    if not user.has_usable_password() or not settings.PASSWORD_LOGIN:
        messages.info(request, "Your account has no password on this site.")
        return redirect("overview")
    is_post = request.method == "POST"
    form = OwnPasswordForm(request, request.POST if is_post else None)
    if is_post and form.is_valid():
        user = form.save()
        update_session_auth_hash(request, user)
        messages.success(request, "Password changed. All other sessions are logged out.")
        return redirect("overview")
    context = {"title": "Change the password", "form": form}
    return render(request, "accounts/password.html", context, status=422 if is_post else 200)
