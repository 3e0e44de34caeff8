"""The list of series: the latest first, each with its latest value and its latest change."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.urls import reverse
from django.utils import timezone

from codegen_app.graphs.models import Problem
from codegen_app.tracking.models import OPEN_ALERT_STATES, AlertKind, Change, Series
from codegen_app.tracking.pages.series.columns import COLUMNS, SeriesRow
from codegen_app.tracking.queries.histories import Cursor
from codegen_app.tracking.queries.series_summary import (
    change_summary,
    latest_values,
    series_head,
)
from codegen_app.web.tables import Table, TableQuery, build_table

PAGE_SIZE = 100
MAX_ROWS = 5_000  # rows that are sorted, filtered by columns and copied
MAX_CHOICES = 200  # values of a filter
MAX_WORDS = 8
FILTERS = {
    "metric": "metric",
    "device": "device_name",
    "target": "target",
    "owner": "owner_rule__owner__username",
}
#: Days since the change, for the filter of series that changed.
PERIODS = (1, 7, 30, 90)

# Uses the index change_history: one row per series, however many changes it has.
_LATEST = f"""
    SELECT c.id FROM unnest(%s::bigint[]) AS series(id)
    CROSS JOIN LATERAL (
        SELECT id FROM {Change._meta.db_table}
        WHERE series_id = series.id AND withdrawn_at IS NULL ORDER BY at DESC, id DESC LIMIT 1
    ) AS c
"""  # noqa: S608 - our own names


@dataclass(frozen=True)
class Filters:
    """The list's filters: words anywhere, exact values by filter, a problem's row, the number of
    days within which there was a change (0: any), and whether to list only series with a suspected
    step."""

    words: str = ""
    exact: Mapping[str, str] | None = None
    problem: int = 0
    changed: int = 0
    suspected: bool = False

    @property
    def any(self) -> bool:
        is_narrowed = self.problem or self.changed or self.suspected
        return bool(self.words or any((self.exact or {}).values()) or is_narrowed)


@dataclass(frozen=True)
class SeriesList:
    """A page of series, out of ``found``. ``choices`` are the values of each filter, ``shortened``
    the filters with more values than are listed; ``next`` is the start of the next page."""

    rows: tuple[SeriesRow, ...]
    found: int
    filters: Filters
    problem: str
    choices: Mapping[str, tuple[str, ...]]
    shortened: tuple[str, ...]
    next: str
    is_first: bool

    @property
    def most(self) -> int:
        """The number of series that are sorted and filtered by columns if there are more; 0 if all
        are."""
        return MAX_ROWS if self.found > MAX_ROWS else 0


def series_list(filters: Filters | None = None, after: Cursor | None = None) -> SeriesList:
    """Return series by their latest point, ``PAGE_SIZE`` at a time after a cursor (6 queries, one
    more if not all fit)."""
    filters = filters or Filters()
    found = list(_after_cursor(_filtered_series(filters), after)[: PAGE_SIZE + 1])
    shown = found[:PAGE_SIZE]
    is_all = after is None and len(found) <= PAGE_SIZE
    following = ""
    if len(found) > PAGE_SIZE:
        last = shown[-1]
        assert last.last_at is not None, "of a series without points"
        following = str(Cursor(last.last_at, last.pk))
    return _series_page(
        filters,
        rows=series_rows(shown),
        found=len(found) if is_all else _filtered_series(filters).count(),
        next=following,
        is_first=after is None,
    )


def series_table(filters: Filters, query: TableQuery) -> tuple[SeriesList, Table[SeriesRow]]:
    """Return series sorted and filtered by columns, ``PAGE_SIZE`` at a time; only the ``MAX_ROWS``
    with the latest points if there are more (7 queries)."""
    matching = _filtered_series(filters)
    rows = series_rows(list(_after_cursor(matching)[:MAX_ROWS]))
    table = build_table("series", COLUMNS, rows, query, PAGE_SIZE)
    page = _series_page(
        filters, rows=tuple(table.rows), found=matching.count(), next="", is_first=not table.start
    )
    return page, table


def _series_page(filters: Filters, **of_rows: Any) -> SeriesList:
    """Return the page with everything except its rows (2 queries)."""
    columns = list(
        Series.objects.order_by().values_list(*FILTERS.values()).distinct()[: 50 * MAX_CHOICES]
    )
    choices = {
        name: tuple(sorted({row[number] for row in columns} - {"", None}))
        for number, name in enumerate(FILTERS)
    }
    problem = Problem.objects.filter(pk=filters.problem).only("op", "summary").first()
    return SeriesList(
        filters=filters,
        problem=str(problem) if problem else "",
        choices={name: values[:MAX_CHOICES] for name, values in choices.items()},
        shortened=tuple(name for name, values in choices.items() if len(values) > MAX_CHOICES),
        **of_rows,
    )


def series_rows(series: Sequence[Series]) -> tuple[SeriesRow, ...]:
    """Return rows with their latest point, change and slow machine (3 queries)."""
    latest = latest_values(series)
    units = {row.pk: row.unit for row in series}
    keys = RawSQL(_LATEST, [list(units)])  # noqa: S611 - no text of others
    rows = Change.objects.filter(pk__in=keys).select_related("revision", "previous", "alert")
    changes = {
        row.series_id: change_summary(row, units[row.series_id])
        for row in rows.defer("explanation")
    }
    machines = _open_machines(units)
    return tuple(
        SeriesRow(
            series_head(row),
            latest.get(row.pk),
            changes.get(row.pk),
            *machines.get(row.pk, ("", "")),
        )
        for row in series
    )


def _open_machines(series: Collection[int]) -> dict[int, tuple[str, str]]:
    """Return the machine of the latest open alert that set points of a series aside, and the
    address of the alert, by series (1 query)."""
    rows = Change.objects.filter(
        series__in=series, alert__kind=AlertKind.MACHINE, alert__state__in=OPEN_ALERT_STATES
    )
    found = rows.order_by("alert").values_list("series", "alert__machine", "alert")
    return {pk: (machine, reverse("alert", args=[alert])) for pk, machine, alert in found}


def _filtered_series(filters: Filters) -> QuerySet[Series]:
    rows = Series.objects.filter(last_at__isnull=False)
    for word in filters.words.split()[:MAX_WORDS]:
        rows = rows.filter(
            Q(problem__icontains=word)
            | Q(device_name__icontains=word)
            | Q(target__icontains=word)
            | Q(metric__icontains=word)
        )
    exact = {FILTERS[name]: value for name, value in (filters.exact or {}).items() if value}
    rows = rows.filter(**exact)
    if filters.problem:
        rows = rows.filter(own_problem=filters.problem)
    if filters.changed:
        since = timezone.now() - timedelta(days=filters.changed)
        moved = Change.objects.filter(series=OuterRef("pk"), at__gte=since, withdrawn_at=None)
        rows = rows.filter(Exists(moved))
    if filters.suspected:
        rows = rows.filter(suspected_from__isnull=False)
    return rows


def _after_cursor(rows: QuerySet[Series], after: Cursor | None = None) -> QuerySet[Series]:
    if after is not None:
        behind = Q(last_at__lt=after.at) | Q(last_at=after.at, id__lt=after.id)
        rows = rows.filter(behind, last_at__lte=after.at)
    return rows.order_by("-last_at", "-id")
