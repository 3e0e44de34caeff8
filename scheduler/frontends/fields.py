"""Typed access to parsed JSON of untrusted shape. Each error names the part."""

from __future__ import annotations

from typing import Any

from scheduler.errors import UserError
from scheduler.limits import MAX_NAME

Json = dict[str, Any]


def field(data: Any, label: str, kind: Any, where: str) -> Any:
    """``data[label]``, which must exist and be of that kind (a bool is not an int)."""
    if not isinstance(data, dict) or label not in data:
        raise UserError(f"{where}: {label!r} is missing")
    value = data[label]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise UserError(f"{where}: {label!r} has the wrong type: {quote_value(value)}")
    return value


def optional_field(data: Json, label: str, kind: Any, where: str) -> Any:
    """``data[label]``, or None where it is missing or null."""
    return None if data.get(label) is None else field(data, label, kind, where)


def value_name(data: Any, where: str, label: str = "name") -> str:
    """A value's name: non-empty text."""
    name: str = field(data, label, str, where)
    if not 0 < len(name) <= MAX_NAME:
        raise UserError(f"{where}: {label!r} is empty or too long: {quote_value(name)}")
    return name


def read_union(data: Any, where: str) -> tuple[str, Any]:
    """The tag and content of one of torch's unions: an object with one key."""
    if not isinstance(data, dict) or len(data) != 1:
        raise UserError(f"{where}: not a tagged value: {quote_value(data)}")
    ((tag, content),) = data.items()
    return tag, content


def quote_value(value: Any) -> str:
    """A value shortened for an error message."""
    if isinstance(value, dict | list) and len(value) > 8:
        return f"{type(value).__name__} of {len(value)}"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
