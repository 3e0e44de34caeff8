"""Whatever goes wrong under ``/api/`` is said in JSON: programs ask there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import get_resolver
from django.urls.resolvers import URLPattern, URLResolver

pytestmark = pytest.mark.django_db
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "FOO")
MULTIPART = "multipart/form-data; boundary=x"
VALUES = {"int": "1", "str": "a", "slug": "a", "path": "a/b", "key": "0" * 32}


class Raising:
    """A middleware in front of every view, which raises."""

    error: Callable[[], Exception] = RuntimeError

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, *_: Any) -> None:
        raise type(self).error()


def addresses() -> list[str]:
    """One of each pattern under ``/api/``, from the resolver, and some that are not there."""

    def routes(found: Any, before: str) -> list[str]:
        made = []
        for one in found:
            route = before + str(one.pattern)
            if isinstance(one, URLResolver):
                made += routes(one.url_patterns, route)
            elif isinstance(one, URLPattern) and route.startswith("api/"):
                made.append("/" + re.sub(r"<(?:(\w+):)?\w+>", _value, route))
        return made

    return [*routes(get_resolver().url_patterns, ""), "/api/", "/api/v1/nothing", "/api/v2/series"]


def _value(found: re.Match[str]) -> str:
    return VALUES.get(found[1] or "str", "1")


HOSTILE: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a browser": {"headers": {"Accept": "text/html,application/xhtml+xml"}},
    "another host": {"headers": {"Host": "evil.example"}},
    "a malformed host": {"headers": {"Host": "a b<>"}},
    "a forged token": {"headers": {"Authorization": "Bearer kiln_x"}},
    "NUL in the query": {"query": "?a=%00"},
    "no multipart": {"data": b"--y\r\n\r\n", "content_type": MULTIPART},
    "many fields": {
        "data": "&".join(f"a{n}=1" for n in range(600)),
        "content_type": "application/x-www-form-urlencoded",
    },
    "too many bytes": {"CONTENT_LENGTH": str(3 << 30), "content_type": MULTIPART},
    "half a JSON": {"data": b'{"a":', "content_type": "application/json"},
}


def is_json_of_an_error(answer: Any, method: str) -> bool:
    if answer.headers["Content-Type"].partition(";")[0] != "application/json":
        return False
    return method == "HEAD" or bool(json.loads(answer.content)["error"])


def send(client: Client, method: str, address: str, how: dict[str, Any]) -> Any:
    more = dict(how)
    address += more.pop("query", "")
    return client.generic(method, address, more.pop("data", b""), **more)


@pytest.mark.full(but=["anonymous-another host", "anonymous-too many bytes"])
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("account", ["anonymous", "logged in"])
def test_every_refusal_under_api_is_json(
    name: str, account: str, client: Client, admin_user: User
) -> None:
    """All addresses, methods and requests: a page (the description), a redirect, or JSON."""
    client.handler.enforce_csrf_checks = True
    client.raise_request_exception = False
    if account == "logged in":
        client.force_login(admin_user)
    statuses = set()
    for address in addresses():
        for method in METHODS:
            answer = send(client, method, address, HOSTILE[name])
            statuses.add(answer.status_code)
            if answer.status_code >= 400:
                assert is_json_of_an_error(answer, method), (method, address, answer.status_code)
                assert answer.status_code < 500, (method, address)
            if answer.status_code == 405 and address in addresses()[:-3]:
                assert answer.headers["Allow"], "kept of the answer that was no JSON"
    expected = {"another host": {400}, "a malformed host": {400}, "too many bytes": {413}}
    assert statuses >= expected.get(name, {404, 405})


@pytest.mark.parametrize(
    ("error", "status"),
    [(RuntimeError, 500), (lambda: OSError(28, "no room"), 503), (OperationalError, 503)],
    ids=["bug", "no room", "no database"],
)
def test_every_failure_under_api_is_json(
    error: Any, status: int, client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MIDDLEWARE = [f"{__name__}.Raising", *settings.MIDDLEWARE]
    monkeypatch.setattr(Raising, "error", staticmethod(error))
    client.raise_request_exception = False
    for address in addresses()[:-3]:
        for method in ("GET", "POST"):
            answer = client.generic(method, address, headers={"Accept": "text/html"})
            assert answer.status_code == status, address
            assert is_json_of_an_error(answer, method), address
            assert ("Retry-After" in answer.headers) is (status == 503)


@pytest.mark.parametrize(
    ("how", "status", "line"),
    [
        ({"headers": {"Host": "evil.example"}}, 400, "the operator sets the allowed hosts"),
        (HOSTILE["many fields"], 400, "too many fields or files"),
        (
            {"data": b"a=" + b"x" * (1 << 20), "content_type": "application/x-www-form-urlencoded"},
            413,
            "at most",
        ),
    ],
)
@pytest.mark.parametrize("accept", ["text/html", "application/json"])
def test_elsewhere_a_browser_reads_a_page(
    how: dict[str, Any], status: int, line: str, accept: str, client: Client
) -> None:
    given = dict(how)
    headers = {"Accept": accept, **given.pop("headers", {})}
    answer = client.generic("POST", "/login/", given.pop("data", b""), headers=headers, **given)
    assert answer.status_code == status
    assert line in answer.content.decode()
    assert answer.headers["Content-Type"].startswith(accept)


def test_a_form_of_another_site_is_refused_in_words(client: Client) -> None:
    client.handler.enforce_csrf_checks = True
    answer = client.post("/login/", {"username": "a"}, headers={"Accept": "text/html"})
    assert answer.status_code == 403
    assert "Nothing was changed" in answer.content.decode()
