"""The page of an account's own API tokens."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import AbstractBaseUser

from codegen_app.accounts.models import ApiToken
from codegen_app.web.row import build_row

MAX_TOKENS = 200


@dataclass(frozen=True)
class TokenRow:
    """A token in the list."""

    id: int
    name: str
    prefix: str
    scopes: str
    state: str
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None
    worker_name: str
    worker_queue: str


@dataclass(frozen=True)
class TokensPage:
    """An account's tokens, without their secrets, which are not stored."""

    tokens: tuple[TokenRow, ...]


def token_list(owner: AbstractBaseUser) -> TokensPage:
    """Return the newest of an account's tokens (1 query)."""
    rows = ApiToken.objects.filter(owner_id=owner.pk)[:MAX_TOKENS]
    tokens = (build_row(TokenRow, row, id=row.pk, scopes=", ".join(row.scopes)) for row in rows)
    return TokensPage(tuple(tokens))
