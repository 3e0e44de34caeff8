"""The list of alerts: the newest first, filtered by the address."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Count, Q, Value
from django.db.models.functions import Collate, Concat, Lower

from codegen_app.tracking.models import (
    LISTED,
    OPEN_ALERT_STATES,
    QUIET_KINDS,
    Alert,
    AlertKind,
    AlertState,
    Change,
    Series,
)
from codegen_app.tracking.pages.alerts.columns import COLUMNS
from codegen_app.tracking.queries.alert_rows import (
    AlertRow,
    alert_rows,
    top_level_alerts,
    unfolded_rows,
    with_folded,
)
from codegen_app.web.tables import Table, TableQuery, build_table

PAGE_SIZE = 50
MAX_ROWS = 5_000  # rows that are sorted, filtered by columns and copied
OPEN, ALL = "open", "all"
ME, NOBODY = "me", "nobody"
STATES = (OPEN, *AlertState.values, ALL)
_RELATED = ("revision", "series", "assignee")


@dataclass(frozen=True)
class AlertFilter:
    """The filter of the list. ``assignee``: a name, ``me``, ``nobody``, or "" for any; ``below``
    and ``above``: keys between which the list begins; ``linked``: list linked alerts by
    themselves."""

    state: str = OPEN
    kind: str = ""
    assignee: str = ""
    query: str = ""
    below: int | None = None
    above: int | None = None
    linked: bool = False


@dataclass(frozen=True)
class StateCount:
    """The number of top-level alerts of a state, regardless of the other filters."""

    state: str
    label: str
    count: int


@dataclass(frozen=True)
class QuietCount:
    """The number of open top-level alerts of a kind that is listed only if the filter names it."""

    kind: str
    label: str
    count: int


@dataclass(frozen=True)
class AlertList:
    """A page of alerts out of ``found``. ``newer`` and ``older`` are the starts of the adjacent
    pages."""

    narrowed: AlertFilter
    states: tuple[StateCount, ...]
    alerts: tuple[AlertRow, ...]
    found: int
    newer: int | None
    older: int | None
    quiet: tuple[QuietCount, ...] = ()

    @property
    def most(self) -> int:
        """The number of alerts that are sorted and filtered by columns if there are more; 0 if all
        are."""
        return MAX_ROWS if self.found > MAX_ROWS else 0

    @property
    def is_narrowed(self) -> bool:
        """Whether a filter is set, so that another address might list more."""
        filters = self.narrowed
        return bool(filters.kind or filters.assignee or filters.query or filters.state != ALL)

    @property
    def nothing_open(self) -> bool:
        """Whether the filter is only the open state."""
        filters = self.narrowed
        return filters.state == OPEN and not (filters.query or filters.kind or filters.assignee)

    @property
    def total(self) -> int:
        """The number of alerts in any state."""
        return next(row.count for row in self.states if row.state == ALL)


def alert_list(
    filters: AlertFilter, reader: AbstractBaseUser | AnonymousUser | None = None
) -> AlertList:
    """Return alerts, the newest first, ``PAGE_SIZE`` at a time (4 queries, one more if not all
    fit).

    An alert linked to another is folded under it, and listed by itself only when filtering by an
    assignee or words.
    """
    matching = Alert.objects.filter(alert_condition(filters, reader))
    rows = matching.select_related(*_RELATED)
    upward = filters.above is not None
    if upward:
        rows = rows.filter(pk__gt=filters.above).order_by("pk")
    elif filters.below is not None:
        rows = rows.filter(pk__lt=filters.below).order_by("-pk")
    else:
        rows = rows.order_by("-pk")
    page_alerts = list(rows[: PAGE_SIZE + 1])
    has_more, page_alerts = len(page_alerts) > PAGE_SIZE, page_alerts[:PAGE_SIZE]
    if upward:
        page_alerts.reverse()
    has_older = has_more or upward
    has_newer = has_more if upward else filters.below is not None
    states, quiet = _states()
    return AlertList(
        narrowed=filters,
        states=states,
        quiet=quiet,
        alerts=alert_rows(page_alerts),
        found=matching.count() if has_older or has_newer else len(page_alerts),
        newer=page_alerts[0].pk if page_alerts and has_newer else None,
        older=page_alerts[-1].pk if page_alerts and has_older else None,
    )


def alert_table(
    filters: AlertFilter, query: TableQuery, reader: AbstractBaseUser | AnonymousUser | None = None
) -> tuple[AlertList, Table[AlertRow]]:
    """Return alerts sorted and filtered by columns, ``PAGE_SIZE`` at a time; only the newest
    ``MAX_ROWS`` if there are more (5 queries)."""
    matching = Alert.objects.filter(alert_condition(filters, reader))
    rows = matching.select_related(*_RELATED).order_by("-pk")[:MAX_ROWS]
    table = build_table("alerts", COLUMNS, unfolded_rows(rows), query, PAGE_SIZE)
    table = replace(table, rows=with_folded(table.rows))
    states, quiet = _states()
    page = AlertList(filters, states, tuple(table.rows), matching.count(), None, None, quiet)
    return page, table


def _states() -> tuple[tuple[StateCount, ...], tuple[QuietCount, ...]]:
    """Count alerts by state, and the open ones of quiet kinds, which do not count there (1
    query)."""
    rows = Alert.objects.filter(top_level_alerts()).order_by().values_list("state", "kind")
    counts: dict[str, int] = {}
    quiet = dict.fromkeys(QUIET_KINDS, 0)
    for state, kind, count in rows.annotate(count=Count("pk")):
        if kind not in QUIET_KINDS:
            counts[state] = counts.get(state, 0) + count
        elif state in OPEN_ALERT_STATES:
            quiet[AlertKind(kind)] += count
    found = {OPEN: sum(counts.get(state, 0) for state in OPEN_ALERT_STATES)}
    found |= {state: counts.get(state, 0) for state in AlertState.values}
    found[ALL] = sum(counts.values())
    labels = dict(AlertState.choices)
    states = (StateCount(key, str(labels.get(key, key)), count) for key, count in found.items())
    open_quiet = (QuietCount(kind, str(kind.label), n) for kind, n in quiet.items() if n)
    return tuple(states), tuple(open_quiet)


def alert_condition(
    filters: AlertFilter, reader: AbstractBaseUser | AnonymousUser | None = None
) -> Q:
    """Return the condition of the filter. An alert that is linked to another is left out unless an
    assignee, words, or ``linked`` ask for it, one of a quiet kind unless these or its kind do."""
    condition = Q()
    if filters.state == OPEN:
        condition &= Q(state__in=OPEN_ALERT_STATES)
    elif filters.state != ALL:
        condition &= Q(state=filters.state)
    if filters.kind in AlertKind.values:
        condition &= Q(kind=filters.kind)
    if filters.assignee == NOBODY:
        condition &= Q(assignee=None)
    elif filters.assignee == ME:
        condition &= Q(assignee_id=reader.pk if reader is not None and reader.pk else 0)
    elif filters.assignee:
        condition &= Q(assignee__username=filters.assignee)
    if filters.query:
        condition &= _matches_query(filters.query)
    elif not filters.assignee and not filters.linked:
        condition &= top_level_alerts()
        if not filters.kind:
            condition &= ~Q(kind__in=QUIET_KINDS)
    return condition


def _matches_query(query: str) -> Q:
    """Match alerts by their number, or by all words in their revision, machine or one of their
    series."""
    number = query.removeprefix("#")
    if query.startswith("#") and number.isdecimal() and len(number) < 19:
        return Q(pk=int(number))
    text = Concat("problem", Value(" "), "device_name", Value(" "), "metric", Value(" "), "target")
    # With fifty thousand series, the C collation takes a third of the time of a language's case
    # rules.
    series, subject = Series.objects.annotate(text=Lower(Collate(text, "C"))), Q()
    for word in query.split():
        series = series.filter(text__contains=word.lower())
        subject &= (
            Q(revision__name__istartswith=word)
            | Q(revision__branch__icontains=word)
            | Q(machine__icontains=word)
        )
    changes = Change.objects.filter(LISTED, series__in=series.values("pk"), alert__isnull=False)
    missing = Alert.objects.filter(series__isnull=False).values("series")
    silent = series.filter(pk__in=missing)
    return subject | Q(pk__in=changes.values("alert")) | Q(series__in=silent.values("pk"))
