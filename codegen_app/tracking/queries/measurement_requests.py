"""Revisions that senders are asked to measure again, as the API returns them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codegen_app.tracking.models import MeasurementRequest

FILTERS = {
    "device_name": "series__device_name",
    "repository": "revision__repository",
    "branch": "revision__branch",
    "revision": "revision__name",
}
_SERIES = ("problem", "sizes", "target", "device_name", "toolchain", "metric", "unit")


def requests_page(
    given: Mapping[str, str], after: int, limit: int
) -> tuple[list[dict[str, Any]], int | None]:
    """Return open requests whose columns match ``given``, by number, and the number to continue
    after (1 query)."""
    rows = MeasurementRequest.objects.filter(
        pk__gt=after,
        answered_at__isnull=True,
        withdrawn_at__isnull=True,
        **{FILTERS[name]: text for name, text in given.items() if text},
    )
    found = list(rows.select_related("series", "revision").order_by("pk")[: limit + 1])
    shown = [_row(one) for one in found[:limit]]
    return shown, found[limit - 1].pk if len(found) > limit else None


def _row(one: MeasurementRequest) -> dict[str, Any]:
    return {
        "id": one.pk,
        "asked_at": one.created_at,
        "alert": one.alert_id,
        "series": one.series_id,
        **{name: getattr(one.series, name) for name in _SERIES},
        "revision": one.revision.name,
        "revision_at": one.revision.at,
        "branch": one.revision.branch,
        "repository": one.revision.repository,
    }
