"""Text of files before it is stored: what PostgreSQL cannot store, and the length of a column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from scheduler.errors import UserError
from scheduler.text import one_line, shorten

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # NUL, and halves of surrogate pairs


def storable_json(value: Any) -> Any:
    """Return JSON data with storable texts: NUL and lone surrogates are escaped as in Python."""
    if isinstance(value, str):
        return _UNSTORABLE.sub(_escape, value)
    if isinstance(value, Mapping):
        return {storable_json(key): storable_json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [storable_json(part) for part in value]
    return value


def storable_text(text: str, max_length: int) -> str:
    """Return a text for display, shortened to a column of that length."""
    return shorten(_UNSTORABLE.sub(_escape, text), max_length)


def check_names(what: str, names: Iterable[str], max_length: int) -> None:
    """Raise ``UserError`` for names that cannot be stored unchanged: two shortened names could be
    equal."""
    for name in names:
        if len(name) > max_length:
            raise UserError(
                f"{what}: a name of more than {max_length} characters ({one_line(name, 40)})"
            )
        if _UNSTORABLE.search(name):
            raise UserError(f"{what}: a name with a NUL or half a character ({one_line(name, 40)})")


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
