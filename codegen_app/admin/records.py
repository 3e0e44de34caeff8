"""What the application recorded."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from codegen_app.admin.readonly import ReadOnlyAdmin
from codegen_app.admin.retuning import RetuneMixin
from codegen_app.models import (
    Artifact,
    AuditEntry,
    BenchmarkResult,
    Build,
    Environment,
    ForeignKernel,
    GeneratedKernel,
    Graph,
    Modelling,
    Packing,
    Problem,
    Selection,
    TemplateNode,
    Worker,
)
from codegen_app.services import audit, graphs


@admin.register(Graph)
class GraphAdmin(RetuneMixin, ReadOnlyAdmin):
    """Imported graphs."""

    list_display = ("name", "state", "node_count", "created_at", "reason")
    list_filter = ("state",)
    search_fields = ("name", "digest")

    @transaction.atomic
    def delete_model(self, _: HttpRequest, obj: Model) -> None:
        """What is done for the graph ends with it."""
        assert isinstance(obj, Graph)
        audit.record(audit.asking(), "delete", obj)
        graphs.delete(obj)

    @transaction.atomic
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Model]) -> None:
        """Each with what is done for it."""
        for graph in queryset:
            self.delete_model(request, graph)


@admin.register(TemplateNode)
class TemplateNodeAdmin(RetuneMixin, ReadOnlyAdmin):
    """Scheduled nodes."""

    retune_by = ("node", "pk")
    list_display = ("name", "graph", "kind", "op", "position")
    list_filter = ("kind", "graph")
    list_select_related = ("graph",)
    search_fields = ("name", "op")


@admin.register(Problem)
class ProblemAdmin(ReadOnlyAdmin):
    """What kernels have to solve."""

    list_display = ("op", "summary", "kind", "digest")
    list_filter = ("kind",)
    search_fields = ("op", "summary", "digest")


@admin.register(GeneratedKernel)
class GeneratedKernelAdmin(RetuneMixin, ReadOnlyAdmin):
    """Rendered kernels."""

    retune_by = ("kernel", "name")
    list_display = ("name", "template", "created_at")
    list_filter = ("template",)
    search_fields = ("name", "source_digest")


@admin.register(Build)
class BuildAdmin(ReadOnlyAdmin):
    """Builds and what became of them."""

    list_display = ("kernel", "target", "state", "toolchain", "duration_s", "reason")
    list_filter = ("state", "target", "toolchain")
    list_select_related = ("kernel",)
    search_fields = ("kernel__name", "code_digest")


@admin.register(BenchmarkResult)
class BenchmarkResultAdmin(ReadOnlyAdmin):
    """Measurements."""

    list_display = ("kernel", "environment", "median_ns", "low_ns", "high_ns", "emulated")
    list_filter = ("emulated", "environment__target")
    list_select_related = ("kernel", "environment")
    search_fields = ("kernel__name",)


@admin.register(Environment)
class EnvironmentAdmin(ReadOnlyAdmin):
    """On what was measured."""

    list_display = ("device_name", "device", "target", "driver", "compiler", "emulated")


@admin.register(Selection)
class SelectionAdmin(RetuneMixin, ReadOnlyAdmin):
    """Which kernel serves a problem, and served."""

    retune_by = ("selection", "pk")
    list_display = ("problem", "target", "device_name", "kernel", "since", "until", "reason")
    list_filter = ("target",)
    list_select_related = ("problem", "kernel")


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    """Worker processes."""

    list_display = ("name", "host", "pid", "seen_at", "stopped_at")


@admin.register(Packing)
class PackingAdmin(ReadOnlyAdmin):
    """Bundles that workers pack."""

    list_display = ("__str__", "state", "packed", "kernels", "created_at", "reason")
    list_filter = ("state",)
    list_select_related = ("graph",)


@admin.register(Modelling)
class ModellingAdmin(ReadOnlyAdmin):
    """What the model says of builds on boards."""

    list_display = ("build", "board", "sizes", "state", "time_us", "sentence", "reason")
    list_filter = ("state", "board")
    list_select_related = ("build__kernel",)
    search_fields = ("build__kernel__name",)


@admin.register(ForeignKernel)
class ForeignKernelAdmin(ReadOnlyAdmin):
    """Kernels of somebody else's that people looked at."""

    list_display = ("name", "board", "state", "time_us", "sentence", "reason", "requested_by")
    list_filter = ("state", "board")
    list_select_related = ("requested_by",)
    search_fields = ("name", "function")


@admin.register(Artifact)
class ArtifactAdmin(ReadOnlyAdmin):
    """Files by content."""

    list_display = ("digest", "size_bytes", "created_at")
    search_fields = ("digest",)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """Who did what."""

    list_display = ("at", "actor_name", "address", "action", "what", "why")
    list_filter = ("action",)
    search_fields = ("actor_name", "address", "what")
    date_hierarchy = "at"

    def has_delete_permission(self, *_: Any, **__: Any) -> bool:
        """The record of what people did is kept."""
        return False
