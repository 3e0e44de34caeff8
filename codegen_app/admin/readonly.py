"""Rows that the application writes: the admin shows them, and can delete what nothing refers to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from codegen_app.services import audit

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Model]
else:
    _ModelAdmin = admin.ModelAdmin  # generic for the type checker alone


class ReadOnlyAdmin(_ModelAdmin):
    """Shows every field and changes none."""

    def has_add_permission(self, *_: Any, **__: Any) -> bool:
        """Rows come from the services alone."""
        return False

    def has_change_permission(self, *_: Any, **__: Any) -> bool:
        """A record that could be edited would be none."""
        return False

    @transaction.atomic
    def delete_model(self, _: HttpRequest, obj: Model) -> None:
        """Noted, as every change."""
        audit.record(audit.asking(), "delete", obj)
        obj.delete()

    @transaction.atomic
    def delete_queryset(self, _: HttpRequest, queryset: QuerySet[Model]) -> None:
        """Each row is noted."""
        for row in queryset:
            audit.record(audit.asking(), "delete", row)
        queryset.delete()
