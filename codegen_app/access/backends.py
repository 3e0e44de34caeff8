"""Logins that need no password of Kiln's."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend

IDENTITIES = "codegen_app.access.backends.IdentityBackend"


class IdentityBackend(ModelBackend):
    """Of who was signed in by the provider: such a login ends where there is no provider any more.
    It looks at no password."""

    def authenticate(self, request: Any = None, **_: Any) -> None:  # type: ignore[override]  # noqa: ARG002
        """Nobody: ``views/sign_in.py`` logs in."""
        return
