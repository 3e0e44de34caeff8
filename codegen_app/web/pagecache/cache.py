"""Cached views: rendered once for all who may see the same, until something changes.

A reader gets what the database holds, or held ``KNOWN_FOR_S`` ago. While workers write, a page may
be as old as ``CachePolicy.max_age_s``: otherwise each page would be rendered for each reader. A
person who changes something sees it at once: for ``FRESH_S`` afterwards their pages are exact.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils.cache import patch_vary_headers

from codegen_app.web.pagecache import compressed, reader
from codegen_app.web.pagecache.compressed import Part
from codegen_app.web.pagecache.request import CachedRequest, Key, page_key
from codegen_app.web.pagecache.store import Entry, Store
from codegen_app.web.pagecache.version import Version, Versions

View = Callable[..., HttpResponse]
Trace = Callable[..., str]
FRESH_COOKIE, FRESH_S = "changed", 10
_COST_FACTOR = 40  # repeated rendering of a page takes at most 1/40 of a core per process
_MAX_AGE_S, _MIN_AGE_S = 5.0, 1.0
_MARKS = re.compile("|".join(map(re.escape, reader.MARKS)).encode())

_store = Store(settings.PAGES_KEPT_BYTES)
_versions = Versions()
_rights = reader.Rights()
_bar_counts = reader.BarCounts()


@dataclass(frozen=True)
class CachePolicy:
    """How a view's pages are cached.

    ``trace`` returns, in one cheap query, the rows that a page shows and that workers write; with
    it, a page is rendered again only if these changed. ``is_timed`` is for pages that show the
    time, or the workers: they are outdated after a second even if nothing changed, unless the view
    says of a response that it does not (``shows_time``).
    """

    trace: Trace | None = None
    is_timed: bool = False

    def max_age_s(self, entry: Entry) -> float:
        """Return how old an outdated page may be."""
        return min(max(_MIN_AGE_S, _COST_FACTOR * entry.cost_s), _MAX_AGE_S)


def cached(view: View, policy: CachePolicy) -> View:
    """Return the view with cached pages. Downloads, errors and form submissions are not cached."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if (
            not settings.PAGES_KEPT_BYTES
            or request.method not in ("GET", "HEAD")
            or reader.has_messages(request)
        ):
            return view(request, *args, **kwargs)
        return _Page(view, policy, request, args, kwargs).answer()

    return answer


@dataclass
class _Page:
    """One request for a cached page."""

    view: View
    policy: CachePolicy
    request: HttpRequest
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def answer(self) -> HttpResponse:
        exact = FRESH_COOKIE in self.request.COOKIES
        version = _versions.now(exact=exact)
        self.request.bar_counts = _bar_counts.of(version)  # type: ignore[attr-defined]
        key = page_key(self.request, _rights.of(self.request.user, version))
        while True:
            entry = _store.get(key)
            if entry is not None and self._serves(entry, version, key, exact=exact):
                return _response(self.request, entry)
            with _store.rendering(key) as is_first:
                if is_first:
                    return self._render(key, version if exact else _versions.now(exact=True))
            _store.wait(key)
            entry = _store.get(key)
            if entry is None:  # it was an error, or too large: each request renders its own
                return self._render(key, _versions.now(exact=True))
            if not exact:
                return _response(self.request, entry)

    def _serves(self, entry: Entry, version: Version, key: Key, *, exact: bool) -> bool:
        age = time.monotonic() - entry.rendered_at
        is_late = entry.is_timed and age >= _MIN_AGE_S
        if not is_late and entry.version.holds(version):
            return True
        traced = self.policy.trace is not None and entry.version.rest_holds(version)
        if traced and entry.trace == self._trace():
            entry.version = version
            return True
        return not exact and (
            age < self.policy.max_age_s(entry)
            or (age < 2 * _MAX_AGE_S and _store.is_rendering(key))
        )

    def _trace(self) -> str:
        if self.policy.trace is None:
            return ""
        return self.policy.trace(**{k: v for k, v in self.kwargs.items() if k != "as_json"})

    def _render(self, key: Key, version: Version) -> HttpResponse:
        """Render the page, and cache it if it is for all."""
        trace, began = self._trace(), time.monotonic()
        # A page with marks. If the view raises, the error is rendered for the reader's own request.
        request = CachedRequest(key, self.request.resolver_match)
        response = self.view(request, *self.args, **self.kwargs)
        if "CSRF_COOKIE_NEEDS_UPDATE" in request.META:
            raise RuntimeError("a form of a kept page takes the token of views.page.respond()")
        for_all = response.status_code == 200 and not response.streaming and not response.cookies
        if for_all:
            content = response.content
            entry = Entry(
                parts=tuple(map(Part.of, _MARKS.split(content))),
                marks=tuple(mark.decode() for mark in _MARKS.findall(content)),
                headers=tuple(response.headers.items()),
                digest=hashlib.sha256(content).hexdigest()[:32],
                version=version,
                trace=trace,
                is_timed=self.policy.is_timed and getattr(response, "shows_time", True),
                rendered_at=began,
                cost_s=time.monotonic() - began,
            )
            _store.put(key, entry)
            return _response(self.request, entry)
        if not response.streaming:
            response.content = _fill_marks(response.content, self.request)
        return response


def _response(request: HttpRequest, entry: Entry) -> HttpResponse:
    """Return the reader's page, or that the reader has it already."""
    token = request.COOKIES.get(settings.CSRF_COOKIE_NAME, "")
    reader_state = f"{token} {request.user.pk} {reader.bar_counts(request)}"
    etag = f'W/"{entry.digest}-{hashlib.sha256(reader_state.encode()).hexdigest()[:12]}"'
    response: HttpResponse
    if request.headers.get("If-None-Match") == etag:
        response = HttpResponseNotModified()
    else:
        values = {mark: reader.value_of(mark, request) for mark in set(entry.marks)}
        between = [values[mark] for mark in entry.marks]
        if compressed.takes_gzip(request.headers.get("Accept-Encoding", "")):
            response = HttpResponse(compressed.join_gzip(entry.parts, between))
            response.headers["Content-Encoding"] = "gzip"
        else:
            response = HttpResponse(compressed.join_plain(entry.parts, between))
        for name, value in entry.headers:
            response.headers[name] = value
    response.headers["ETag"] = etag
    response.headers["Cache-Control"] = "private, no-cache"
    patch_vary_headers(response, ("Cookie", "HX-Request", "Accept-Encoding"))
    return response


def _fill_marks(content: bytes, request: HttpRequest) -> bytes:
    """Return a page with this reader's values, marked as secrets: they are not compressed."""
    mark = compressed.SECRET.encode()
    values = {
        name: reader.value_of(name, request) for name in reader.MARKS if name.encode() in content
    }
    return _MARKS.sub(lambda match: mark + values[match[0].decode()] + mark, content)


class FreshMiddleware:
    """Shows exact pages for a while to whoever changed something, in every process."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.method not in ("GET", "HEAD", "OPTIONS") and response.status_code < 400:
            response.set_cookie(
                FRESH_COOKIE,
                "1",
                max_age=FRESH_S,
                secure=settings.SESSION_COOKIE_SECURE,
                httponly=True,
                samesite="Lax",
            )
        return response
