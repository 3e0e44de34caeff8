"""Models, their kernels and builds: what the application recorded."""

from __future__ import annotations

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from codegen_app.accounts import audit, permissions
from codegen_app.admin import columns
from codegen_app.admin.actions import CancelMixin, ReleaseMixin, current_actor, format_summary
from codegen_app.admin.filters import target_filter
from codegen_app.admin.readonly import ReadOnlyAdmin
from codegen_app.admin.retuning import RetuneMixin
from codegen_app.graphs.models import Graph, Problem, TemplateNode, TorchComparison
from codegen_app.graphs.pages.graph.torch_comparison import comparison_view
from codegen_app.kernels.models import Build, GeneratedKernel
from codegen_app.kernels.services import builds
from codegen_app.tuning.services import graph_deletion
from scheduler.build.flags import Flags
from scheduler.errors import UserError


@admin.register(Graph)
class GraphAdmin(ReleaseMixin, RetuneMixin, ReadOnlyAdmin):
    """Imported graphs."""

    is_deletable = True
    release_needs = permissions.IMPORT
    list_display = (
        "name",
        columns.state(),
        columns.number("node_count", "Nodes"),
        columns.text("producer", "Exported by"),
        columns.moment("created_at", "Imported"),
        columns.text("reason", "Reason"),
    )
    list_filter = ("state",)
    list_defer = ("wrapper", "decisions", "inputs", "outputs", "symbols")
    search_fields = ("name", "digest")
    search_help_text = "Name, or beginning of the file digest"
    ordering = ("-pk",)
    actions = ("retune", "release")

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return True also for those who schedule: a schedule names a graph."""
        may_schedule = request.user.has_perm(permissions.SCHEDULE)
        return may_schedule or super().has_view_permission(request, obj)

    @transaction.atomic
    def delete_model(self, _: HttpRequest, obj: Model) -> None:
        """Delete the graph and stop its work."""
        assert isinstance(obj, Graph)
        audit.record(audit.current_user(), "delete", obj)
        graph_deletion.delete(obj)


@admin.register(TemplateNode)
class TemplateNodeAdmin(RetuneMixin, ReadOnlyAdmin):
    """Scheduled nodes."""

    retune_by = ("node", "pk")
    list_display = (
        "name",
        columns.text("graph__name", "Graph"),
        "kind",
        columns.text("op", "Op", 40),
        columns.number("offered", "Candidates"),
        columns.number("position", "Position"),
    )
    list_filter = ("kind",)
    list_select_related = ("graph",)
    list_defer = ("rejected", "graph__wrapper", "graph__decisions", "group", "reads", "writes")
    search_fields = ("name", "op", "graph__name")
    search_help_text = "Node, op or graph"
    ordering = ("-pk",)


@admin.register(Problem)
class ProblemAdmin(ReadOnlyAdmin):
    """What kernels have to compute."""

    list_display = (
        "op",
        columns.code("summary", "Problem", 80),
        "kind",
        columns.code("digest", "Digest", 13),
    )
    list_filter = ("kind",)
    list_defer = ("text",)
    search_fields = ("op", "summary", "digest")
    ordering = ("-pk",)


@admin.register(GeneratedKernel)
class GeneratedKernelAdmin(RetuneMixin, ReadOnlyAdmin):
    """Rendered kernels."""

    retune_by = ("kernel", "name")
    list_display = (
        columns.code("name", "Kernel"),
        "template",
        columns.pairs("config", "Configuration"),
        columns.moment("created_at", "Rendered"),
    )
    list_filter = ("template",)
    list_defer = ("source", "launches", "args")
    search_fields = ("name", "source_digest")
    ordering = ("-pk",)


@admin.register(Build)
class BuildAdmin(ReleaseMixin, ReadOnlyAdmin):
    """Builds and their results."""

    list_display = (
        columns.code("kernel__name", "Kernel", 48),
        "target",
        columns.state(),
        columns.text("toolchain", "Compiler"),
        columns.number("duration_s", "Compile time, s", 1),
        columns.number("attempts", "Attempts"),
        columns.moment("finished_at", "Ended"),
        columns.text("reason", "Reason"),
    )
    list_filter = ("state", target_filter(), "requested", "cached")
    list_select_related = ("kernel",)
    list_defer = ("kernel__source", "kernel__launches", "log", "detail", "resources", "diagnostics")
    search_fields = ("kernel__name", "code_digest")
    ordering = ("-pk",)
    actions = ("build_again", "release")

    @admin.action(description="Rebuild failed builds", permissions=["release"])
    def build_again(self, request: HttpRequest, queryset: QuerySet[Build]) -> None:
        """Build again with the current compiler; builds that are open, or done with all files,
        stay."""
        count = 0
        for build in queryset.select_related("kernel"):
            try:
                flags = Flags(tuple(build.flags))
                builds.request_build(build.kernel, build.target, flags, current_actor(request))
            except UserError as error:
                self.message_user(request, f"{build.kernel}: {error}", messages.ERROR)
                continue
            count += 1
        self.message_user(
            request, format_summary(count, "build", "builds", "requested"), messages.SUCCESS
        )


@admin.register(TorchComparison)
class TorchComparisonAdmin(ReleaseMixin, CancelMixin, ReadOnlyAdmin):
    """Graphs that workers compare with torch."""

    list_display = (
        columns.text("graph__name", "Graph"),
        columns.state(),
        columns.computed("Outcome", lambda row: comparison_view(row).outcome, "outcome"),
        columns.text("oracle", "Compared with"),
        columns.pairs("bindings", "Sizes"),
        columns.moment("finished_at", "Compared"),
        columns.text("reason", "Reason"),
    )
    list_filter = ("state", "oracle")
    list_select_related = ("graph",)
    list_defer = ("graph__wrapper", "graph__decisions", "detail")
    search_fields = ("graph__name",)
    ordering = ("-pk",)
    actions = ("cancel", "release")
