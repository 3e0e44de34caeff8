"""Tuning runs: their tasks, their ledger and their selections."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from codegen_app.accounts import permissions
from codegen_app.admin import columns
from codegen_app.admin.actions import ReleaseMixin, action_reason, current_actor, format_summary
from codegen_app.admin.filters import stage_filter, target_filter
from codegen_app.admin.readonly import ReadOnlyAdmin
from codegen_app.admin.retuning import RetuneMixin
from codegen_app.tuning.models import Candidate, Selection, TuningRun, TuningTask
from codegen_app.tuning.services import ledger, selections
from scheduler.errors import UserError

_GRAPH = ("graph__wrapper", "graph__decisions", "graph__inputs", "graph__outputs")
_KERNEL = ("kernel__source", "kernel__launches", "kernel__args")


@admin.register(TuningRun)
class TuningRunAdmin(RetuneMixin, ReadOnlyAdmin):
    """Runs, which users who may retune can cancel and repeat."""

    retune_by = ("run", "pk")
    list_display = (
        "id",
        columns.text("graph__name", "Graph"),
        columns.state(),
        "device",
        "target",
        columns.pairs("bindings", "Sizes"),
        columns.number("budget_s", "Budget, s"),
        columns.number("priority", "Priority"),
        columns.moment("created_at", "Requested"),
        columns.text("requested_by", "By", 20),
        columns.text("why", "Request reason", 40),
        columns.text("reason", "Reason", 40),
    )
    list_filter = ("state", "device", "strategy")
    list_select_related = ("graph", "requested_by")
    list_defer = _GRAPH
    search_fields = ("graph__name", "why", "requested_by__username")
    search_help_text = "Graph, requester, or words of the reason"
    ordering = ("-pk",)
    actions = ("cancel", "retune")

    @admin.action(description="Cancel selected runs", permissions=["retune"])
    def cancel(self, request: HttpRequest, queryset: QuerySet[Model]) -> None:
        """Cancel selected runs: measurements stay; the rest is dropped."""
        actor, why = current_actor(request), action_reason(request)
        rows = TuningRun.objects.filter(pk__in=queryset.values("pk"))
        count = sum(ledger.cancel(run, actor, why) for run in rows)
        self.message_user(
            request, format_summary(count, "run", "runs", "cancelled"), messages.SUCCESS
        )


@admin.register(TuningTask)
class TuningTaskAdmin(ReleaseMixin, ReadOnlyAdmin):
    """Problems of runs."""

    release_needs = permissions.RETUNE
    list_display = (
        "id",
        columns.number("run_id", "Run"),
        columns.code("problem__summary", "Problem", 48),
        columns.state(),
        columns.number("spent_s", "Device time, s", 1),
        columns.text("worker", "Worker", 30),
        columns.number("attempts", "Attempts"),
        columns.number("deaths", "Worker deaths"),
        columns.text("reason", "Reason"),
    )
    list_filter = ("state", target_filter("run__target"))
    list_select_related = ("problem",)
    list_defer = ("problem__text", "detail", "operands", "shape")
    search_fields = ("=run__pk", "problem__summary", "worker")
    search_help_text = "Run number, words of the problem, or worker"
    ordering = ("-pk",)
    actions = ("release",)


@admin.register(Candidate)
class CandidateAdmin(ReadOnlyAdmin):
    """The ledger."""

    list_display = (
        "id",
        columns.number("task__run_id", "Run"),
        columns.code("kernel__name", "Kernel", 48),
        columns.pairs("config", "Configuration"),
        columns.state(),
        columns.nanoseconds("result__median_ns", "Median, µs"),
        columns.text("stage", "Stage"),
        "chosen",
        "tied",
        columns.text("reason", "Reason"),
    )
    list_filter = ("state", stage_filter(), "chosen", "tied")
    list_select_related = ("task", "kernel", "result")
    list_defer = (
        *(*_KERNEL, "detail", "modelled", "task__operands", "task__shape", "task__detail"),
        *("result__samples_ns", "result__rejected_samples", "result__check_detail"),
    )
    search_fields = ("=task__run__pk", "kernel__name", "reason")
    search_help_text = "Run number, kernel, or words of the reason"
    ordering = ("-pk",)


def _serves(row: Any) -> str:
    return "selected" if row.until is None else "replaced"


@admin.register(Selection)
class SelectionAdmin(RetuneMixin, ReadOnlyAdmin):
    """Kernels that are or were selected for a problem."""

    retune_by = ("selection", "pk")
    list_display = (
        columns.code("problem__summary", "Problem", 48),
        columns.code("kernel__name", "Kernel", 40),
        columns.computed("State", _serves, "serves"),
        "target",
        columns.text("device_name", "Device", 24),
        columns.pairs("bindings", "Sizes"),
        columns.nanoseconds("result__median_ns", "Median when selected, µs"),
        columns.moment("since", "Since"),
        columns.moment("until", "Until"),
        columns.text("reason", "Reason", 40),
    )
    list_filter = (("until", admin.EmptyFieldListFilter), "target")
    list_select_related = ("problem", "kernel", "result")
    list_defer = (*_KERNEL, "problem__text", "result__samples_ns", "result__rejected_samples")
    search_fields = ("problem__summary", "kernel__name", "device_name")
    ordering = ("-pk",)
    actions = ("retune", "put_back")

    @admin.action(description="Restore the selection", permissions=["select"])
    def put_back(self, request: HttpRequest, queryset: QuerySet[Selection]) -> None:
        """Select an earlier kernel until a run finds a better one; the current one stays in the
        history."""
        for row in queryset.select_related("kernel", "problem", "result"):
            try:
                chosen = selections.restore(row, current_actor(request), action_reason(request))
            except UserError as error:
                self.message_user(request, f"{error}.", messages.ERROR)
            else:
                self.message_user(request, f"{chosen.kernel.name} is selected.", messages.SUCCESS)

    def has_select_permission(self, request: HttpRequest) -> bool:
        """Return whether the action is available."""
        return request.user.has_perm(permissions.SELECT)
