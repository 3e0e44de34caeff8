"""Which points a policy may delete, and their deletion without loading them."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from django.db import connection
from django.db.models import (
    CASCADE,
    PROTECT,
    RESTRICT,
    SET_NULL,
    Exists,
    Model,
    OuterRef,
    QuerySet,
)
from django.db.models.fields.reverse_related import ForeignObjectRel

from codegen_app.tracking.models import Datum


def deletable(*, is_trunk: bool) -> QuerySet[Datum]:
    """Return the points of the trunk, or those of branches, that no row needs."""
    needed = _exist(PROTECT, RESTRICT)
    return Datum.objects.filter(*(~exists for exists in needed), is_trunk=is_trunk)


def deletable_alone(*, is_trunk: bool) -> QuerySet[Datum]:
    """Return those of them that nothing belongs to either: no withdrawal, note or summary."""
    return deletable(is_trunk=is_trunk).filter(*(~exists for exists in _exist(CASCADE)))


def delete(points: list[int]) -> None:
    """Delete points by their keys with what belongs to them (withdrawals, notes), in the caller's
    transaction."""
    for rows, name in _references(CASCADE):
        rows.filter(**{f"{name}__in": points}).delete()
    for rows, name in _references(SET_NULL):
        rows.filter(**{f"{name}__in": points}).update(**{name: None})
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM codegen_app_datum WHERE id = ANY(%s)", [points])


def _exist(*kinds: Callable[..., None]) -> list[Exists]:
    return [Exists(rows.filter(**{name: OuterRef("pk")})) for rows, name in _references(*kinds)]


def _references(*kinds: Callable[..., None]) -> list[tuple[QuerySet[Model], str]]:
    """Return the rows that refer to points, with the name of their reference, for these kinds of
    ``on_delete``."""
    fields = Datum._meta.get_fields(include_hidden=True)
    return [
        (cast("type[Model]", row.related_model)._base_manager.all(), row.field.name)
        for row in fields
        if isinstance(row, ForeignObjectRel) and row.on_delete in kinds
    ]
