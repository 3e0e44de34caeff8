"""Retention policies: what is deleted by age, and the progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin
from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from codegen_app.accounts import audit
from codegen_app.tracking.models import RetentionPolicy
from codegen_app.tracking.services import rollup

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[RetentionPolicy]
else:
    _ModelAdmin = admin.ModelAdmin


@admin.register(RetentionPolicy)
class RetentionPolicyAdmin(_ModelAdmin):
    """Which raw samples and which points roll up, and which deliveries and points of branches are
    deleted. Disabling a policy ends its running pass at the next step; deleted data stay deleted.
    """

    list_display = (
        *("name", "what", "source", "days", "active", "begun_at", "last_rows", "last_at"),
    )
    list_filter = ("active",)
    fields = ("name", "what", "source", "days", "active")
    readonly_fields = ("would_go", "begun_at", "last_rows", "last_at", "total_rows")

    def get_fields(self, _: HttpRequest, obj: RetentionPolicy | None = None) -> tuple[str, ...]:
        """Return the fields; a new policy has no progress."""
        return (*self.fields, *self.readonly_fields) if obj else self.fields

    @admin.display(description="Next pass affects")
    def would_go(self, policy: RetentionPolicy) -> str:
        """Return what would be deleted, shown before it is enabled: deletion is final."""
        count = rollup.count_due(policy, rollup.MAX_COUNTED)
        text = rollup.format_due(policy, min(count, rollup.MAX_COUNTED))
        return f"more than {text}" if count > rollup.MAX_COUNTED else text

    def save_model(
        self, request: HttpRequest, obj: RetentionPolicy, form: Any, change: bool
    ) -> None:
        """Save and record it: who has data deleted, and since when."""
        actor = cast(AbstractBaseUser, request.user)
        obj.created_by_id = obj.created_by_id or audit.actor_id(actor)
        super().save_model(request, obj, form, change)
        why = f"{obj.get_what_display()}: {obj.days} days"
        why += f" of {obj.get_source_display()}" if obj.source else ""
        audit.record(actor, "let go with age" if obj.active else "keep", obj, why)

    def delete_model(self, request: HttpRequest, obj: RetentionPolicy) -> None:
        """Delete and record it, as every other change."""
        audit.record(cast(AbstractBaseUser, request.user), "keep", obj, "policy deleted")
        super().delete_model(request, obj)

    @transaction.atomic
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[RetentionPolicy]) -> None:
        """Delete the rows and record each."""
        for row in queryset:
            self.delete_model(request, row)
