"""Tuning runs: their ledger, and cancelling them."""

from __future__ import annotations

from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from codegen_app.admin.readonly import ReadOnlyAdmin
from codegen_app.admin.retuning import RetuneMixin
from codegen_app.models import Candidate, TuningRun, TuningTask
from codegen_app.services import ledger


@admin.register(TuningRun)
class TuningRunAdmin(RetuneMixin, ReadOnlyAdmin):
    """Runs, which those who may retune can cancel and ask for again."""

    retune_by = ("run", "pk")
    list_display = ("id", "graph", "device", "state", "created_at", "requested_by", "why")
    list_filter = ("state", "device")
    list_select_related = ("graph", "requested_by")
    actions = ("cancel", "retune")

    @admin.action(description="Cancel the selected runs", permissions=["retune"])
    def cancel(self, request: HttpRequest, queryset: QuerySet[Model]) -> None:
        """What was measured stays; the rest is dropped."""
        user = request.user if request.user.is_authenticated else None
        cancelled = sum(
            ledger.cancel(run, user, "from the admin")
            for run in TuningRun.objects.filter(pk__in=queryset.values("pk"))
        )
        self.message_user(request, f"{cancelled} runs were cancelled", messages.SUCCESS)


@admin.register(TuningTask)
class TuningTaskAdmin(ReadOnlyAdmin):
    """Problems of runs."""

    list_display = ("id", "run", "problem", "state", "worker", "attempts", "deaths", "reason")
    list_filter = ("state",)
    list_select_related = ("run", "problem")


@admin.register(Candidate)
class CandidateAdmin(ReadOnlyAdmin):
    """The ledger."""

    list_display = ("id", "task", "kernel", "state", "stage", "reason", "chosen")
    list_filter = ("state", "stage", "chosen")
    list_select_related = ("task", "kernel")
