"""Points of machines that changed: set aside while the machine's alert is open, and restored from
the time on at which the machine is back.

A point that is set aside has a ``Withdrawal`` of the alert. Each function is one statement,
for any number of points: a machine may have thousands of series.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Q

from codegen_app.tracking.models import (
    OPEN_ALERT_STATES,
    VALID,
    AlertKind,
    AlertState,
    MachineFinding,
    Series,
)

_OPEN = [str(state) for state in OPEN_ALERT_STATES]

# Whether a point's conditions and series are of a machine: of its host, or of its device model
# without a host.
_OF_MACHINE = """
CASE WHEN machine.host <> '' THEN conditions.facts->>'host' = machine.host
ELSE COALESCE(conditions.facts->>'host', '') = '' AND series.device_name = machine.device_name END
"""

# Kiln closed the alert: points that were measured until then may still come.
_IS_BACK = """
alert.state = 'fixed' AND alert.recovered_at IS NOT NULL AND machine.is_set_aside
"""

_MEASURED = f"""
SELECT series.id FROM (SELECT %s::text AS host, %s::text AS device_name) AS machine
CROSS JOIN codegen_app_series AS series
CROSS JOIN LATERAL (
    SELECT FROM codegen_app_datum AS datum
    JOIN codegen_app_conditions AS conditions ON conditions.id = datum.conditions_id
    WHERE datum.series_id = series.id AND datum.is_trunk AND datum.at >= %s
        AND datum.measured_at >= %s AND {_OF_MACHINE}
    LIMIT 1
) AS measured
WHERE series.last_at >= %s
"""  # noqa: S608 - our own names

# A point that a person restored stays restored.
_SET_ASIDE = f"""
WITH due AS (
    SELECT datum.id, datum.series_id, datum.at, datum.value, machine.alert_id,
        'machine ' || left(alert.machine, 400) || ' changed: alert ' || alert.id AS reason
    FROM unnest(%s::bigint[], %s::timestamptz[], %s::timestamptz[]) AS asked(id, since, upto)
    JOIN codegen_app_series AS series ON series.id = asked.id
    JOIN codegen_app_datum AS datum ON datum.series_id = asked.id AND datum.is_trunk
        AND datum.at >= asked.since AND datum.at <= asked.upto
    JOIN codegen_app_conditions AS conditions ON conditions.id = datum.conditions_id
    JOIN codegen_app_machinefinding AS machine ON {_OF_MACHINE}
    JOIN codegen_app_alert AS alert ON alert.id = machine.alert_id
        AND alert.kind = 'machine' AND datum.measured_at >= alert.at
        AND (alert.state = ANY(%s) OR {_IS_BACK} AND datum.measured_at < alert.recovered_at)
    WHERE {VALID.format(datum="datum")} AND NOT EXISTS (
        SELECT FROM codegen_app_withdrawal AS earlier
        WHERE earlier.datum_id = datum.id AND earlier.alert_id = alert.id
            AND earlier.restored_by_id IS NOT NULL
    )
), added AS (
    INSERT INTO codegen_app_withdrawal (datum_id, series_id, alert_id, reason, at)
    SELECT id, series_id, alert_id, reason, statement_timestamp() FROM due
    ON CONFLICT DO NOTHING RETURNING datum_id
), counted AS (
    SELECT due.series_id, count(*) AS n, count(*) FILTER (WHERE due.value <= 0) AS not_positive,
        min(due.at) AS at
    FROM added JOIN due ON due.id = added.datum_id GROUP BY due.series_id
)
UPDATE codegen_app_series AS series SET
    withdrawn = series.withdrawn + counted.n,
    not_positive = series.not_positive - counted.not_positive,
    unchecked_from = LEAST(series.unchecked_from, counted.at)
FROM counted WHERE series.id = counted.series_id
"""  # noqa: S608 - our own names

_RESTORE = """
WITH restored AS (
    UPDATE codegen_app_withdrawal AS withdrawal SET restored_at = statement_timestamp()
    FROM codegen_app_datum AS datum
    WHERE datum.id = withdrawal.datum_id AND withdrawal.alert_id = %(alert)s
        AND withdrawal.restored_at IS NULL
        AND (%(since)s::timestamptz IS NULL OR datum.measured_at >= %(since)s)
    RETURNING datum.series_id, datum.at, datum.value, datum.is_trunk
), counted AS (
    SELECT series_id, count(*) AS n, count(*) FILTER (WHERE value <= 0) AS not_positive,
        min(at) AS at
    FROM restored WHERE is_trunk GROUP BY series_id
)
UPDATE codegen_app_series AS series SET
    withdrawn = series.withdrawn - counted.n,
    not_positive = series.not_positive + counted.not_positive,
    unchecked_from = LEAST(series.unchecked_from, counted.at)
FROM counted WHERE series.id = counted.series_id
"""


def has_machines() -> bool:
    """Return whether points of any machine are set aside when they arrive (1 query)."""
    is_back = Q(alert__state=AlertState.FIXED, alert__recovered_at__isnull=False)
    is_open = Q(alert__state__in=OPEN_ALERT_STATES)
    return MachineFinding.objects.filter(is_open | is_back, alert__kind=AlertKind.MACHINE).exists()


def measured_series(host: str, device_name: str, place: datetime, since: datetime) -> list[int]:
    """Return the series with points of a machine that were measured since a time and lie behind a
    place in the history (1 query)."""
    with connection.cursor() as cursor:
        cursor.execute(_MEASURED, [host, device_name, place, since, place])
        return [pk for (pk,) in cursor.fetchall()]


def set_aside(series: Sequence[int], since: Sequence[datetime], upto: Sequence[datetime]) -> int:
    """Set aside the points of machines with open alerts in these series, which are locked, between
    two places in the history; of machines that are back, those measured before. Return in how many
    series (1 query)."""
    return _execute(_SET_ASIDE, [list(series), list(since), list(upto), _OPEN])


def restore(alert: int, since: datetime | None = None) -> int:
    """Restore the points of an alert that were measured since a time (None: all); return in how
    many series (2 queries)."""
    lock_series(
        Series.objects.filter(withdrawals__alert=alert, withdrawals__restored_at=None).values_list(
            "pk", flat=True
        )
    )
    return _execute(_RESTORE, {"alert": alert, "since": since})


def lock_series(keys: Iterable[int]) -> None:
    """Lock series in the order in which points are stored in them."""
    ordered = Series.objects.filter(pk__in=list(keys)).order_by("pk").select_for_update()
    list(ordered.values_list("pk", flat=True))


def _execute(statement: str, parameters: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return int(cursor.rowcount)
