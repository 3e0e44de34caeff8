"""The page of an account's own API tokens."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import AbstractBaseUser

from codegen_app.accounts.models import ApiToken

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
    return TokensPage(tuple(_row(row) for row in rows))


def _row(row: ApiToken) -> TokenRow:
    return TokenRow(
        id=row.pk,
        name=row.name,
        prefix=row.prefix,
        scopes=", ".join(row.scopes),
        state=row.state,
        created_at=row.created_at,
        expires_at=row.expires_at,
        used_at=row.used_at,
        worker_name=row.worker_name,
        worker_queue=row.worker_queue,
    )
