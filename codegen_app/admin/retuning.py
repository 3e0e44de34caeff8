"""Tuning selected rows: the admin leads to the page that confirms it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from codegen_app.accounts import permissions
from codegen_app.admin.readonly import ReadOnlyAdmin

if TYPE_CHECKING:
    _Mixin = ReadOnlyAdmin
else:
    _Mixin = object

_MAX_ROWS = 50  # limit of one page


def may_retune(request: HttpRequest) -> bool:
    """Return whether the user may start and cancel runs."""
    return request.user.has_perm(permissions.RETUNE)


class RetuneMixin(_Mixin):
    """An action that requests tuning runs of the selected rows."""

    actions: tuple[str, ...] = ("retune",)
    # The page's name for such a row, and the field with its key.
    retune_by: tuple[str, str] = ("graph", "pk")

    @admin.action(description="Tune …", permissions=["retune"])
    def retune(self, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponse | None:
        """Return the page that asks for targets, budget, priority and the reason."""
        name, key = self.retune_by
        keys = list(queryset.order_by("pk").values_list(key, flat=True)[: _MAX_ROWS + 1])
        if len(keys) > _MAX_ROWS:
            self.message_user(request, f"Select at most {_MAX_ROWS} rows.", messages.ERROR)
            return None
        query = urlencode([(name, key) for key in keys])
        return redirect(f"{reverse('retune')}?{query}")

    def has_retune_permission(self, request: HttpRequest) -> bool:
        """Return whether the action is available."""
        return may_retune(request)
