"""The request for the view of a cached page: created only from the page's key.

A page is sent to every reader with the same key. Its view cannot read a header, a cookie, the host
or the account of the first reader, so that no page can depend on what its key lacks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from django.http import HttpRequest, QueryDict
from django.urls import ResolverMatch

_THEMES = ("light", "dark")


@dataclass(frozen=True)
class Reader:
    """What a page may depend on: an account without its name, with the interface that views and
    templates use (``request.user``, ``perms``)."""

    is_authenticated: bool = False
    is_staff: bool = False
    is_superuser: bool = False
    permissions: frozenset[str] = field(default=frozenset(), repr=False)

    def has_perm(self, name: str, _of: object = None) -> bool:
        """Return whether it has the permission ``app.codename``."""
        return self.is_superuser or name in self.permissions

    def has_module_perms(self, app: str) -> bool:
        """Return whether it has any permission of the application."""
        return self.is_superuser or any(name.startswith(f"{app}.") for name in self.permissions)


@dataclass(frozen=True)
class Key:
    """Pages with the same key are equal except for their marks. ``query`` is as it was sent, and is
    always read as UTF-8."""

    path: str
    path_info: str
    query: str
    is_part: bool
    theme: str
    reader: Reader


def page_key(request: HttpRequest, reader: Reader) -> Key:
    theme = request.COOKIES.get("theme", "")
    return Key(
        path=request.path,
        path_info=request.path_info,
        query=request.META.get("QUERY_STRING", ""),
        is_part="HX-Request" in request.headers,
        theme=theme if theme in _THEMES else "",
        reader=reader,
    )


class CachedRequest(HttpRequest):
    """A GET with the key's values. Reading a host or a scheme raises ``RuntimeError``; it has no
    session, and no cookie or header but those of the key."""

    is_kept = True

    def __init__(self, key: Key, match: ResolverMatch | None) -> None:
        super().__init__()
        self.method = "GET"
        self.path, self.path_info, self.resolver_match = key.path, key.path_info, match
        self.META = {"REQUEST_METHOD": "GET", "QUERY_STRING": key.query}
        if key.is_part:
            self.META["HTTP_HX_REQUEST"] = "true"
        self.GET = QueryDict(key.query.encode("latin-1"))  # as in WSGI
        self.COOKIES = {"theme": key.theme} if key.theme else {}
        self.user = key.reader  # type: ignore[assignment]  # what pages ask of an account

    def get_host(self) -> NoReturn:
        """Raise ``RuntimeError``."""
        raise RuntimeError(
            "a kept page is for every host: use codegen_app.web.addresses.absolute_url"
        )

    def _get_scheme(self) -> NoReturn:
        self.get_host()
