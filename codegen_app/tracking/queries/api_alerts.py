"""Alerts, their changes and their events, as the API returns them: paged by key, so that each page
costs the same."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Q

from codegen_app.tracking.models import LISTED, Alert, AlertEvent, Change
from codegen_app.tracking.queries.alert_rows import worst_changes
from codegen_app.web.addresses import absolute_url

_RELATED = ("revision", "good_revision", "series", "assignee", "series_finding__revision")
_COLUMNS = (
    *("id", "kind", "state", "n_series", "cause", "at", "created_at", "changed_at"),
    *("recovered_at", "revision", "good_revision"),
)


def alerts_page(
    condition: Q, changed_since: datetime | None, after: int, limit: int
) -> tuple[list[dict[str, Any]], int | None]:
    """Return alerts, the newest first, and the number to continue after (2 queries)."""
    rows = Alert.objects.filter(condition).select_related(*_RELATED)
    if changed_since is not None:
        rows = rows.filter(changed_at__gte=changed_since)
    if after:
        rows = rows.filter(pk__lt=after)
    alerts = list(rows.order_by("-pk")[: limit + 1])
    return alert_items(alerts[:limit]), alerts[limit - 1].pk if len(alerts) > limit else None


def alert_items(alerts: list[Alert]) -> list[dict[str, Any]]:
    """Return alerts whose revision, series and assignee are loaded (1 query)."""
    worst = worst_changes([row.pk for row in alerts])
    return [
        {
            **{name: getattr(row, name) for name in _COLUMNS},
            "url": absolute_url(row.get_absolute_url()),
            "title": str(row),
            "series": row.series_id,
            "largest_change": worst.get(row.pk),
            "finding": getattr(row, "series_finding", None),
            "assignee": row.assignee.get_username() if row.assignee else None,
            "duplicate_of": row.duplicate_of_id,
            "downstream_of": row.downstream_of_id,
            "generated": row.is_generated,
        }
        for row in alerts
    ]


def one_alert(pk: int) -> dict[str, Any]:
    """Return an alert (2 queries). Raises ``Alert.DoesNotExist``."""
    return alert_items([Alert.objects.select_related(*_RELATED).get(pk=pk)])[0]


def changes_page(alert: int, after: int, limit: int) -> tuple[list[dict[str, Any]], int | None]:
    """Return the changes that an alert lists, by number, and the number to continue after (1
    query)."""
    rows = Change.objects.filter(LISTED, alert=alert, pk__gt=after)
    rows = rows.select_related("series", "revision", "previous").order_by("pk")
    changes = list(rows[: limit + 1])
    of_change = (
        *("id", "at", "before", "after", "ratio", "low", "high", "n_before", "n_after"),
        *("worse", "cause", "rule"),
    )
    of_series = ("problem", "device_name", "target", "metric", "unit")
    shown = [
        {
            **{name: getattr(row, name) for name in of_change},
            **{name: getattr(row.series, name) for name in of_series},
            "url": absolute_url(row.get_absolute_url()),
            "series": row.series_id,
            "revision": row.revision.name,
            "previous": row.previous.name if row.previous else None,
            "reasons": list(map(str, row.explanation.get("reasons") or ())),
        }
        for row in changes[:limit]
    ]
    return shown, changes[limit - 1].pk if len(changes) > limit else None


def events_page(alert: int, after: int, limit: int) -> tuple[list[dict[str, Any]], int | None]:
    """Return the events of an alert, the oldest first, and the number to continue after (1
    query)."""
    rows = AlertEvent.objects.filter(alert=alert, pk__gt=after).order_by("pk")
    columns = ("id", "kind", "at", "note", "before", "after", "by__username")
    events = list(rows.values(*columns)[: limit + 1])
    shown = [{**row, "by": row.pop("by__username")} for row in events[:limit]]
    return shown, shown[-1]["id"] if len(events) > limit else None
