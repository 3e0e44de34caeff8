"""Alerts for explained changes: one for those that may have one cause, which more may join.

``Change.raised_at`` is the queue: null if a change is new, withdrawn, or differs from when its
alerts were updated. One run's alerts, events, deliveries and marks are one transaction, so that a
killed worker neither repeats nor loses a notification.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from django.db import connection, transaction
from django.db.models import Q, QuerySet

from codegen_app.tracking.alerting import grouping, links, windows
from codegen_app.tracking.alerting.events import (
    change_alert,
    column_values,
    record_event,
    set_columns,
    was_closed_by_kiln,
)
from codegen_app.tracking.alerting.owners import assign_owners
from codegen_app.tracking.alerting.status import AlertStatus, alert_statuses
from codegen_app.tracking.alerting.triage import lock_links
from codegen_app.tracking.models import (
    OPEN_ALERT_STATES,
    Alert,
    AlertState,
    CauseClass,
    Change,
    EventKind,
)
from codegen_app.tracking.rules.settings import series_settings
from scheduler.track.evidence import Cause

BATCH_SIZE = 2000
# An expression for each row would take most of the time of a large batch.
_RAISED = """
UPDATE codegen_app_change AS change SET alert_id = raised.alert_id, raised_at = clock_timestamp()
FROM unnest(%s::bigint[], %s::bigint[]) AS raised(id, alert_id)
WHERE change.id = raised.id
"""
_OPEN = {str(state) for state in OPEN_ALERT_STATES}


def pending_changes() -> QuerySet[Change]:
    """Return changes whose alerts are to be updated and can be."""
    ready = Q(withdrawn_at__isnull=False) | Q(explained_at__isnull=False)
    return Change.objects.filter(ready, raised_at=None)


@transaction.atomic
def raise_alerts() -> int:
    """Update the alerts of some waiting changes; return how many changes (0: none waits, or others
    are updating them).

    It holds the lock of all links, so that no two workers raise alerts for one window.
    """
    rows = list(
        pending_changes()
        .select_for_update(skip_locked=True, of=("self",))
        .select_related("series__rule", "series__pattern_rule", "revision")
        .order_by("revision_id", "pk")[:BATCH_SIZE]
    )
    if not rows:
        return 0
    lock_links()
    affected = _affected_alerts(rows)
    joinable = [row for row in rows if _is_alertable(row) and not series_settings(row.series).muted]
    candidates = grouping.candidates(joinable)
    found = Alert.objects.filter(pk__in=affected | candidates, revision__isnull=False)
    found = found.select_for_update(of=("self",)).select_related("revision")
    locked = {row.pk: row for row in found.order_by("pk")}  # ``machines`` has those of machines
    removed = _removed_changes(rows, locked)
    reduced = {row.alert_id for row in removed}
    leaving = {row.pk for row in removed}
    joining = [row for row in joinable if row.alert_id is None or row.pk in leaving]
    joined = grouping.join_alerts(joining, removed, locked)
    for row in rows:
        if row.withdrawn_at is None and not _is_alertable(row):
            row.alert = None  # noise has no alert; a withdrawn change keeps its alert
    with connection.cursor() as cursor:
        cursor.execute(_RAISED, [[row.pk for row in rows], [row.alert_id for row in rows]])
    alerts = {key: locked[key] for key in affected & locked.keys()} | joined.alerts
    # A link says what an alert belongs to: create it before anybody is notified.
    links.link_new([alerts[key] for key in sorted(joined.created)])
    statuses = alert_statuses(alerts.values())
    for key, alert in sorted(alerts.items()):
        _update_columns(alert, statuses[key], joined.classes.get(key))
        if key in joined.created:
            _record_raised(alert, joined.created[key])
        elif key in joined.growth:
            _reopen(alert)
            _record_growth(alert, joined.growth[key])
        _update_recovery(alert, statuses[key], has_removed_changes=key in reduced)
    worst_series = [(alerts[key], statuses[key].worst) for key in sorted(joined.created)]
    assign_owners(
        [
            (alert, worst.series)
            for alert, worst in worst_series
            if worst is not None and alert.state != AlertState.HISTORY
        ]
    )
    return len(rows)


def _is_alertable(row: Change) -> bool:
    """Return whether a change raises alerts: one of the same code in the same environment, or one
    that may be chance, is noise."""
    is_noise = row.cause == Cause.NOISE or row.explanation.get("feeds_noise_floor", False)
    return row.withdrawn_at is None and not is_noise


def _affected_alerts(rows: Collection[Change]) -> set[int]:
    """Return the keys of the alerts that these changes belong to, have brought back to the earlier
    level, or, if withdrawn, no longer do (2 queries)."""
    keys = {row.alert_id for row in rows if row.alert_id is not None}
    live = Change.objects.filter(series__in={row.series_id for row in rows}, withdrawn_at=None)
    still_open = live.filter(alert__state__in=OPEN_ALERT_STATES)
    withdrawn = {row.series_id for row in rows if row.withdrawn_at is not None}
    recovered = live.filter(
        series__in=withdrawn, alert__state=AlertState.FIXED, alert__recovered_at__isnull=False
    )
    for found in (still_open, recovered):
        keys |= {key for key in found.values_list("alert_id", flat=True) if key is not None}
    return keys


def _removed_changes(rows: Iterable[Change], alerts: Mapping[int, Alert]) -> list[Change]:
    """Return the changes that leave their alerts: withdrawn ones, noise, and those that are
    another thing, by their cause by now, or since their window no longer overlaps what their
    alert's and those of earlier ones share."""
    removed = []
    shared: dict[int, windows.Window] = {}
    for row in sorted(rows, key=lambda row: (row.at, row.pk)):
        if (alert := alerts.get(row.alert_id or 0)) is None:
            continue
        if not _is_alertable(row):
            removed.append(row)
            continue
        window = windows.change_window(row)
        alert_window = shared.get(alert.pk) or windows.alert_window(alert)
        is_alike = windows.may_share_alert(
            windows.cause_class(row.cause), CauseClass(alert.cause_class)
        )
        if is_alike and window.overlaps(alert_window):
            shared[alert.pk] = alert_window.narrowed_to(window)
        elif not series_settings(row.series).muted:
            removed.append(row)
    return removed


