"""A bound on hashing: it is slow on purpose, and guessers would take all cores with it."""

from __future__ import annotations

from threading import BoundedSemaphore

from django.contrib.auth.hashers import PBKDF2PasswordHasher

MAX_CONCURRENT = 1  # in each process
_slots = BoundedSemaphore(MAX_CONCURRENT)


class TooManyHashesError(Exception):
    """As many passwords are being hashed as may be at once; nothing was hashed for this one."""


class BoundedPBKDF2PasswordHasher(PBKDF2PasswordHasher):
    """Django's default; one that comes while another is hashed is refused before it costs.

    Whoever is refused tries again a second later (``middleware.py``). A queue would hold the web
    server's threads instead, for as long as guessers keep it filled.
    """

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        """The hash; raises ``TooManyHashesError``."""
        if not _slots.acquire(blocking=False):
            raise TooManyHashesError
        try:
            return str(super().encode(password, salt, iterations))
        finally:
            _slots.release()
