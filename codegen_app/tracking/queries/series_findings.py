"""Drifts, changes of spread and second modes, as pages and the weekly digest show them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from codegen_app.tracking.models import OPEN_ALERT_STATES, AlertKind, SeriesFinding
from codegen_app.tracking.queries.series_summary import SeriesHead, series_head
from codegen_app.web.row import build_row
from scheduler.track.units import format_value

MAX_WEEKLY = 500


@dataclass(frozen=True)
class FindingRow:
    """A finding with its figures; ``before`` and ``after`` are levels with their unit, or standard
    deviations in percent of the level. ``ended_at``: no longer found since then."""

    kind: str
    kind_label: str
    alert: int
    alert_url: str
    state: str
    series: SeriesHead
    summary: str
    interval: str
    before: str
    after: str
    ratio: float
    low: float
    high: float
    n_before: int
    n_after: int
    share: float | None
    began_at: datetime
    revision: str
    examined_at: datetime
    ended_at: datetime | None


def finding_row(finding: SeriesFinding) -> FindingRow:
    """Return the row of a finding whose alert, series and revision are loaded."""
    alert, unit = finding.alert, finding.series.unit
    figures = finding.before, finding.after
    if finding.kind == AlertKind.SPREAD:
        before, after = (f"{figure:.2%}" for figure in figures)
    else:
        before, after = (format_value(figure, unit) for figure in figures)
    return build_row(
        FindingRow,
        finding,
        kind_label=alert.get_kind_display(),
        alert=alert.pk,
        alert_url=alert.get_absolute_url(),
        state=alert.state,
        series=series_head(finding.series),
        before=before,
        after=after,
        began_at=alert.at,
        revision=str(finding.revision),
    )


def current_findings(series: int) -> tuple[FindingRow, ...]:
    """Return what currently holds of a series, also if its alert was closed (1 query)."""
    rows = SeriesFinding.objects.filter(series=series, ended_at=None)
    return tuple(map(finding_row, rows.select_related(*_RELATED).order_by("kind")))


def findings_raised(since: datetime, until: datetime) -> tuple[FindingRow, ...]:
    """Return the findings whose alerts were raised in a period and are open, the furthest from 1
    first within each kind, at most ``MAX_WEEKLY``: what the weekly digest lists (1 query)."""
    in_period = Q(alert__created_at__gte=since, alert__created_at__lt=until)
    rows = SeriesFinding.objects.filter(in_period, alert__state__in=OPEN_ALERT_STATES)
    rows = rows.select_related(*_RELATED)
    found = [finding_row(row) for row in rows.order_by("-alert")[:MAX_WEEKLY]]
    return tuple(sorted(found, key=lambda row: (row.kind, -max(row.ratio, 1 / row.ratio))))


_RELATED = ("alert", "series", "revision")
