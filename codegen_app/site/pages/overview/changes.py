"""Recent changes for the overview: open alerts, and the largest changes of the last days."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Case, Count, F, FloatField, QuerySet, When
from django.db.models.expressions import RawSQL
from django.db.models.functions import Abs, Ln
from django.utils import timezone

from codegen_app.tracking.models import Alert, AlertKind, Change, Series
from codegen_app.tracking.models.alert import OPEN_ALERT_STATES
from codegen_app.tracking.queries.alert_rows import worst_change_ids
from codegen_app.tracking.queries.series_summary import (
    ChangeSummary,
    SeriesHead,
    change_summary,
    series_head,
)
from codegen_app.web.row import build_row

DAYS = 7
MAX_CHANGES = 5_000
"""The number of newest changes among which the largest are searched."""
_MAX_ALERTS, _MAX_MOVERS = 6, 10
# The newest by key, whatever the planner's estimate of the number of recent changes.
_MOVERS = f"""
    SELECT id FROM (
        SELECT id, before, after, found_at, withdrawn_at FROM {Change._meta.db_table}
        ORDER BY id DESC LIMIT {MAX_CHANGES}
    ) AS newest
    WHERE withdrawn_at IS NULL AND found_at >= %s
    ORDER BY ABS(LN(after / before)) DESC, id DESC LIMIT {_MAX_MOVERS}
"""  # noqa: S608 - our own names


@dataclass(frozen=True)
class OpenAlert:
    """An alert that nobody has closed. ``worst`` is the largest change of its ``series``, with its
    interval and n; None if later points contradicted all. ``generated``: its data was generated,
    not measured."""

    id: int
    url: str
    revision: str
    state: str
    series: int
    worst: ChangeSummary | None
    cause: str
    created_at: datetime
    generated: bool


@dataclass(frozen=True)
class Mover:
    """A change and its series."""

    head: SeriesHead
    change: ChangeSummary


@dataclass(frozen=True)
class OverviewChanges:
    """Open alerts, the worst first; the largest changes found in the last ``days`` that were not
    withdrawn, among the newest ``most_changes``; the number of series with a suspected step, and of
    machines whose points are set aside."""

    regressions: int
    improvements: int
    worst_regressions: tuple[OpenAlert, ...]
    best_improvements: tuple[OpenAlert, ...]
    movers: tuple[Mover, ...]
    suspected: int
    machines: int
    days: int = DAYS
    most_changes: int = MAX_CHANGES

    @property
    def alerts(self) -> tuple[tuple[str, int, tuple[OpenAlert, ...]], ...]:
        """By kind: the label, the number of open alerts, and the first of them."""
        return (
            ("regressions", self.regressions, self.worst_regressions),
            ("improvements", self.improvements, self.best_improvements),
        )


def overview_changes() -> OverviewChanges:
    """Return recent changes (6 queries), by indexes of alerts and changes: no point is read."""
    rows = Alert.objects.filter(state__in=OPEN_ALERT_STATES, duplicate_of=None).order_by()
    counts = dict(rows.values_list("kind").annotate(Count("pk")))
    effect = Case(When(worst_ratio__gt=0, then=Abs(Ln("worst_ratio"))), output_field=FloatField())
    largest_first = rows.select_related("revision").order_by(effect.desc(nulls_last=True), "-pk")
    regressions, improvements = (
        list(largest_first.filter(kind=kind)[:_MAX_ALERTS])
        for kind in (AlertKind.REGRESSION, AlertKind.IMPROVEMENT)
    )
    keys = [row.pk for row in (*regressions, *improvements)]
    # 0 matches none: the same queries without alerts.
    worst_rows = _changes(Change.objects.filter(pk__in=worst_change_ids([0, *keys])))
    worst = {row.alert_id: change_summary(row, row.series.unit) for row in worst_rows}
    since = timezone.now() - timedelta(days=DAYS)
    changes = _changes(
        Change.objects.filter(pk__in=RawSQL(_MOVERS, [since]))  # noqa: S611 - no text of others
    ).order_by(Abs(Ln(F("after") / F("before"))).desc(), "-pk")
    return OverviewChanges(
        regressions=counts.get(AlertKind.REGRESSION, 0),
        improvements=counts.get(AlertKind.IMPROVEMENT, 0),
        worst_regressions=tuple(_open_alert(row, worst) for row in regressions),
        best_improvements=tuple(_open_alert(row, worst) for row in improvements),
        movers=tuple(
            Mover(series_head(row.series), change_summary(row, row.series.unit)) for row in changes
        ),
        machines=counts.get(AlertKind.MACHINE, 0),
        suspected=Series.objects.filter(suspected_from__isnull=False).count(),
    )


def _changes(rows: QuerySet[Change]) -> QuerySet[Change]:
    with_series = rows.select_related("series", "revision", "previous", "alert")
    return with_series.defer("explanation")


def _open_alert(row: Alert, worst: Mapping[int | None, ChangeSummary]) -> OpenAlert:
    return build_row(
        OpenAlert,
        row,
        id=row.pk,
        url=f"/alerts/{row.pk}",
        revision=str(row.revision),
        state=row.get_state_display(),
        series=row.n_series,
        worst=worst.get(row.pk),
        generated=row.is_generated,
    )
