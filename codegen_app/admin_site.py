"""The admin site: its name, and its models in groups.

Django creates it before it discovers what is registered, so it is not part of that package.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

_GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Models and kernels",
        ("Graph", "TorchComparison", "TemplateNode", "Problem", "GeneratedKernel", "Build"),
    ),
    ("Tuning", ("TuningRun", "TuningTask", "Candidate", "RetuneSchedule", "Selection")),
    ("Times", ("BenchmarkResult", "Environment", "Modelling", "ForeignKernel")),
    ("History", ("Series", "Datum", "Revision", "Repository", "Conditions", "Batch")),
    ("Upkeep", ("Worker", "Packing", "Artifact", "RetentionPolicy")),
    ("People", ("Identity", "ApiToken", "AuditEntry")),
)
_OURS = "codegen_app"
_TITLES = {"auth": "Users and groups", "axes": "Login attempts"}


class KilnAdminSite(admin.AdminSite):
    """Our models in groups, each in the order of the work; other applications after them."""

    site_title = "Kiln"
    site_header = "Kiln"
    index_title = "Admin"

    def get_app_list(
        self, request: HttpRequest, app_label: str | None = None
    ) -> list[dict[str, Any]]:
        """Return the applications with their models; ours in groups if all are requested."""
        found = super().get_app_list(request, app_label)
        for app in found:
            app["name"] = _TITLES.get(app["app_label"], app["name"])
        if app_label is not None:
            return found
        ours = next((app for app in found if app["app_label"] == _OURS), None)
        if ours is None:
            return found
        return [*_grouped(ours), *(app for app in found if app is not ours)]


def _grouped(app: dict[str, Any]) -> list[dict[str, Any]]:
    models = {model["object_name"]: model for model in app["models"]}
    known = {name for _, names in _GROUPS for name in names}
    groups = (*_GROUPS, ("Others", tuple(name for name in models if name not in known)))
    return [
        {**app, "name": title, "models": [models[name] for name in names if name in models]}
        for title, names in groups
        if any(name in models for name in names)
    ]
