"""Repositories: their trunk, and where their commits are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin
from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest

from codegen_app.accounts import audit
from codegen_app.admin import columns
from codegen_app.admin.readonly import BoundedPaginator
from codegen_app.tracking.models import Repository
from codegen_app.tracking.services import trunk

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Repository]
else:
    _ModelAdmin = admin.ModelAdmin


@admin.register(Repository)
class RepositoryAdmin(_ModelAdmin):
    """Repositories are created by the first upload that names them. After a change of the default
    branch, histories are read anew in the background."""

    list_display = (
        columns.computed("Repository", str, "name"),
        columns.computed("Trunk", lambda row: ", ".join(row.trunk), "default_branch"),
        "commit_url",
        "compare_url",
    )
    search_fields = ("name",)
    paginator = BoundedPaginator
    show_full_result_count = False
    fields = ("name", "default_branch", "commit_url", "compare_url", "progress")
    readonly_fields = ("name", "progress")

    def has_add_permission(self, *_: object) -> bool:
        return False

    def has_delete_permission(self, *_: object, **__: object) -> bool:
        return False

    @admin.display(description="Points")
    def progress(self, repository: Repository) -> str:
        """Say whether points still have to be marked by the present trunk."""
        if repository.marked_series is None:
            return "all marked by this trunk"
        return f"being marked by this trunk: series up to {repository.marked_series} are done"

    def save_model(
        self,
        request: HttpRequest,
        obj: Repository,
        form: Any,
        change: bool,  # noqa: ARG002 - Django's signature
    ) -> None:
        """Save the URLs here, the default branch with the marks of its revisions; both are
        recorded."""
        actor = cast(AbstractBaseUser, request.user)
        urls = [name for name in ("commit_url", "compare_url") if name in form.changed_data]
        if urls:
            obj.save(update_fields=urls)
            audit.record(actor, "change", obj, ", ".join(f"{n}={getattr(obj, n)}" for n in urls))
        if "default_branch" in form.changed_data:
            trunk.set_default_branch(obj.pk, obj.default_branch, actor)
