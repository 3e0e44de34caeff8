"""Who asks: a valid token with a scope that the address needs, within its rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from django.http import HttpRequest
from ninja.security import HttpBearer

from codegen_app.accounts import token_text as texts
from codegen_app.accounts import tokens
from codegen_app.accounts.models import ApiToken, Scope


class ScopeError(Exception):
    """The token is valid and lacks a scope."""

    def __init__(self, scopes: Sequence[Scope]) -> None:
        names = " or ".join(f"“{scope.value}”" for scope in scopes)
        super().__init__(f"this token lacks the scope {names}: {scopes[0].label}")


class TokenAuth(HttpBearer):
    """``Authorization: Bearer kiln_…``, of a token with one of the scopes; each request is
    counted."""

    openapi_description = "An API token, created on the page “API tokens”."

    def __init__(self, *scopes: Scope) -> None:
        super().__init__()
        self.scopes = scopes

    def authenticate(self, _: HttpRequest, token: str) -> ApiToken | None:
        """The token's row; None (401) for no valid one."""
        row = tokens.find_token(texts.bearer_token(f"bearer {token}"))
        if row is None:
            return None
        if not set(self.scopes) & set(row.scopes):
            raise ScopeError(self.scopes)
        tokens.charge_rate(row, requests=1)
        return row


def token_of(request: HttpRequest) -> ApiToken:
    """The token that a request was let in by."""
    return cast(ApiToken, request.auth)  # type: ignore[attr-defined]
