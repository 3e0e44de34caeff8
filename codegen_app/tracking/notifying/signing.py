"""Signatures of webhooks: keys that are derived and never stored, and what they sign.

A channel's salt ends in a mark of the site's secret for its key. So a process with another secret
notices it, and the key stays while the old secret is among Django's fallbacks.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from hashlib import sha256

from django.conf import settings
from django.utils.crypto import constant_time_compare

_PURPOSE = b"codegen_app.tracking.notifying.signing"
_MARK_LENGTH = 8


class OtherSecretError(Exception):
    """The channel's key was derived from a secret that this process does not have."""


def new_salt() -> str:
    """Return the salt of a new key."""
    random = secrets.token_urlsafe(16)
    return random + _mark(random, _secrets()[0])


def key(salt: str) -> str:
    """Return the key of a channel with this salt: text whose bytes are the key. Raises
    ``OtherSecretError``."""
    random, mark = salt[:-_MARK_LENGTH], salt[-_MARK_LENGTH:]
    for secret in _secrets():
        if constant_time_compare(_mark(random, secret), mark):
            digits = base64.urlsafe_b64encode(_derived(b"key", random, secret))
            return f"kiln_hook_{digits.decode().rstrip('=')}"
    raise OtherSecretError("the channel key was created with another KILN_SECRET_KEY: renew it")


def signature(signing_key: str, timestamp: str, body: bytes) -> str:
    """Return the HMAC-SHA256 of ``timestamp.body`` in hexadecimal digits."""
    return hmac.digest(signing_key.encode(), timestamp.encode() + b"." + body, sha256).hex()


def _secrets() -> list[bytes]:
    return [
        str(secret).encode() for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    ]


def _mark(random: str, secret: bytes) -> str:
    return _derived(b"mark", random, secret).hex()[:_MARK_LENGTH]


def _derived(what: bytes, random: str, secret: bytes) -> bytes:
    return hmac.digest(secret, b":".join((_PURPOSE, what, random.encode())), sha256)
