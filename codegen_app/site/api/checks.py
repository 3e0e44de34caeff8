"""What several operations check: parameters, rows of the URL, headers, and the token's owner."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db.models import Model
from django.http import HttpRequest

from codegen_app.accounts import idempotency, permissions
from codegen_app.accounts.api_authentication import TokenAuth, token_of
from codegen_app.accounts.models import Scope
from codegen_app.tracking.api_schemas import Problem
from codegen_app.tracking.models import Alert, Datum, Series
from scheduler.errors import UserError
from scheduler.results.points import fields

READ = TokenAuth(Scope.READ)
TRIAGE = TokenAuth(Scope.TRIAGE)
REFUSALS = dict.fromkeys((401, 403, 422, 429), Problem)
ROW_REFUSALS = {**REFUSALS, 404: Problem}
_MAX_ID = 2**63 - 1
Row = TypeVar("Row", bound=Model)

#: For operations that accept ``Idempotency-Key`` and do not require it.
OPTIONAL_KEY: dict[str, Any] = {
    "parameters": [
        {
            "name": idempotency.HEADER,
            "in": "header",
            "required": False,
            "schema": {
                "type": "string",
                "minLength": 1,
                "maxLength": idempotency.MAX_KEY_LENGTH,
            },
            "description": (
                "A unique string per request. Repeating a request with its key within"
                f" {idempotency.KEPT.days} days changes nothing and gets the same answer. Another"
                " request with that key is a conflict (409)."
            ),
        }
    ]
}


class HeaderError(Exception):
    """A header is missing, or none that can be used."""


class NotFoundError(Exception):
    """There is no such row."""


class OwnerError(Exception):
    """The token's owner may not do that."""


def check_parameters(request: HttpRequest, names: Container[str]) -> None:
    """Raise ``UserError`` for an unknown parameter: a misspelt one would have no effect."""
    fields.reject_unknown(request.GET, names, "query")


def parse_cursor(after: int) -> int:
    """Return the place after which a page begins. Raises ``UserError`` for an invalid one."""
    if abs(after) > 2**62:
        raise UserError("after: use the “next” value of the previous page")
    return after


def idempotency_key(request: HttpRequest, *, required: bool = False) -> str:
    """Return the request's key, "" for none. Raises ``HeaderError``."""
    header = request.headers.get(idempotency.HEADER)
    if header is None and not required:
        return ""
    key = (header or "").strip()
    if not key or len(key) > idempotency.MAX_KEY_LENGTH or not key.isprintable():
        raise HeaderError(
            f"{idempotency.HEADER}: expected 1 to {idempotency.MAX_KEY_LENGTH} printable"
            " characters, unique for each request"
        )
    return key


def run_once(request: HttpRequest, action: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Run an action that a repeated request must not repeat (``accounts/idempotency.py``)."""
    content = f"{request.path}\n".encode() + request.body
    return idempotency.run_once(token_of(request), idempotency_key(request), content, action)


def get_series(pk: int) -> Series:
    return _get(Series, f"series {pk} does not exist", pk)


def get_point(series: int, pk: int) -> Datum:
    return _get(Datum, f"series {series} has no point {pk}", pk, series=series)


def get_alert(pk: int) -> Alert:
    return _get(Alert, f"alert {pk} does not exist", pk)


def _get(model: type[Row], line: str, pk: int, **conditions: int) -> Row:
    keys = {"pk": pk, **conditions}
    row = model._default_manager.filter(**keys).first() if max(keys.values()) <= _MAX_ID else None
    if row is None:
        raise NotFoundError(line)
    return row


def triager(request: HttpRequest) -> User:
    """Return the token's owner. Raises ``OwnerError`` if the owner may not triage."""
    owner = token_of(request).owner
    if not owner.has_perm(permissions.TRIAGE):
        title = permissions.TITLES[permissions.TRIAGE]
        raise OwnerError(f"the owner of this token lacks the permission “{title}”")
    return owner


def find_account(name: str, field: str) -> User:
    """Return the active account of that name. Raises ``UserError`` naming the field."""
    text = fields.as_text(name, field, 150)
    person = User.objects.filter(username=text, is_active=True).first()
    if person is None:
        raise UserError(f"{field}: account {name!r} does not exist")
    return person
