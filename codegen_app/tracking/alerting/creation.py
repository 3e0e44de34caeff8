"""Alerts for explained changes: one per revision and direction, which more series may join.

``Change.raised_at`` is the queue: null if a change is new, withdrawn, or differs from when its
alerts were updated. One run's alerts, events, deliveries and marks are one transaction, so that a
killed worker neither repeats nor loses a notification.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from codegen_app.tracking.alerting import links
from codegen_app.tracking.alerting.events import (
    change_alert,
    column_values,
    record_event,
    set_columns,
)
from codegen_app.tracking.alerting.owners import assign_owners
from codegen_app.tracking.alerting.status import AlertStatus, alert_statuses
from codegen_app.tracking.alerting.triage import lock_links
from codegen_app.tracking.models import (
    OPEN_ALERT_STATES,
    Alert,
    AlertEvent,
    AlertKind,
    AlertState,
    Change,
    EventKind,
)
from codegen_app.tracking.rules.settings import series_settings
from scheduler.track.evidence import Cause

BATCH_SIZE = 2000
_OPEN = {str(state) for state in OPEN_ALERT_STATES}
_Key = tuple[str, int]


def pending_changes() -> QuerySet[Change]:
    """Return changes whose alerts are to be updated and can be."""
    ready = Q(withdrawn_at__isnull=False) | Q(explained_at__isnull=False)
    return Change.objects.filter(ready, raised_at=None)


@transaction.atomic
def raise_alerts() -> int:
    """Update the alerts of some waiting changes; return how many changes (0: none waits, or others
    are updating them)."""
    rows = list(
        pending_changes()
        .select_for_update(skip_locked=True, of=("self",))
        .select_related("series__rule", "series__pattern_rule", "revision")
        .order_by("revision_id", "pk")[:BATCH_SIZE]
    )
    if not rows:
        return 0
    joining = [
        row
        for row in rows
        if row.alert_id is None and _is_alertable(row) and not series_settings(row.series).muted
    ]
    if joining:
        lock_links()
    reduced = {row.alert_id for row in rows if row.alert_id and not _is_alertable(row)}
    alerts = _lock_alerts(joining, rows)
    by_key = {(alert.kind, alert.revision_id): alert for alert in alerts}
    for row in joining:
        row.alert = by_key[_key(row)]
    now = timezone.now()
    for row in rows:
        row.raised_at = now
        if row.withdrawn_at is None and not _is_alertable(row):
            row.alert = None  # noise has no alert; a withdrawn change keeps its alert
    Change.objects.bulk_update(rows, ["alert", "raised_at"], batch_size=500)
    keys = {alert.pk for alert in alerts}
    raised = AlertEvent.objects.filter(alert__in=keys, kind=EventKind.RAISED)
    new = keys - set(raised.values_list("alert_id", flat=True))
    # A link says what an alert belongs to: create it before anybody is notified.
    links.link_new([alert for alert in alerts if alert.pk in new])
    grown = Counter(row.alert_id for row in joining)
    statuses = alert_statuses(alerts)
    for alert in alerts:
        status = statuses[alert.pk]
        worst = status.worst
        summary = {  # the columns that lists show
            "n_series": status.n_series,
            "worst_ratio": worst.after / worst.before if worst else None,
            "cause": worst.cause if worst else "",
        }
        if column_values(alert, summary) != summary:
            set_columns(alert, summary)
        if alert.pk in new:
            record_event(alert, EventKind.RAISED)
        elif alert.pk in grown:
            _reopen(alert)
            record_event(alert, EventKind.GREW, note=f"{grown[alert.pk]} series more")
        _update_recovery(alert, status, has_removed_changes=alert.pk in reduced)
    worst_series = [(alert, statuses[alert.pk].worst) for alert in alerts if alert.pk in new]
    assign_owners([(alert, worst.series) for alert, worst in worst_series if worst is not None])
    return len(rows)


def _is_alertable(row: Change) -> bool:
    """Return whether a change raises alerts: one of the same code in the same environment, or one
    that may be chance, is noise."""
    is_noise = row.cause == Cause.NOISE or row.explanation.get("feeds_noise_floor", False)
    return row.withdrawn_at is None and not is_noise


def _key(row: Change) -> _Key:
    kind = AlertKind.REGRESSION if row.worse else AlertKind.IMPROVEMENT
    return str(kind), row.revision_id


def _lock_alerts(joining: Sequence[Change], rows: Collection[Change]) -> list[Alert]:
    """Return all alerts that these changes may affect, locked in one order: those that they join
    (created if new), belong to, or have brought back to the earlier level."""
    moments: dict[_Key, Change] = {}
    for row in joining:
        moments.setdefault(_key(row), row)
    Alert.objects.bulk_create(
        [
            Alert(kind=kind, revision_id=revision, at=row.revision.at or row.at)
            for (kind, revision), row in sorted(moments.items())
        ],
        ignore_conflicts=True,
    )
    revisions = {revision for _, revision in moments}
    series = {row.series_id for row in rows}
    of_series = Change.objects.filter(
        series__in=series, withdrawn_at=None, alert__state__in=OPEN_ALERT_STATES
    )
    keys = {row.alert_id for row in rows if row.alert_id}
    keys |= set(of_series.values_list("alert_id", flat=True))
    found = Alert.objects.exclude(kind=AlertKind.MACHINE).filter(  # ``machines`` has these
        Q(pk__in=keys) | Q(revision__in=revisions, kind__in={kind for kind, _ in moments})
    )
    locked = found.select_for_update(of=("self",)).select_related("revision").order_by("pk")
    return [row for row in locked if row.pk in keys or (row.kind, row.revision_id) in moments]


def _update_recovery(alert: Alert, status: AlertStatus, *, has_removed_changes: bool) -> None:
    """Record that the alert is back at the earlier level, or no longer is. If later points
    disproved all its changes, close it if it is untouched; otherwise notify its people, who
    decide."""
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
    if alert.state != AlertState.INVALID:
        return
    last = alert.events.filter(kind__in=(EventKind.STATE, EventKind.UNDO)).last()
    if last is not None and last.by_id is None:
        columns = {"state": AlertState.NEW.value}
        change_alert(alert, EventKind.STATE, columns, note="changes were found again")
