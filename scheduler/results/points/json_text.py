"""Reads JSON as programs write it: accepts non-finite numbers, and reports text around it."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from scheduler.errors import UserError
from scheduler.results.points import fields
from scheduler.text import shorten

_MAX_SHOWN_CHARS = 80  # characters of a line
#: Strings; and how C and C++ libraries print non-finite numbers where a value is expected:
#: ``-nan``, ``inf``, Microsoft's ``nan(ind)`` and ``1.#INF``. A string that does not end also
#: counts, up to the text's end, so that nothing is matched inside it.
_STRING = r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)'
_NOT_FINITE = r"(?<=[\s:,\[])([-+]?)(nan(?:\(\w*\))?|inf(?:inity)?|1\.#[a-z]+\d*)(?=[\s,}\]])"
_TOKEN = re.compile(f"{_STRING}|{_NOT_FINITE}", re.IGNORECASE | re.DOTALL)


def read(text: str) -> Any:
    """Return the document; objects with duplicate names are ``fields.DuplicateKeys``. Raises
    ``UserError``."""

    def as_json(match: re.Match[str]) -> str:
        sign, token = match[1], match[2]
        if token is None:  # a string
            return match[0]
        is_infinite = "inf" in token.lower()
        return ("-" if sign == "-" else "") + "Infinity" if is_infinite else "NaN"

    try:
        return _parse(text)
    except (ValueError, RecursionError) as error:
        try:
            return _parse(_TOKEN.sub(as_json, text))
        except (ValueError, RecursionError):
            raise UserError(_surrounding_text_error(text, error)) from None


def _parse(text: str) -> Any:
    return json.loads(text, object_pairs_hook=fields.object_from_pairs)


def _surrounding_text_error(text: str, error: Exception) -> str:
    """Return what a program wrote around its document, if that makes it invalid."""
    begin = re.search(r"^[ \t]*\{", text, re.MULTILINE)
    text_before = text[: begin.start()].strip() if begin is not None else ""
    has_document = False
    if begin is not None and text_before:
        with suppress(ValueError, RecursionError):
            json.JSONDecoder().raw_decode(text, begin.end() - 1)
            has_document = True
    if begin is not None and has_document:
        number = text.count("\n", 0, begin.end()) + 1
        line = shorten(text_before.splitlines()[0], _MAX_SHOWN_CHARS)
        return f"line 1: text before the JSON, which begins on line {number}: {line!r}"
    if not text_before and isinstance(error, json.JSONDecodeError) and error.msg == "Extra data":
        line = shorten(text[error.pos :].partition("\n")[0], _MAX_SHOWN_CHARS)
        return f"line {error.lineno}: text after the JSON: {line!r}"
    return f"invalid JSON: {error}"
