"""Rows that the application writes: the admin shows them, and deletes only some of them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.contrib import admin
from django.contrib.admin.helpers import ActionForm
from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.text import capfirst

from codegen_app.accounts import audit

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Model]
    _Paginator = Paginator[Model]
else:
    _ModelAdmin = admin.ModelAdmin  # generic only for the type checker
    _Paginator = Paginator

MAX_LISTED = 10_000
"""Rows of a list that pages reach: to see others, filter."""


class ReasonForm(ActionForm):
    """An action's reason, which the audit log records."""

    why = forms.CharField(
        label="Reason",
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"placeholder": "recorded in the audit log"}),
    )


class BoundedPaginator(_Paginator):
    """Counts no more rows than pages reach: there may be millions."""

    @cached_property
    def count(self) -> int:
        """The number of listed rows."""
        rows = cast(QuerySet[Model], self.object_list)
        return rows.order_by()[:MAX_LISTED].count()


class ReadOnlyAdmin(_ModelAdmin):
    """Shows every field and changes none.

    ``list_defer`` names the fields that a list does not load: sources and logs are long.
    ``is_deletable`` offers deletion; set it only for rows that no other record depends on.
    """

    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # otherwise a count for every choice
    list_per_page = 50
    action_form = ReasonForm
    list_defer: tuple[str, ...] = ()
    is_deletable = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Model]:
        """Return the rows; in a list, without the fields that it does not show."""
        rows = super().get_queryset(request)
        match = request.resolver_match
        is_list = match is not None and str(match.url_name).endswith("_changelist")
        return rows.defer(*self.list_defer) if is_list and self.list_defer else rows

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Return the list, headed by its model."""
        title = capfirst(str(self.model._meta.verbose_name_plural))
        return cast(
            TemplateResponse,
            super().changelist_view(request, {"title": title, **(extra_context or {})}),
        )

    def view_on_site(self, row: Model) -> str | None:
        """Return the row's page, if it has one."""
        address = getattr(row, "get_absolute_url", None)
        return str(address()) if address is not None else None

    def has_add_permission(self, *_: Any, **__: Any) -> bool:
        """Return False: only services create rows."""
        return False

    def has_change_permission(self, *_: Any, **__: Any) -> bool:
        """Return False: a record must not be edited."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return whether rows may be deleted: on the model's own pages only if it is deletable.

        Other pages ask when a deletion cascades, such as from a user to the user's API tokens.
        """
        match = request.resolver_match
        prefix = f"{self.opts.app_label}_{self.opts.model_name}_"
        is_own_page = match is not None and str(match.url_name).startswith(prefix)
        return (self.is_deletable or not is_own_page) and super().has_delete_permission(
            request, obj
        )

    @transaction.atomic
    def delete_model(self, _: HttpRequest, obj: Model) -> None:
        """Delete and record it, as every change."""
        audit.record(audit.current_user(), "delete", obj)
        obj.delete()

    @transaction.atomic
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Model]) -> None:
        """Delete the rows and record each."""
        for row in queryset:
            self.delete_model(request, row)
