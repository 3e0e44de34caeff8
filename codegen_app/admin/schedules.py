"""Scheduled runs: whoever has the permission says when runs begin by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.contrib import admin
from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest

from codegen_app.access import permissions
from codegen_app.models import RetuneSchedule
from codegen_app.services import audit
from codegen_app.services.engine import served_names
from scheduler.tuning.strategies.registry import DEFAULT_STRATEGY, STRATEGIES

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[RetuneSchedule]
    _ModelForm = forms.ModelForm[RetuneSchedule]
else:
    _ModelAdmin = admin.ModelAdmin
    _ModelForm = forms.ModelForm


class ScheduleForm(_ModelForm):
    """Refuses what could never run."""

    target = forms.ChoiceField(choices=lambda: [(name, name) for name in served_names()])
    strategy = forms.ChoiceField(
        choices=lambda: [(name, f"{name}: {row.summary}") for name, row in STRATEGIES.items()],
        initial=DEFAULT_STRATEGY,
    )

    def clean(self) -> dict[str, Any]:
        """A scheduled run without an end would hold its device for ever."""
        cleaned = super().clean() or {}
        limits = ("budget_s", "max_compiles", "max_measurements")
        given = [limit for limit in map(cleaned.get, limits) if limit is not None]
        if not given or min(given) <= 0:
            raise forms.ValidationError("Give a limit: seconds, compiles or measurements.")
        return cleaned


@admin.register(RetuneSchedule)
class RetuneScheduleAdmin(_ModelAdmin):
    """When runs are asked for without anybody asking."""

    form = ScheduleForm
    list_display = (
        "occasion",
        "graph",
        "target",
        "device",
        "budget_s",
        "hour",
        "enabled",
        "last_at",
    )
    list_filter = ("occasion", "enabled")
    list_select_related = ("graph",)

    def has_view_permission(self, request: HttpRequest, _: object = None) -> bool:
        """Of those who may schedule."""
        return request.user.has_perm(permissions.SCHEDULE)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Of those who may schedule."""
        return request.user.has_perm(permissions.SCHEDULE)

    def has_change_permission(self, request: HttpRequest, _: object = None) -> bool:
        """Of those who may schedule."""
        return request.user.has_perm(permissions.SCHEDULE)

    def has_delete_permission(self, request: HttpRequest, _: object = None) -> bool:
        """Of those who may schedule."""
        return request.user.has_perm(permissions.SCHEDULE)

    def save_model(
        self, request: HttpRequest, obj: RetuneSchedule, form: Any, change: bool
    ) -> None:
        """Its runs are asked for in the name of who made it."""
        actor = cast(AbstractBaseUser, request.user)
        obj.made_by_id = obj.made_by_id or audit.actor_id(actor)
        super().save_model(request, obj, form, change)
        audit.record(actor, "schedule", obj)

    def delete_model(self, request: HttpRequest, obj: RetuneSchedule) -> None:
        """Noted as every other change of what runs."""
        audit.record(cast(AbstractBaseUser, request.user), "unschedule", obj)
        super().delete_model(request, obj)
