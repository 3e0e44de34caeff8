"""What follows from the state of a machine's alert.

While it is open, new points of the machine are set aside. It is closed when the machine is back at
its earlier levels; points measured since then are restored. If a person closes it as expected or
invalid, all its points are restored, and the same changes raise no other alert. The state alone
decides, so that undoing it sets the points aside again.
"""

from __future__ import annotations

from datetime import datetime

from django.db import connection, transaction
from django.db.models import Min, Q, QuerySet

from codegen_app.platform.advisory_lock import LockClass, lock_transaction
from codegen_app.tracking.alerting.events import change_alert
from codegen_app.tracking.alerting.machines import REJECTED, set_aside_from
from codegen_app.tracking.detector import set_aside
from codegen_app.tracking.models import (
    OPEN_ALERT_STATES,
    Alert,
    AlertKind,
    AlertState,
    EventKind,
    MachineFinding,
)
from scheduler.track import machines

_MAX_VALUES = 4000  # that show whether a machine is back, of all its series, but 20 of each

# The latest values of an alert's series that were set aside, in order.
_VALUES_SINCE = """
SELECT change.series_id, change.before, change.after,
    array_agg(point.measured_at ORDER BY point.measured_at, point.id),
    array_agg(point.value ORDER BY point.measured_at, point.id)
FROM codegen_app_change AS change
CROSS JOIN LATERAL (
    SELECT datum.id, datum.measured_at, datum.value
    FROM codegen_app_withdrawal AS withdrawal
    JOIN codegen_app_datum AS datum ON datum.id = withdrawal.datum_id
    WHERE withdrawal.alert_id = change.alert_id AND withdrawal.series_id = change.series_id
        AND withdrawal.restored_at IS NULL AND datum.value > 0 AND datum.value < 'Infinity'
    ORDER BY datum.measured_at DESC, datum.id DESC LIMIT %s
) AS point
WHERE change.alert_id = %s
GROUP BY change.id
"""


def update_alerts() -> int:
    """Apply the states that people set, and close alerts of machines that are back; return how many
    alerts changed."""
    return _apply_states() + _close_alerts()


def has_pending() -> bool:
    """Return whether the state of an alert is to be applied to its points (1 query)."""
    return _unapplied().exists()


def _unapplied() -> QuerySet[Alert]:
    """Return alerts whose state was not applied to the points of their machine."""
    is_set_aside = Q(state__in=REJECTED, finding__is_set_aside=True)
    is_restored = Q(state__in=OPEN_ALERT_STATES, finding__is_set_aside=False)
    return Alert.objects.filter(is_set_aside | is_restored, kind=AlertKind.MACHINE)


@transaction.atomic
def _apply_states() -> int:
    """Restore the points of machines whose alert a person closed as expected or invalid, and set
    them aside again if that was undone."""
    if not has_pending():
        return 0
    lock_transaction(LockClass.MACHINES)
    rows = list(_unapplied().select_related("finding").order_by("pk"))
    for alert in rows:
        finding: MachineFinding = alert.finding
        finding.is_set_aside = not finding.is_set_aside
        if finding.is_set_aside:
            place = alert.changes.aggregate(at=Min("at"))["at"] or alert.at
            measured = set_aside.measured_series(finding.host, finding.device_name, place, alert.at)
            set_aside.lock_series(measured)
            set_aside_from(measured, place)
        else:
            set_aside.restore(alert.pk)
        finding.save(update_fields=["is_set_aside"])
    return len(rows)


@transaction.atomic
def _close_alerts() -> int:
    """Close alerts of machines that are back, and restore the points measured since."""
    is_open = Q(kind=AlertKind.MACHINE, state__in=OPEN_ALERT_STATES)
    rows = list(Alert.objects.filter(is_open).order_by("pk"))
    moments = [(row.pk, since) for row in rows if (since := _back_since(row)) is not None]
    if not moments:
        return 0
    lock_transaction(LockClass.MACHINES)
    count = 0
    for pk, since in moments:
        # Who sets points aside refers to the alert, after locking the series that are locked below.
        locked = Alert.objects.select_for_update(no_key=True)
        alert = locked.filter(is_open, pk=pk).first()
        if alert is None:  # it was closed
            continue
        set_aside.restore(pk, since)
        columns = {"state": AlertState.FIXED.value}
        alert.recovered_at = since
        alert.save(update_fields=["recovered_at"])
        note = "back at the earlier levels; points measured since then are compared again"
        change_alert(alert, EventKind.RECOVERED, columns, note=note)
        count += 1
    return count


def _back_since(alert: Alert) -> datetime | None:
    """Return since when the machine of an alert is back, by the latest points of its series (1
    query)."""
    with connection.cursor() as cursor:
        cursor.execute(_VALUES_SINCE, [max(20, _MAX_VALUES // alert.n_series), alert.pk])
        series = [
            machines.MeasuredSeries(before, after, tuple(times), tuple(values))
            for _, before, after, times, values in cursor.fetchall()
        ]
    return machines.back_since(series)
