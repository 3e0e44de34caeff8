"""Rows of pages: dataclasses that repeat some attributes of a model's row, or of a report."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from django.contrib.auth.models import AbstractBaseUser

Row = TypeVar("Row")


def build_row(row_type: type[Row], source: object, /, **values: Any) -> Row:
    """Return a dataclass with these values; its other fields are the attributes of the same names
    of ``source``."""
    names = [field.name for field in fields(row_type) if field.name not in values]  # type: ignore[arg-type]
    return row_type(**{name: getattr(source, name) for name in names}, **values)


def username(user: AbstractBaseUser | None) -> str:
    """Return a user's name; "" for None, as for a deleted account."""
    return user.get_username() if user is not None else ""
