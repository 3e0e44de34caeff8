"""The weekly digest: what happened to alerts in a period, as an e-mail.

It is built when it is sent. States, assignees and what is still open are those of that moment; what
is new, closed or recovered is of the period.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from django.db.models import Exists, OuterRef, Q, QuerySet

from codegen_app.tracking.models import (
    OPEN_ALERT_STATES,
    Alert,
    AlertEvent,
    AlertKind,
    AlertState,
    Budget,
    Change,
    Channel,
    EventKind,
    Series,
)
from codegen_app.tracking.notifying import email
from codegen_app.tracking.queries.alert_rows import AlertRow, top_level_alerts, unfolded_rows
from codegen_app.tracking.queries.budget_values import BudgetRow, budget_rows
from codegen_app.tracking.queries.series_findings import FindingRow, findings_raised
from codegen_app.web.addresses import absolute_url
from scheduler.text import one_line
from scheduler.track.effect import format_change
from scheduler.track.evidence import cause_text

PERIOD = timedelta(days=7)
OLD = timedelta(days=14)
"""An alert that has been open for this long is listed as such."""
_MAX_ROWS = 20  # of a section
_MAX_READ = 500
_CLOSED_STATES = (AlertState.EXPECTED, AlertState.FIXED, AlertState.INVALID)


@dataclass(frozen=True)
class Section:
    """Rows under a title, each of one or two lines; ``total`` is the number with those left out."""

    title: str
    rows: tuple[tuple[str, ...], ...]
    total: int


@dataclass(frozen=True)
class Digest:
    """What happened from ``since`` to ``until``; ``is_test``: requested on the page.
    ``n_series`` series have points of the period."""

    channel: str
    since: datetime
    until: datetime
    is_test: bool
    n_new: int
    n_open: int
    n_series: int
    sections: tuple[Section, ...]

    @property
    def subject(self) -> str:
        test = "test: " if self.is_test else ""
        counts = f"{self.n_new} new regressions, {self.n_open} open"
        return f"[Kiln] {test}week to {self.until:%Y-%m-%d}: {counts}"

    @property
    def text(self) -> str:
        lines = [
            f"From {self.since:%Y-%m-%d %H:%M} to {self.until:%Y-%m-%d %H:%M} UTC:"
            f" {self.n_new} new regressions, {self.n_open} regressions open,"
            f" {self.n_series} series measured."
        ]
        if self.is_test:
            lines.insert(0, "This is a test, requested on Kiln's Channels page.")
        if not self.sections:
            lines.append("Nothing to report.")
        for section in self.sections:
            lines += ["", f"{section.title} ({section.total})"]
            lines += [f"  {line}" for row in section.rows for line in row]
            if (more := section.total - len(section.rows)) > 0:
                lines.append(f"  and {more} more: {absolute_url('/alerts')}")
        return email.to_ascii("\n".join([*lines, *email.footer(self.channel)])) + "\n"


def build_digest(channel: Channel, since: datetime, until: datetime, *, is_test: bool) -> Digest:
    """Return the digest of a channel's alerts: those of its kinds with its words, besides drifts,
    changes of spread, second modes and budgets (at most 26 queries)."""
    alerts = Alert.objects.filter(_matches(channel.search)).exclude(state=AlertState.HISTORY)
    alerts = alerts.filter(kind__in=channel.alerts).filter(top_level_alerts())
    raised = alerts.filter(created_at__gte=since, created_at__lt=until)
    regressions = _rows(raised.filter(kind=AlertKind.REGRESSION))
    measured = Series.objects.filter(_has_words(channel.search), last_at__gte=since)
    is_open = Q(state__in=OPEN_ALERT_STATES)
    return Digest(
        channel=channel.name,
        since=since,
        until=until,
        is_test=is_test,
        n_new=raised.filter(kind=AlertKind.REGRESSION).count(),
        n_open=alerts.filter(is_open, kind=AlertKind.REGRESSION).count(),
        n_series=measured.count(),
        sections=tuple(
            section
            for section in (
                *_by_owner(regressions),
                _section("New improvements", raised.filter(kind=AlertKind.IMPROVEMENT)),
                _section("Machines that changed", raised.filter(kind=AlertKind.MACHINE)),
                _section("Data missing now", alerts.filter(is_open, kind=AlertKind.MISSING)),
                _section("Recovered", alerts.filter(_had_event(since, until, recovered=True))),
                _section(
                    "Closed",
                    alerts.filter(_had_event(since, until), state__in=_CLOSED_STATES),
                ),
                _section(
                    f"Open for more than {OLD.days} days",
                    alerts.filter(is_open, created_at__lt=until - OLD),
                ),
                _findings(since, until, channel.search),
                _budgets(),
            )
            if section.rows
        ),
    )


def _matches(search: str) -> Q:
    """Return the condition that one series of an alert has all of the words."""
    if not search:
        return Q()
    matching = Series.objects.filter(_has_words(search))
    changes = Change.objects.filter(alert=OuterRef("pk"), series__in=matching.values("pk"))
    return Exists(changes) | Q(series__in=matching.values("pk"))


def _has_words(search: str) -> Q:
    condition = Q()
    for word in search.split():
        condition &= Q(problem__icontains=word) | Q(device_name__icontains=word)
    return condition


def _had_event(since: datetime, until: datetime, *, recovered: bool = False) -> Exists:
    """Return the condition that an alert recovered, or that its state was set, in the period."""
    kind = EventKind.RECOVERED if recovered else EventKind.STATE
    return Exists(
        AlertEvent.objects.filter(alert=OuterRef("pk"), kind=kind, at__gte=since, at__lt=until)
    )


def _rows(alerts: QuerySet[Alert]) -> list[AlertRow]:
    """Return alerts, the largest change first (2 queries)."""
    related = alerts.select_related("revision", "series", "assignee").order_by("-pk")
    rows = unfolded_rows(related[:_MAX_READ])
    return sorted(
        rows, key=lambda row: -max(row.worst.ratio, 1 / row.worst.ratio) if row.worst else -1.0
    )


def _section(title: str, alerts: QuerySet[Alert]) -> Section:
    rows = _rows(alerts)
    total = alerts.count() if len(rows) == _MAX_READ else len(rows)
    return Section(title, tuple(map(_alert_lines, rows[:_MAX_ROWS])), total)


def _by_owner(regressions: Sequence[AlertRow]) -> Iterator[Section]:
    """Yield a section for each assignee; the last one is of alerts without one."""
    by_name = sorted(regressions, key=lambda row: (not row.assignee, row.assignee))
    for name, group in groupby(by_name, key=lambda row: row.assignee):
        rows = list(group)
        title = f"New regressions: {name or 'without assignee'}"
        yield Section(title, tuple(map(_alert_lines, rows[:_MAX_ROWS])), len(rows))


def _findings(since: datetime, until: datetime, search: str) -> Section:
    words = search.lower().split()
    rows = [
        row
        for row in findings_raised(since, until)
        if all(word in f"{row.series.problem} {row.series.device}".lower() for word in words)
    ]
    shown = tuple(map(_finding_lines, rows[:_MAX_ROWS]))
    return Section("Drifts, changes of spread, second modes", shown, len(rows))


def _budgets() -> Section:
    """Return the budgets that are not met or have no value, the furthest from the limit first."""
    budgets = budget_rows(Budget.objects.select_related("changed_by"))
    rows = sorted(
        (row for row in budgets if not row.met),
        key=lambda row: (row.over is None, -(row.over or 0.0), row.name),
    )
    shown = tuple(map(_budget_lines, rows[:_MAX_ROWS]))
    return Section("Budgets that are not met", shown, len(rows))


def _budget_lines(row: BudgetRow) -> tuple[str, ...]:
    limit = f"limit {row.limit_text}"
    if row.value is None:
        text = f"unknown: {row.reason}; {limit}"
    else:
        text = f"{row.statistic_label} {row.value_text}, {limit}, {row.n_series} series"
    due = f", due {row.due:%Y-%m-%d}" if row.due else ""
    origin = ", generated, not measured" if row.generated else ", emulated" if row.emulated else ""
    return one_line(f"{row.name}: {text}{due}{origin}", 300), f"   {absolute_url(row.url)}"


def _alert_lines(row: AlertRow) -> tuple[str, ...]:
    """Return an alert in two lines: what it is about, and its URL."""
    parts: Iterable[str] = (row.subject,)
    if row.worst is not None:
        origin = "generated, not measured" if row.worst.generated else ""
        origin = origin or ("emulated" if row.worst.emulated else "")
        others = f"and {row.n_series - 1} more series" if row.n_series > 1 else ""
        cause = f"cause: {cause_text(row.cause)}" if row.cause else ""
        parts = (
            *(f"{format_change(row.worst)} {row.worst.series}", others),
            *(f"since {row.subject}", cause, origin),
        )
    elif row.generated:
        parts = (row.subject, "generated, not measured")
    text = ", ".join(filter(None, parts))
    return one_line(f"#{row.id} {row.state_label}: {text}", 300), f"   {absolute_url(row.url)}"


def _finding_lines(row: FindingRow) -> tuple[str, ...]:
    text = f"#{row.alert} {row.kind_label}: {row.series.name}, {row.summary} (95%: {row.interval})"
    origin = ", generated, not measured" if row.series.generated else ""
    return one_line(f"{text}{origin}", 300), f"   {absolute_url(row.alert_url)}"
