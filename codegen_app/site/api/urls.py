"""The API's addresses, by the names that ``web/server/rules.py`` knows; none needs a login."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.urls import URLPattern, path
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from codegen_app.accounts.api_authentication import TokenAuth
from codegen_app.site.api.v1 import api, point_schema

ROOT = "api/v1/"
_OPERATIONS = (
    *("api_results", "api_series", "api_one_series", "api_data"),
    *("api_withdraw", "api_restore", "api_annotate", "api_remove_annotation"),
    "api_annotations",
    *("api_thresholds", "api_reset_thresholds", "api_budgets"),
    *("api_rules", "api_try_rule", "api_edit_rule", "api_move_rule", "api_remove_rule"),
    *("api_alerts", "api_alert", "api_alert_changes", "api_alert_events", "api_triage"),
    *("api_requests", "api_skip_request", "api_compare"),
    *("api_worker_hello", "api_worker_lease", "api_worker_file", "api_worker_progress"),
    *("api_worker_builds", "api_worker_finish", "api_worker_give_up", "api_worker_leave"),
)


urlpatterns = [
    path(f"{ROOT}{pattern.pattern}", login_not_required(pattern.callback), name=pattern.name)
    for pattern in api.urls[0]
    if isinstance(pattern, URLPattern) and pattern.name in _OPERATIONS
]


class _Description(OpenAPISchema):
    """django-ninja's, with the scopes of each operation, any of which a token needs."""

    def operation_security(self, operation: Operation) -> list[dict[str, Any]] | None:
        name = TokenAuth.__name__
        super().operation_security(operation)  # describes the scheme
        return [
            {name: [scope.value]}
            for auth in operation.auth_callbacks
            if isinstance(auth, TokenAuth)
            for scope in auth.scopes
        ]


@cache
def openapi() -> dict[str, Any]:
    """The API's description in OpenAPI."""
    schema = dict(_Description(api, f"/{ROOT}"))
    schema["components"]["schemas"] |= point_schema()["$defs"]
    return schema
