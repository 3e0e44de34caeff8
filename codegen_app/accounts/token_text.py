"""API tokens as text: 256 random bits, and a mark that identifies a genuine one without a query.

They are random, so a fast keyed hash protects them as well as a slow one; its key is the
installation's (``SECRET_KEY``), so that a copy of the table alone allows no guessing.
"""

from __future__ import annotations

import re
import secrets

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac

PREFIX_LENGTH = 12
_SALT = "codegen_app.accounts.token_text"
_MARK_LENGTH = 16
_TOKEN = re.compile(rf"kiln_([A-Za-z0-9_-]{{43}})([0-9a-f]{{{_MARK_LENGTH}}})")
_HEADER = re.compile(r"bearer +(\S+) *", re.IGNORECASE)


def make_token() -> str:
    """Return a new token."""
    secret = secrets.token_urlsafe(32)
    return f"kiln_{secret}{_mark(secret, settings.SECRET_KEY)}"


def bearer_token(header: str) -> str:
    """Return the token of an ``Authorization`` header; "" if there is none."""
    match = _HEADER.fullmatch(header)
    return match[1] if match else ""


def is_genuine(token: str) -> bool:
    """Return whether this installation created it; it may be revoked."""
    match = _TOKEN.fullmatch(token)
    if match is None:
        return False
    return any(constant_time_compare(_mark(match[1], key), match[2]) for key in _keys())


def lookup_digests(token: str) -> list[str]:
    """Return the possible stored digests of a token: by the current key first, then by earlier
    ones."""
    return [_hash("digest", token, key) for key in _keys()]


def _keys() -> list[str]:
    return [str(key) for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)]


def _mark(secret: str, key: str) -> str:
    return _hash("mark", secret, key)[:_MARK_LENGTH]


def _hash(purpose: str, text: str, key: str) -> str:
    return salted_hmac(f"{_SALT}.{purpose}", text, secret=key, algorithm="sha256").hexdigest()
