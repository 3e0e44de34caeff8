"""Scheduled runs: users with the permission decide when runs begin automatically."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from codegen_app.accounts import audit, permissions
from codegen_app.admin import columns
from codegen_app.admin.actions import action_reason, current_actor, format_summary
from codegen_app.admin.readonly import ReasonForm
from codegen_app.tuning.models import Occasion, RetuneSchedule
from codegen_app.tuning.services import schedules
from codegen_app.tuning.services.run_devices import RunDevice, list_run_devices
from scheduler.tuning.strategies.registry import DEFAULT_STRATEGY, STRATEGIES

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[RetuneSchedule]
    _ModelForm = forms.ModelForm[RetuneSchedule]
else:
    _ModelAdmin = admin.ModelAdmin
    _ModelForm = forms.ModelForm

_LIMITS = ("budget_s", "max_compiles", "max_measurements")


class ScheduleForm(_ModelForm):
    """Target and device are chosen together, among the existing ones; what could never run is
    refused."""

    on = forms.ChoiceField(label="Target and device")
    strategy = forms.ChoiceField(
        label="Search strategy",
        choices=lambda: [(name, f"{name}: {row.summary}") for name, row in STRATEGIES.items()],
        initial=DEFAULT_STRATEGY,
    )

    class Meta:
        labels = {
            "graph": "Model",
            "hour": "Hour, UTC",
            "budget_s": "Time per run, s",
            "max_compiles": "Maximum compiles per run",
            "max_measurements": "Maximum measurements per run",
        }
        help_texts = {
            "graph": "Empty: all models that are prepared at that time.",
            "hour": "0 to 23; for nightly schedules.",
            "budget_s": "Working time on its problems. At least one limit is required.",
            "priority": "Higher runs first; manual requests default to 0.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "on" not in self.fields:  # a user who may only look has no fields
            return
        devices = list(list_run_devices())
        row = self.instance
        if row.pk is not None:
            current = RunDevice(row.target, row.device, "of this schedule", alive=False)
            devices += [] if any(device.key == current.key for device in devices) else [current]
            self.initial["on"] = current.key
        elif devices:
            self.initial["on"] = devices[0].key
        field = self.fields["on"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(device.key, device.title) for device in devices]

    def clean(self) -> dict[str, Any]:
        """Validate it: a scheduled run without an end would hold its device for ever; one of a
        single graph cannot wait for the import of others."""
        cleaned = super().clean() or {}
        limits = [limit for limit in map(cleaned.get, _LIMITS) if limit is not None]
        if not limits or min(limits) <= 0:
            raise forms.ValidationError("Enter a limit: seconds, compiles or measurements.")
        if cleaned.get("occasion") == Occasion.IMPORT and cleaned.get("graph") is not None:
            self.add_error("graph", "Leave it empty: it tunes the imported model.")
        target, _, device = str(cleaned.get("on", "")).partition(" ")
        self.instance.target, self.instance.device = target, device
        return cleaned


def _hour(row: RetuneSchedule) -> str:
    return str(row.hour) if row.occasion == Occasion.NIGHTLY else ""


@admin.register(RetuneSchedule)
class RetuneScheduleAdmin(_ModelAdmin):
    """When runs are requested automatically."""

    form = ScheduleForm
    action_form = ReasonForm
    autocomplete_fields = ("graph",)
    fieldsets = (
        (None, {"fields": ("occasion", "hour", "graph", "on", "enabled")}),
        ("Limits per run", {"fields": (*_LIMITS, "strategy", "priority")}),
    )
    list_display = (
        "occasion",
        columns.computed("Hour, UTC", _hour, "hour", number=True),
        columns.computed("Model", lambda row: str(row.graph or "all"), "graph"),
        "target",
        "device",
        columns.number("budget_s", "Time per run, s"),
        "strategy",
        "enabled",
        columns.moment("last_at", "Last run"),
    )
    list_filter = ("occasion", "enabled")
    list_select_related = ("graph",)
    search_fields = ("graph__name", "target")
    actions = ("start_now", "switch_on", "switch_off")

    def get_queryset(self, request: HttpRequest) -> QuerySet[RetuneSchedule]:
        """Return the schedules without their graphs' long fields."""
        return super().get_queryset(request).defer("graph__wrapper", "graph__decisions")

    def get_changeform_initial_data(self, _: HttpRequest) -> dict[str, str | list[str]]:
        """Return the initial values: a new schedule runs every night."""
        return {"occasion": Occasion.NIGHTLY}

    @admin.action(description="Start runs now", permissions=["change"])
    def start_now(self, request: HttpRequest, queryset: QuerySet[RetuneSchedule]) -> None:
        """Start the runs now, besides their occasion."""
        actor, why = current_actor(request), action_reason(request)
        runs = [run for row in queryset for run in schedules.start_now(row, actor, why)]
        level = messages.SUCCESS if runs else messages.WARNING
        self.message_user(request, format_summary(len(runs), "run", "runs", "requested"), level)

    @admin.action(description="Switch on", permissions=["change"])
    def switch_on(self, request: HttpRequest, queryset: QuerySet[RetuneSchedule]) -> None:
        """Enable the schedules."""
        self._switch(request, queryset, on=True)

    @admin.action(description="Switch off", permissions=["change"])
    def switch_off(self, request: HttpRequest, queryset: QuerySet[RetuneSchedule]) -> None:
        """Disable the schedules; current runs continue."""
        self._switch(request, queryset, on=False)

    def _switch(
        self, request: HttpRequest, queryset: QuerySet[RetuneSchedule], *, on: bool
    ) -> None:
        actor, why = current_actor(request), action_reason(request)
        count = sum(schedules.set_enabled(row, actor, on=on, why=why) for row in queryset)
        action = "switched on" if on else "switched off"
        self.message_user(
            request, format_summary(count, "schedule", "schedules", action), messages.SUCCESS
        )

    def has_view_permission(self, request: HttpRequest, _: object = None) -> bool:
        """Allow it to those who may schedule."""
        return request.user.has_perm(permissions.SCHEDULE)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Allow it to those who may schedule."""
        return request.user.has_perm(permissions.SCHEDULE)

    def has_change_permission(self, request: HttpRequest, _: object = None) -> bool:
        """Allow it to those who may schedule."""
        return request.user.has_perm(permissions.SCHEDULE)

    def has_delete_permission(self, request: HttpRequest, _: object = None) -> bool:
        """Allow it to those who may schedule."""
        return request.user.has_perm(permissions.SCHEDULE)

    def save_model(
        self, request: HttpRequest, obj: RetuneSchedule, form: Any, change: bool
    ) -> None:
        """Save it; its runs are requested in its creator's name."""
        actor = current_actor(request)
        obj.made_by_id = obj.made_by_id or audit.actor_id(actor)
        super().save_model(request, obj, form, change)
        audit.record(actor, "schedule", obj)

    def delete_model(self, request: HttpRequest, obj: RetuneSchedule) -> None:
        """Delete and record it, as every other change of runs."""
        audit.record(current_actor(request), "unschedule", obj)
        super().delete_model(request, obj)

    @transaction.atomic
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[RetuneSchedule]) -> None:
        """Delete the rows and record each."""
        for row in queryset:
            self.delete_model(request, row)
