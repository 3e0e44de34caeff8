"""Actions on rows of work: cancelling them, and releasing quarantined rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from django.contrib import admin, messages
from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from codegen_app.accounts import permissions
from codegen_app.admin.readonly import ReadOnlyAdmin
from codegen_app.tuning.services import quarantine
from codegen_app.workers import work
from codegen_app.workers.models import State, Work

if TYPE_CHECKING:
    _Mixin = ReadOnlyAdmin
else:
    _Mixin = object


def current_actor(request: HttpRequest) -> AbstractBaseUser:
    """Return the acting user: only staff comes here."""
    return cast(AbstractBaseUser, request.user)


def action_reason(request: HttpRequest) -> str:
    """Return the reason beside the action, or where it was done."""
    return request.POST.get("why", "").strip()[:200] or "in the admin"


def format_summary(count: int, singular: str, plural: str, done: str) -> str:
    """Return ``3 builds are queued again``; rows that were over already are not counted."""
    return f"{count} {singular} is {done}." if count == 1 else f"{count} {plural} are {done}."


class ReleaseMixin(_Mixin):
    """An action for quarantined rows: their workers died over them, or Kiln failed."""

    release_needs = permissions.BUILD

    @admin.action(description="Release from quarantine", permissions=["release"])
    def release(self, request: HttpRequest, queryset: QuerySet[Model]) -> None:
        """Queue them again, as if they had never been tried."""
        rows = cast(Sequence[Work], list(queryset.filter(state=State.QUARANTINED)))
        actor, why = current_actor(request), action_reason(request)
        count = sum(quarantine.release(row, actor, why) for row in rows)
        level = messages.SUCCESS if count else messages.WARNING
        self.message_user(request, format_summary(count, "row", "rows", "queued again"), level)

    def has_release_permission(self, request: HttpRequest) -> bool:
        """Return whether the action is available."""
        return request.user.has_perm(self.release_needs)


class CancelMixin(_Mixin):
    """An action that cancels queued or running rows, by the same service as the pages."""

    @admin.action(description="Cancel", permissions=["cancel"])
    def cancel(self, request: HttpRequest, queryset: QuerySet[Model]) -> None:
        """Cancel them; finished rows stay as they are."""
        actor = current_actor(request)
        count = sum(work.cancel(row, actor) for row in cast(Sequence[Work], list(queryset)))
        level = messages.SUCCESS if count else messages.WARNING
        self.message_user(request, format_summary(count, "row", "rows", "cancelled"), level)

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Return whether the action is available."""
        return request.user.has_perm(permissions.BUILD)
