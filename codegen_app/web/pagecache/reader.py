"""A page's values of its reader, and the parts of a page that depend on the reader."""

from __future__ import annotations

import secrets
from html import escape
from threading import Lock

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, PermissionsMixin
from django.contrib.messages import get_messages
from django.http import HttpRequest
from django.middleware.csrf import get_token
from django.utils.module_loading import import_string

from codegen_app.web.pagecache.request import Reader
from codegen_app.web.pagecache.version import Version
from codegen_app.web.server import bodies

# Placeholders in cached pages for what differs between readers; they cannot be guessed, so no
# content of a page is taken for one.
_SECRET = secrets.token_hex(16)
TOKEN, NAME, TICKETED = (f"kiln-{what}-{_SECRET}" for what in ("token", "name", "ticketed"))
#: The numbers in the bar, by their names.
COUNTS = {name: f"kiln-count-{name}-{_SECRET}" for name in settings.BAR_COUNTS}
_COUNT_NAMES = {mark: name for name, mark in COUNTS.items()}
MARKS = (TOKEN, NAME, TICKETED, *COUNTS.values())
_MAX_ACCOUNTS = 10_000

Account = AbstractBaseUser | AnonymousUser


def value_of(mark: str, request: HttpRequest) -> bytes:
    """Return the value of a mark in this reader's page."""
    if mark == TOKEN:
        return get_token(request).encode()
    if mark == NAME:
        return escape(request.user.get_username()).encode()
    if mark in _COUNT_NAMES:
        return bar_counts(request)[_COUNT_NAMES[mark]].encode()
    return escape(bodies.ticket_url(request, "import_selections")).encode()


def is_cached_request(request: HttpRequest) -> bool:
    """Return whether the rendered page is shared (``CachedRequest``) and needs marks."""
    return getattr(request, "is_kept", False)


def bar_counts(request: HttpRequest) -> dict[str, str]:
    """Return the numbers in the bar of every page, by name: read once per request."""
    counts: dict[str, str] | None = getattr(request, "bar_counts", None)
    if counts is None:
        counts = _read_counts()
        request.bar_counts = counts  # type: ignore[attr-defined]
    return counts


def _read_counts() -> dict[str, str]:
    return {name: import_string(path)() for name, path in settings.BAR_COUNTS.items()}


class BarCounts:
    """The numbers in the bar, counted again when something has changed."""

    def __init__(self) -> None:
        self._known: tuple[Version, dict[str, str]] | None = None

    def of(self, version: Version) -> dict[str, str]:
        """Return the numbers as text, "" for none (1 query each if something changed)."""
        cached = self._known
        if cached is not None and cached[0].holds(version):
            return cached[1]
        self._known = version, _read_counts()
        return self._known[1]


class Rights:
    """The rights of accounts, as part of the key: read again when rights may have changed."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[int, tuple[Version, Reader]] = {}

    def of(self, account: Account, version: Version) -> Reader:
        """Return all that pages may depend on (2 queries the first time)."""
        if not account.is_authenticated or not isinstance(account, PermissionsMixin):
            return Reader()
        assert account.pk is not None
        cached = self._known.get(account.pk)
        if cached is not None and cached[0].rest_holds(version):
            return cached[1]
        staff = getattr(account, "is_staff", False)
        rights = Reader(True, staff, account.is_superuser, frozenset(account.get_all_permissions()))
        with self._lock:
            if len(self._known) >= _MAX_ACCOUNTS:
                self._known.clear()
            self._known[account.pk] = (version, rights)
        return rights


def has_messages(request: HttpRequest) -> bool:
    """Return whether there are messages for this reader alone."""
    return len(get_messages(request)) > 0
