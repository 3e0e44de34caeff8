"""Tokens, identities of a provider, the audit log."""

from __future__ import annotations

from codegen_app.accounts.models.api_request import ApiRequest
from codegen_app.accounts.models.api_token import ApiToken, Scope
from codegen_app.accounts.models.audit import AuditEntry
from codegen_app.accounts.models.identity import Identity

__all__ = [
    "ApiRequest",
    "ApiToken",
    "AuditEntry",
    "Identity",
    "Scope",
]
