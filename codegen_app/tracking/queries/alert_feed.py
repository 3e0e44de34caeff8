"""Alerts for feed readers: the newest ones, each with its latest event."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, Max, OuterRef, Q
from django.db.models.functions import Coalesce

from codegen_app.tracking.models import OPEN_ALERT_STATES, Alert, AlertKind, Series
from codegen_app.tracking.queries.alert_rows import WorstChange, worst_changes
from scheduler.track.effect import format_change
from scheduler.track.evidence import cause_text

MAX_ENTRIES = 100
OPEN = "open"
_UUID_NAMESPACE = uuid.UUID("5f0c2c52-6d1c-4d5e-9d0b-6d2e5a5d9a11")


@dataclass(frozen=True)
class FeedEntry:
    """An alert. ``uid`` does not depend on the site's name and is unique to this installation."""

    id: int
    uid: str
    title: str
    lines: tuple[str, ...]
    kind: str
    state: str
    published: datetime
    updated: datetime


def feed_entries(state: str = "", kind: str = "", search: str = "") -> list[FeedEntry]:
    """Return the last ``MAX_ENTRIES`` alerts of a state ("" for any, ``OPEN`` for alerts that
    nobody closed) and a kind, with all words of ``search`` in the problem or device of a series (2
    queries)."""
    rows = Alert.objects.select_related("revision", "series")
    if state:
        rows = rows.filter(state__in=OPEN_ALERT_STATES if state == OPEN else [state])
    if kind:
        rows = rows.filter(kind=kind)
    if words := search.split():
        condition = Q(changes__alert=OuterRef("pk"), changes__withdrawn_at=None)
        condition |= Q(alerts=OuterRef("pk"))
        for word in words:
            condition &= Q(problem__icontains=word) | Q(device_name__icontains=word)
        rows = rows.filter(Exists(Series.objects.filter(condition)))
    rows = rows.annotate(updated=Coalesce(Max("events__at"), "created_at"))
    found = list(rows.order_by("-created_at", "-pk")[:MAX_ENTRIES])
    worst = worst_changes([row.pk for row in found])
    return [
        FeedEntry(
            id=row.pk,
            uid=uuid.uuid5(_UUID_NAMESPACE, f"alert {row.pk} {row.created_at.isoformat()}").urn,
            title=_title(row, worst.get(row.pk)),
            lines=tuple(_lines(row)),
            kind=row.get_kind_display(),
            state=row.get_state_display(),
            published=row.created_at,
            updated=row.updated,
        )
        for row in found
    ]


def _title(row: Alert, worst: WorstChange | None) -> str:
    kind = row.get_kind_display().capitalize() + (" (generated)" if row.is_generated else "")
    if row.kind == AlertKind.MISSING:
        return f"{kind}: {row.series}"
    size = f" up to {format_change(worst)}" if worst is not None else ""
    return f"{kind} in {row.n_series} series{size} since {row.revision}"


def _lines(row: Alert) -> list[str]:
    lines = [f"State: {row.get_state_display()}"]
    if row.cause:
        lines.append(f"Cause: {cause_text(row.cause)} (series with the largest change)")
    if row.recovered_at is not None:
        what = "New points" if row.kind == AlertKind.MISSING else "Back at the previous level"
        lines.append(f"{what} since {row.recovered_at:%Y-%m-%d %H:%M} UTC")
    if row.series is not None and row.series.last_at is not None:
        lines.append(f"No new point since {row.series.last_at:%Y-%m-%d %H:%M} UTC")
    return lines
