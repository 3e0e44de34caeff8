"""Histories, what was sent, and the tokens it was sent with."""

from __future__ import annotations

from django.contrib import admin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from codegen_app.admin.readonly import ReadOnlyAdmin
from codegen_app.models import ApiToken, Batch, Conditions, Datum, Revision, Series
from codegen_app.services import audit, tokens


@admin.register(Series)
class SeriesAdmin(ReadOnlyAdmin):
    """Figures of problems over time."""

    list_display = ("problem", "metric", "unit", "device_name", "target", "points", "last_at")
    list_filter = ("metric", "target")
    search_fields = ("problem", "digest")
    show_full_result_count = False


@admin.register(Datum)
class DatumAdmin(ReadOnlyAdmin):
    """Points. There may be millions: none is counted."""

    list_display = ("series", "at", "value", "low", "high", "n", "revision", "source")
    list_select_related = ("series", "revision")
    ordering = ("-pk",)
    show_full_result_count = False


@admin.register(Revision)
class RevisionAdmin(ReadOnlyAdmin):
    """States of sources."""

    list_display = ("name", "branch", "repository", "at")
    search_fields = ("name",)


@admin.register(Conditions)
class ConditionsAdmin(ReadOnlyAdmin):
    """What was measured of and under."""

    list_display = ("digest", "facts")


@admin.register(Batch)
class BatchAdmin(ReadOnlyAdmin):
    """What was sent at once."""

    list_display = ("key", "token", "received_at", "answer")
    list_select_related = ("token",)


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    """Everybody's tokens: who may change them ends them."""

    list_display = ("name", "prefix", "owner", "scopes", "state", "expires_at", "used_at")
    list_select_related = ("owner",)
    search_fields = ("name", "prefix", "owner__username")
    exclude = ("digest",)
    actions = ("revoke",)

    @admin.action(description="Revoke the chosen tokens", permissions=["delete"])
    @transaction.atomic
    def revoke(self, request: HttpRequest, chosen: QuerySet[ApiToken]) -> None:
        """End them at once."""
        ended = sum(tokens.revoke(token, audit.asking(), "in the admin") for token in chosen)
        self.message_user(request, f"{ended} tokens are revoked.")
