"""The application's workers, files, and records about people."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from codegen_app.accounts.models import AuditEntry, Identity
from codegen_app.admin import columns
from codegen_app.admin.actions import CancelMixin, ReleaseMixin
from codegen_app.admin.readonly import ReadOnlyAdmin
from codegen_app.kernels.models import Packing
from codegen_app.platform.models import Artifact
from codegen_app.web.templatetags import kiln
from codegen_app.workers.models import Worker


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    """Worker processes."""

    list_display = (
        "name",
        columns.computed("State", lambda row: "online" if row.is_alive else "offline", "alive"),
        "host",
        columns.computed("Queues", lambda row: ", ".join(row.queues), "queues"),
        columns.computed(
            "Devices", lambda row: ", ".join(device["id"] for device in row.devices), "devices"
        ),
        columns.moment("seen_at", "Last seen"),
        columns.moment("stopped_at", "Stopped"),
    )
    list_filter = ("host",)
    search_fields = ("name", "host")
    ordering = ("-seen_at",)


@admin.register(Identity)
class IdentityAdmin(ReadOnlyAdmin):
    """Which account belongs to which identity at the provider; a deleted identity no longer opens
    its account."""

    is_deletable = True
    list_display = (
        columns.text("user__username", "Account"),
        columns.code("subject", "Subject"),
        columns.text("issuer", "Provider"),
        columns.moment("made_at", "Linked"),
    )
    list_select_related = ("user",)
    search_fields = ("user__username", "subject")
    search_help_text = "Account or subject"
    ordering = ("-pk",)

    def delete_model(self, _: HttpRequest, obj: Model) -> None:
        """Delete it; ``accounts/receivers.py`` records every deletion in the audit log."""
        obj.delete()


def _packed(row: Any) -> str:
    return f"{kiln.grouped(row.packed)} of {kiln.grouped(row.kernels)}"


@admin.register(Packing)
class PackingAdmin(ReleaseMixin, CancelMixin, ReadOnlyAdmin):
    """Bundles that workers pack."""

    list_display = (
        columns.text("graph__name", "Graph"),
        columns.text("times", "Selections of", 40),
        columns.state(),
        columns.computed("Kernels packed", _packed, "packed", number=True),
        columns.moment("created_at", "Requested"),
        columns.text("reason", "Reason"),
    )
    list_filter = ("state",)
    list_select_related = ("graph",)
    list_defer = ("graph__wrapper", "graph__decisions", "detail")
    search_fields = ("graph__name",)
    ordering = ("-pk",)
    actions = ("cancel", "release")


@admin.register(Artifact)
class ArtifactAdmin(ReadOnlyAdmin):
    """Files by content."""

    list_display = (
        columns.code("digest", "Digest", 24),
        columns.number("size_bytes", "Size, B"),
        columns.moment("created_at", "Stored"),
        columns.moment("used_at", "Last used"),
    )
    search_fields = ("digest",)
    ordering = ("-pk",)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """Who did what."""

    list_display = (
        columns.moment("at", "When"),
        columns.text("actor_name", "Who", 30),
        "action",
        columns.text("what", "What"),
        columns.text("why", "Reason"),
        columns.code("address", "From"),
    )
    list_filter = ("action",)
    search_fields = ("actor_name", "address", "what", "why")
    search_help_text = "User, address, or words of action and reason"
    date_hierarchy = "at"

    def has_delete_permission(self, *_: Any, **__: Any) -> bool:
        """Return False: the audit log is kept."""
        return False
