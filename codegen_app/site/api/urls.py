"""The API's addresses, by the names that ``web/server/rules.py`` knows; none needs a login."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.urls import URLPattern, path

from codegen_app.site.api.v1 import api, point_schema

ROOT = "api/v1/"
_OPERATIONS = (
    *("api_results", "api_series", "api_one_series", "api_data"),
    *("api_withdraw", "api_restore", "api_requests", "api_compare"),
    *("api_worker_hello", "api_worker_lease", "api_worker_file", "api_worker_progress"),
    *("api_worker_builds", "api_worker_finish", "api_worker_give_up", "api_worker_leave"),
)


urlpatterns = [
    path(f"{ROOT}{pattern.pattern}", login_not_required(pattern.callback), name=pattern.name)
    for pattern in api.urls[0]
    if isinstance(pattern, URLPattern) and pattern.name in _OPERATIONS
]


def openapi() -> dict[str, Any]:
    """The API's description in OpenAPI."""
    schema = dict(api.get_openapi_schema(path_prefix=f"/{ROOT}"))
    schema["components"]["schemas"] |= point_schema()["$defs"]
    return schema
