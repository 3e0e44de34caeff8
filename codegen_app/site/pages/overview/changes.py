"""Recent changes for the overview: open alerts of the site and of one graph, and the largest
changes of the last days."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Case, Count, F, FloatField, Q, QuerySet, When
from django.db.models.expressions import RawSQL
from django.db.models.functions import Abs, Ln
from django.utils import timezone

from codegen_app.graphs.models import TemplateNode
from codegen_app.tracking.models import Alert, AlertKind, Change, Series
from codegen_app.tracking.models.alert import OPEN_ALERT_STATES
from codegen_app.tracking.queries.alert_rows import worst_change_ids
from codegen_app.tracking.queries.series_summary import (
    ChangeSummary,
    SeriesHead,
    change_summary,
    series_head,
)
from codegen_app.web.row import build_row, username
from scheduler.track.generated_label import LABEL

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
    """An open alert. ``worst`` is the largest change of its series, with its
    interval and n; None if later points contradicted all. ``at`` is when it happened;
    ``recovered``: its series are back at their earlier level; ``generated``: its data was
    generated, not measured. ``owner`` is its assignee, "" for none."""

    id: int
    url: str
    revision: str
    state: str
    n_series: int
    worst: ChangeSummary | None
    cause: str
    owner: str
    at: datetime
    recovered: bool
    generated: bool


@dataclass(frozen=True)
class OwnerCount:
    """The open regressions of one assignee, "" for none."""

    owner: str
    regressions: int


@dataclass(frozen=True)
class Mover:
    """A change and its series."""

    head: SeriesHead
    change: ChangeSummary


@dataclass(frozen=True)
class OverviewChanges:
    """Open alerts; the largest changes found in the last ``days`` that were not withdrawn, among
    the newest ``most_changes``; the number of series with a suspected step, and of machines whose
    points are set aside, generated ones not included."""

    regressions: int
    improvements: int
    worst_regressions: tuple[OpenAlert, ...]
    owners: tuple[OwnerCount, ...]
    movers: tuple[Mover, ...]
    suspected: int
    machines: int
    days: int = DAYS
    most_changes: int = MAX_CHANGES


def overview_changes() -> OverviewChanges:
    """Return recent changes (6 queries), by indexes of alerts and changes: no point is read."""
    measured = _open_alerts().exclude(kind=AlertKind.MACHINE, machine__startswith=LABEL)
    counts = dict(measured.values_list("kind").annotate(Count("pk")))
    owners = _regressions().values_list("assignee__username").annotate(n=Count("pk"))
    since = timezone.now() - timedelta(days=DAYS)
    changes = _changes(
        Change.objects.filter(pk__in=RawSQL(_MOVERS, [since]))  # noqa: S611 - no text of others
    ).order_by(Abs(Ln(F("after") / F("before"))).desc(), "-pk")
    return OverviewChanges(
        regressions=counts.get(AlertKind.REGRESSION, 0),
        improvements=counts.get(AlertKind.IMPROVEMENT, 0),
        worst_regressions=_most_urgent(_regressions()),
        owners=tuple(
            OwnerCount(name or "", count)
            for name, count in owners.order_by("-n", "assignee__username")
        ),
        movers=tuple(
            Mover(series_head(row.series), change_summary(row, row.series.unit)) for row in changes
        ),
        machines=counts.get(AlertKind.MACHINE, 0),
        suspected=Series.objects.filter(suspected_from__isnull=False).count(),
    )


def graph_regressions(graph: int) -> tuple[OpenAlert, ...]:
    """Return the open regressions of a graph's own problems, the most urgent first, at most
    ``_MAX_ALERTS`` (2 queries)."""
    problems = TemplateNode.objects.filter(graph=graph, problem__isnull=False).values("problem")
    changes = Change.objects.filter(series__own_problem__in=problems, withdrawn_at=None)
    return _most_urgent(_regressions().filter(pk__in=changes.values("alert")))


def _open_alerts() -> QuerySet[Alert]:
    return Alert.objects.filter(state__in=OPEN_ALERT_STATES, duplicate_of=None).order_by()


def _regressions() -> QuerySet[Alert]:
    return _open_alerts().filter(kind=AlertKind.REGRESSION)


def _most_urgent(alerts: QuerySet[Alert]) -> tuple[OpenAlert, ...]:
    """Return the first alerts with their largest changes (2 queries): measured ones before
    generated ones, those that recovered last, and the largest effect first."""
    effect = Case(When(worst_ratio__gt=0, then=Abs(Ln("worst_ratio"))), output_field=FloatField())
    rows = list(
        alerts.select_related("revision", "assignee")
        .annotate(
            has_recovered=Q(recovered_at__isnull=False),
            of_generated_data=Q(revision__repository__startswith=LABEL),
        )
        .order_by(
            "has_recovered",
            "of_generated_data",
            effect.desc(nulls_last=True),
            "-pk",
        )[:_MAX_ALERTS]
    )
    # 0 matches none: the same queries without alerts.
    keys = worst_change_ids([0, *(row.pk for row in rows)])
    worst = {
        row.alert_id: change_summary(row, row.series.unit)
        for row in _changes(Change.objects.filter(pk__in=keys))
    }
    return tuple(
        build_row(
            OpenAlert,
            row,
            id=row.pk,
            url=row.get_absolute_url(),
            revision=str(row.revision),
            state=row.get_state_display(),
            worst=worst.get(row.pk),
            owner=username(row.assignee),
            recovered=row.recovered_at is not None,
            generated=row.is_generated,
        )
        for row in rows
    )


def _changes(rows: QuerySet[Change]) -> QuerySet[Change]:
    with_series = rows.select_related("series", "revision", "previous", "alert")
    return with_series.defer("explanation")
