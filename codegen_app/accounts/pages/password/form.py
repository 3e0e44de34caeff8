"""Change one's own password."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth import authenticate
from django.contrib.auth.forms import PasswordChangeForm
from django.http import HttpRequest


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
