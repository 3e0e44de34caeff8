"""Logins without a password of Kiln's."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend

IDENTITIES = "codegen_app.accounts.backends.IdentityBackend"


class IdentityBackend(ModelBackend):
    """The backend of people who signed in with the provider: such a login ends if the provider is
    removed. It checks no password."""

    def authenticate(self, request: Any = None, **_: Any) -> None:  # type: ignore[override]  # noqa: ARG002
        """Return nobody: ``accounts/pages/sign_in.py`` logs in."""
        return