def _update_columns(alert: Alert, status: AlertStatus, cause_class: CauseClass | None) -> None:
    """Store the columns that lists show, and the window of the alert's changes; record that this
    begins with another revision."""
    worst, window, revision = status.worst, status.window, alert.revision
    columns: dict[str, Any] = {
        "n_series": status.n_series,
        "worst_ratio": worst.after / worst.before if worst else None,
        "cause": worst.cause if worst else "",
    }
    if cause_class is not None:
        columns["cause_class"] = cause_class.value
    if window is not None and window != windows.alert_window(alert):
        columns |= {"revision": window.bad, "at": window.at, "commits": None}
        columns |= {"good_revision": window.good, "since": window.since}
    if column_values(alert, columns) != columns:
        set_columns(alert, columns)
    if window is not None and revision is not None and window.bad != revision.pk:
        note = f"the first bad revision is {alert.revision}, not {revision}"
        record_event(alert, EventKind.NOTE, note=note)


def _record_raised(alert: Alert, first: Change) -> None:
    """Record that an alert is new, and notify channels, unless it is history."""
    note = ""
    if alert.state == AlertState.HISTORY:
        days = (first.found_at - (first.shown_at or first.at)).days
        note = f"history: {days} days old when its points arrived; no messages"
    record_event(alert, EventKind.RAISED, note=note)


def _record_growth(alert: Alert, growth: grouping.Growth) -> None:
    """Record that an alert has more series, and notify channels of those with new points."""
    if growth.new:
        record_event(alert, EventKind.GREW, note=f"{growth.new} series more")
    if growth.old:
        note = f"{growth.old} series more, by points that were old when they arrived"
        record_event(alert, EventKind.NOTE, note=note)


def _update_recovery(alert: Alert, status: AlertStatus, *, has_removed_changes: bool) -> None:
    """Record that the alert is back at the earlier level, or no longer is. If later points
    disproved all its changes, close it if it is untouched; otherwise notify its people, who
    decide."""
    if alert.state == AlertState.FIXED and status.n_series and not status.was_back:
        _reopen_unrecovered(alert)
    if alert.state not in _OPEN:
        return
    since, known = status.recovered_since, alert.recovered_at
    if since != known:
        set_columns(alert, {"recovered_at": since})
    if since is not None and known is None:
        record_event(alert, EventKind.RECOVERED, note=f"{status.n_series} series back")
    elif since is None and known is not None:
        record_event(alert, EventKind.NOTE, note="no longer at the previous level")
    if status.n_series or not has_removed_changes:
        return
    note = "later points no longer show a change"
    if alert.state == AlertState.NEW:
        change_alert(alert, EventKind.STATE, {"state": AlertState.INVALID.value}, note=note)
    else:
        record_event(alert, EventKind.NOTE, note=note)


def _reopen(alert: Alert) -> None:
    """Reopen an alert that Kiln closed because it had no changes, and that has some again."""
    if alert.state == AlertState.INVALID and was_closed_by_kiln([alert.pk]):
        columns = {"state": AlertState.NEW.value}
        change_alert(alert, EventKind.STATE, columns, note="changes were found again")


def _reopen_unrecovered(alert: Alert) -> None:
    """Reopen an alert that Kiln closed because it had recovered, which later points disprove. A new
    change for the worse has an alert of its own."""
    if alert.recovered_at is not None and was_closed_by_kiln([alert.pk]):
        note = "later points no longer show that it recovered"
        change_alert(alert, EventKind.STATE, {"state": AlertState.NEW.value}, note=note)
        set_columns(alert, {"recovered_at": None})
