"""Histories, received data, and their tokens."""

from __future__ import annotations

from typing import cast

from django.contrib import admin
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from codegen_app.accounts import audit, tokens
from codegen_app.accounts.models import ApiToken
from codegen_app.admin import columns
from codegen_app.admin.actions import action_reason, format_summary
from codegen_app.admin.readonly import ReadOnlyAdmin
from codegen_app.tracking.models import Batch, Conditions, Datum, Revision, Series
from codegen_app.tracking.services import withdrawals
from codegen_app.web.templatetags import kiln
from scheduler.stats.intervals import bounds_cell, bounds_of


@admin.register(Series)
class SeriesAdmin(ReadOnlyAdmin):
    """Figures of problems over time."""

    list_display = (
        columns.text("problem", "Problem", 48),
        "metric",
        "unit",
        columns.pairs("sizes", "Sizes"),
        columns.text("device_name", "Device", 24),
        "target",
        columns.number("points", "Points"),
        columns.number("branch_points", "Of branches"),
        columns.moment("last_at", "Last point"),
    )
    list_filter = ("metric", "target")
    search_fields = ("problem", "device_name")
    search_help_text = "Problem or device"
    ordering = ("-last_at", "-pk")


def _interval(row: Datum) -> str:
    if row.low is None or row.high is None or not bounds_of(row.n):
        return "none"
    return bounds_cell(row.n, kiln.grouped(row.low, 3), kiln.grouped(row.high, 3))


@admin.register(Datum)
class DatumAdmin(ReadOnlyAdmin):
    """Points. There may be millions, so they are not counted."""

    is_deletable = True
    list_display = (
        columns.text("series__problem", "Series", 48),
        columns.moment("at", "At"),
        columns.number("value", "Value", 3),
        columns.computed("Interval", _interval, "interval", number=True),
        columns.number("n", "n"),
        columns.text("series__unit", "Unit"),
        columns.code("revision__name", "Revision", 13),
        "source",
    )
    list_filter = ("source",)
    list_select_related = ("series", "revision")
    ordering = ("-pk",)

    def delete_model(self, _: HttpRequest, obj: Model) -> None:
        """Delete a point; its series is counted and checked again."""
        withdrawals.delete([cast(Datum, obj)], audit.current_user())

    def delete_queryset(self, _: HttpRequest, queryset: QuerySet[Model]) -> None:
        """Delete points; their series are counted and checked again."""
        withdrawals.delete(cast(QuerySet[Datum], queryset), audit.current_user())


@admin.register(Revision)
class RevisionAdmin(ReadOnlyAdmin):
    """States of sources."""

    list_display = (
        columns.code("name", "Revision", 24),
        "branch",
        "is_trunk",
        columns.text("repository", "Repository"),
        columns.moment("at", "At"),
    )
    search_fields = ("name", "branch")
    ordering = ("-pk",)


@admin.register(Conditions)
class ConditionsAdmin(ReadOnlyAdmin):
    """Conditions of measurements."""

    list_display = (
        columns.code("digest", "Digest", 13),
        columns.text("facts", "Facts", 100),
    )
    search_fields = ("digest",)
    ordering = ("-pk",)


@admin.register(Batch)
class BatchAdmin(ReadOnlyAdmin):
    """Data of one request."""

    list_display = (
        columns.code("key", "Key", 40),
        columns.text("token", "Token", 30),
        columns.moment("received_at", "Received"),
        columns.text("answer", "Response"),
    )
    list_select_related = ("token",)
    search_fields = ("key",)
    ordering = ("-pk",)


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    """Everybody's tokens; users who may delete tokens can revoke them."""

    list_display = (
        "name",
        columns.code("prefix", "Prefix"),
        columns.text("owner", "Owner", 30),
        columns.computed("Scopes", lambda row: ", ".join(row.scopes), "scopes"),
        columns.computed("State", lambda row: row.state, "state"),
        "expires_at",
        columns.moment("used_at", "Last used"),
    )
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    list_select_related = ("owner",)
    search_fields = ("name", "prefix", "owner__username")
    exclude = ("digest",)
    actions = ("revoke",)

    @admin.action(description="Revoke selected tokens", permissions=["revoke"])
    @transaction.atomic
    def revoke(self, request: HttpRequest, chosen: QuerySet[ApiToken]) -> None:
        """Revoke them at once."""
        ended = sum(
            tokens.revoke(token, audit.current_user(), action_reason(request)) for token in chosen
        )
        self.message_user(request, format_summary(ended, "token", "tokens", "revoked"))

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Return whether the action is available."""
        return request.user.has_perm("codegen_app.delete_apitoken")
