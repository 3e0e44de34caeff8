"""Columns of the admin's lists: short, numbers to the right, the unit in the heading."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, TypeAlias

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString

from codegen_app.web.templatetags import kiln

Shown: TypeAlias = Callable[[Any], SafeString | str]
_WIDE = 60  # characters of a text in a list
_NUMBER = "_num"  # ends the names of columns that the style sheet aligns to the right


def text(field: str, title: str, max_length: int = _WIDE) -> Shown:
    """Return a text column, cut to ``max_length`` characters; the tooltip has the whole text."""

    def shown(row: Any) -> SafeString | str:
        whole = str(_value(row, field) or "")
        if len(whole) <= max_length:
            return whole
        return format_html('<span title="{}">{}…</span>', whole, whole[: max_length - 1])

    return _column(shown, field, title)


def code(field: str, title: str, max_length: int = _WIDE) -> Shown:
    """Return a column of names or digests, in the font of code."""
    inner = text(field, title, max_length)

    def shown(row: Any) -> SafeString:
        return format_html("<code>{}</code>", inner(row))

    return _column(shown, field, title)


def state(title: str = "State") -> Shown:
    """Return a column of states with their glyphs."""

    def shown(row: Any) -> SafeString:
        return kiln.status(str(row.state))

    return _column(shown, "state", title)


def moment(field: str, title: str) -> Shown:
    """Return a column of times ago; the tooltip has the time itself."""

    def shown(row: Any) -> SafeString:
        return kiln.ago(_value(row, field))

    return _column(shown, field, title)


def number(field: str, title: str, digits: int = 0) -> Shown:
    """Return a number column with separated thousands; ``title`` ends with its unit."""

    def shown(row: Any) -> str:
        value = _value(row, field)
        return "" if value is None else kiln.grouped(value, digits)

    return _column(shown, field, title, _NUMBER)


def nanoseconds(field: str, title: str) -> Shown:
    """Return a column of nanoseconds, shown as microseconds."""

    def shown(row: Any) -> str:
        return kiln.us(_value(row, field))

    return _column(shown, field, title, _NUMBER)


def microseconds(field: str, title: str) -> Shown:
    """Return a column of microseconds, with about four digits."""

    def shown(row: Any) -> str:
        return kiln.microseconds(_value(row, field))

    return _column(shown, field, title, _NUMBER)


def computed(title: str, value: Callable[[Any], str], name: str, number: bool = False) -> Shown:
    """Return a column computed by a function of the row; it cannot be sorted."""

    def shown(row: Any) -> str:
        return value(row)

    shown.__name__ = name + (_NUMBER if number else "")
    return admin.display(description=title)(shown)


def pairs(field: str, title: str) -> Shown:
    """Return a column with ``name=value`` pairs of a mapping."""
    return computed(title, lambda row: kiln.pairs(_value(row, field)), field)


def _value(row: Any, field: str) -> Any:
    def of(value: Any, name: str) -> Any:
        return None if value is None else getattr(value, name)

    return reduce(of, field.split("__"), row)


def _column(shown: Any, field: str, title: str, kind: str = "") -> Shown:
    shown.__name__ = field + kind
    column: Shown = admin.display(description=title, ordering=field)(shown)
    return column
