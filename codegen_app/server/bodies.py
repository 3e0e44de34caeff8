"""How much may be sent to an address, decided by a request's headers alone.

Large bodies are taken for files alone, and of people who may import them, and of programs with a
token of ours. The web server reads a body before the application sees the request, so the form that
takes files has a ticket in its address: signed, of this session and this address, for a day. A
token is signed by itself.
"""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode

from django.conf import settings
from django.core import signing
from django.http import HttpRequest
from django.urls import reverse
from django.utils.crypto import constant_time_compare, salted_hmac

from codegen_app.access import tokens

SMALL = 1024 * 1024
_AROUND = 64 * 1024  # a form's other fields, and what separates them
_DAY_S = 24 * 60 * 60
_SALT = "codegen_app.server.bodies"
_OF_TOKENS = "api_results"


def large() -> dict[str, int]:
    """The addresses that take files, by the names of their views, and at most how many bytes."""
    return {
        "import": settings.GRAPH_FILE_MAX_BYTES + _AROUND,
        "look": settings.FOREIGN_KERNEL_MAX_BYTES + 2 * SMALL + _AROUND,
        "import_selections": settings.SELECTIONS_FILE_MAX_BYTES + _AROUND,
        _OF_TOKENS: settings.API_BODY_MAX_BYTES,
    }


def with_ticket(request: HttpRequest, name: str) -> str:
    """The address of a view that takes files, for who has the page in this session; without a
    ticket for who has none."""
    if request.session.session_key is None:
        return reverse(name)
    signed = signing.TimestampSigner(salt=_SALT).sign(_bound(request.session.session_key, name))
    return f"{reverse(name)}?{urlencode({'ticket': signed.partition(':')[2]})}"


def most_bytes(path: str, query: str, cookies: str, authorization: str = "") -> int:
    """The longest body that is taken at that address with these headers."""
    for name, limit in large().items():
        if path != reverse(name):
            continue
        if name == _OF_TOKENS:
            valid = tokens.is_genuine(tokens.bearer(authorization))
        else:
            valid = _is_valid(name, query, cookies)
        if valid:
            return limit
    return SMALL


def _is_valid(name: str, query: str, cookies: str) -> bool:
    """Whether the query has a ticket of this session for that view."""
    try:
        session = SimpleCookie(cookies).get(settings.SESSION_COOKIE_NAME)
        ticket = parse_qs(query, max_num_fields=10).get("ticket", [""])[0]
        if session is None:
            return False
        bound = _bound(session.value, name)
        signed = signing.TimestampSigner(salt=_SALT).unsign(f"{bound}:{ticket}", max_age=_DAY_S)
        return constant_time_compare(signed, bound)
    except (CookieError, ValueError, signing.BadSignature):
        return False


def _bound(session_key: str | None, name: str) -> str:
    return salted_hmac(_SALT, f"{name} {session_key}").hexdigest()
