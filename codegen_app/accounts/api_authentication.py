"""Who asks: a valid token with the scope that the address needs, within its rate."""

from __future__ import annotations

from typing import cast

from django.http import HttpRequest
from ninja.security import HttpBearer

from codegen_app.accounts import token_text as texts
from codegen_app.accounts import tokens
from codegen_app.accounts.models import ApiToken, Scope


class ScopeError(Exception):
    """The token is valid and lacks a scope."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(f"this token lacks the scope “{scope.value}”: {scope.label}")


class TokenAuth(HttpBearer):
    """``Authorization: Bearer kiln_…``, of a token with this scope; each request is counted."""

    openapi_description = "An API token, created on the page “API tokens”."

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self._scope = scope

    def authenticate(self, _: HttpRequest, token: str) -> ApiToken | None:
        """The token's row; None (401) for no valid one."""
        row = tokens.find_token(texts.bearer_token(f"bearer {token}"))
        if row is None:
            return None
        if self._scope not in row.scopes:
            raise ScopeError(self._scope)
        tokens.charge_rate(row, requests=1)
        return row


def token_of(request: HttpRequest) -> ApiToken:
    """The token that a request was let in by."""
    return cast(ApiToken, request.auth)  # type: ignore[attr-defined]
