"""Filters of the admin's lists with known choices: tables of millions are not read for a column's
values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from codegen_app.platform.served_targets import served_target_names
from scheduler.errors import Stage

if TYPE_CHECKING:
    _Filter = admin.SimpleListFilter
else:
    _Filter = admin.SimpleListFilter


def fixed_choices_filter(
    field: str, name: str, values: Callable[[], Iterable[str]]
) -> type[_Filter]:
    """Return a filter by a column whose values are known without a query."""

    class Known(_Filter):
        title = name
        parameter_name = field

        def lookups(self, _: HttpRequest, __: Any) -> list[tuple[str, str]]:
            """Return each value with its own name."""
            return [(value, value) for value in values()]

        def queryset(self, _: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
            """Return the rows with the chosen value."""
            chosen = self.value()
            return rows.filter(**{field: chosen}) if chosen else rows

    return Known


def target_filter(field: str = "target") -> type[_Filter]:
    """Return a filter by the targets that kernels are generated for here."""
    return fixed_choices_filter(field, "target", served_target_names)


def stage_filter() -> type[_Filter]:
    """Return a filter by the stage of a rejection."""
    return fixed_choices_filter("stage", "stage", lambda: [str(stage) for stage in Stage])
