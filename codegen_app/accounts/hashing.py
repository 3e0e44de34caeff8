"""A limit on password hashing: it is slow by design, and guessers would use all cores."""

from __future__ import annotations

from threading import BoundedSemaphore

from django.contrib.auth.hashers import PBKDF2PasswordHasher

MAX_CONCURRENT = 1  # in each process
_slots = BoundedSemaphore(MAX_CONCURRENT)


class TooManyHashesError(Exception):
    """The maximum number of passwords is being hashed; this one was not."""


class BoundedPBKDF2PasswordHasher(PBKDF2PasswordHasher):
    """Django's default; a request while another password is hashed is refused at no cost.

    A refused client retries a second later (``middleware.py``). A queue would hold the web server's
    threads instead, for as long as guessers keep it filled.
    """

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        """Return the hash; raises ``TooManyHashesError``."""
        if not _slots.acquire(blocking=False):
            raise TooManyHashesError
        try:
            return str(super().encode(password, salt, iterations))
        finally:
            _slots.release()
