"""Columns of the admin's lists: short, numbers to the right, the unit in the heading."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, TypeAlias

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString

from codegen_app.web.templatetags import kiln

Cell: TypeAlias = SafeString | str
Display: TypeAlias = Callable[[Any], Cell]
_WIDE = 60  # characters of a text in a list
_NUMBER = "_num"  # ends the names of columns that the style sheet aligns to the right


def text(field: str, title: str, max_length: int = _WIDE) -> Display:
    """Return a text column, cut to ``max_length`` characters; the tooltip has the whole text."""
    return _column(partial(_shorten, max_length=max_length), field, title)


def code(field: str, title: str, max_length: int = _WIDE) -> Display:
    """Return a column of names or digests, in the font of code."""

    def render(value: Any) -> SafeString:
        return format_html("<code>{}</code>", _shorten(value, max_length))

    return _column(render, field, title)


def _shorten(value: Any, max_length: int) -> Cell:
    whole = str(value or "")
    if len(whole) <= max_length:
        return whole
    return format_html('<span title="{}">{}…</span>', whole, whole[: max_length - 1])


def state(title: str = "State") -> Display:
    """Return a column of states with their glyphs."""
    return _column(kiln.status, "state", title)


def moment(field: str, title: str) -> Display:
    """Return a column of times ago; the tooltip has the time itself."""
    return _column(kiln.ago, field, title)


def number(field: str, title: str, digits: int = 0) -> Display:
    """Return a number column with separated thousands; ``title`` ends with its unit."""
    return _column(partial(kiln.fixed, digits=digits), field, title, _NUMBER)


def nanoseconds(field: str, title: str) -> Display:
    """Return a column of nanoseconds, shown as microseconds."""
    return _column(kiln.us, field, title, _NUMBER)


def microseconds(field: str, title: str) -> Display:
    """Return a column of microseconds, with about four digits."""
    return _column(kiln.microseconds, field, title, _NUMBER)


def computed(title: str, value: Callable[[Any], str], name: str, number: bool = False) -> Display:
    """Return a column computed by a function of the row; it cannot be sorted."""

    def display(row: Any) -> str:
        return value(row)

    display.__name__ = name + (_NUMBER if number else "")
    return admin.display(description=title)(display)


def pairs(field: str, title: str) -> Display:
    """Return a column with ``name=value`` pairs of a mapping."""
    return computed(title, lambda row: kiln.pairs(_value(row, field)), field)


def _value(row: Any, field: str) -> Any:
    def attribute(value: Any, name: str) -> Any:
        return None if value is None else getattr(value, name)

    return reduce(attribute, field.split("__"), row)


def _column(render: Callable[[Any], Cell], field: str, title: str, suffix: str = "") -> Display:
    """Return a column that renders the field's value, sorted by the field."""

    def display(row: Any) -> Cell:
        return render(_value(row, field))

    display.__name__ = field + suffix
    return admin.display(description=title, ordering=field)(display)
