"""Alerts for machines: many series of one host that move together with equal code.

``scheduler.track.machines`` decides. While the alert is open, the machine's points are set aside:
those that exist when it is raised, and new ones when the detector reads them
(``services.detection``). The alert is closed when the machine is back at its earlier levels. If a
person closes it as expected or invalid, all its points count again, and it is not raised again for
the same changes; the state alone decides, so that undoing restores the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import Max, Min, Q, QuerySet
from django.utils import timezone

from codegen_app.platform.advisory_lock import LockClass, lock_transaction
from codegen_app.tracking.alerting.events import change_alert, record_event
from codegen_app.tracking.detector import set_aside
from codegen_app.tracking.models import (
    OPEN_ALERT_STATES,
    VALID,
    Alert,
    AlertKind,
    AlertState,
    Change,
    EventKind,
    MachineFinding,
)
from scheduler.track import machines
from scheduler.track.evidence import Cause
from scheduler.track.telemetry import TelemetryDifference

MAX_AGE = timedelta(days=14)
"""Changes that were shown longer ago, by their place in the history, are of an imported history."""

_END_OF_TIME = datetime(9999, 12, 31, tzinfo=UTC)
_REJECTED = (AlertState.EXPECTED, AlertState.INVALID)
_MAX_VALUES = 4000  # that show whether a machine is back, of all its series, but 20 of each

# Each change's first point at the new level, and the times of measurement between which it moved:
# the detector may place a change a point or two beside where it was.
_WINDOWS = """
SELECT change.id, first.measured_at,
    COALESCE((
        SELECT min(measured_at) FROM (
            SELECT datum.measured_at FROM codegen_app_datum AS datum
            WHERE datum.series_id = change.series_id AND datum.is_trunk AND datum.at <= first.at
                AND (datum.at, datum.measured_at, datum.id)
                    < (first.at, first.measured_at, first.id)
                AND datum.value > 0 AND {valid}
            ORDER BY datum.at DESC, datum.measured_at DESC, datum.id DESC LIMIT 2
        ) AS earlier
    ), first.measured_at),
    COALESCE((
        SELECT max(measured_at) FROM (
            SELECT datum.measured_at FROM codegen_app_datum AS datum
            WHERE datum.series_id = change.series_id AND datum.is_trunk AND datum.at >= first.at
                AND (datum.at, datum.measured_at, datum.id)
                    >= (first.at, first.measured_at, first.id)
                AND datum.value > 0 AND {valid}
            ORDER BY datum.at, datum.measured_at, datum.id LIMIT 2
        ) AS later
    ), first.measured_at)
FROM codegen_app_change AS change JOIN codegen_app_datum AS first ON first.id = change.datum_id
WHERE change.id = ANY(%s)
""".format(valid=VALID.format(datum="datum"))  # noqa: S608 - our own names

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


class Machine(NamedTuple):
    """A host, or a device model whose points have no host."""

    host: str
    device_name: str

    @property
    def name(self) -> str:
        return self.host or self.device_name


class _Candidate(NamedTuple):
    """A change that may be a machine's."""

    pk: int
    series: int
    device_name: str
    at: datetime
    shown_at: datetime | None
    before: float
    after: float
    worse: bool
    hosts: list[str]
    readings: list[dict[str, Any]]

    @property
    def machine(self) -> Machine | None:
        """The machine of its points; None for several hosts."""
        if len(self.hosts) > 1:
            return None
        return Machine(self.hosts[0], "") if self.hosts else Machine("", self.device_name)


@dataclass(frozen=True)
class _MachineChange:
    """Series of one machine that moved together, of those that were measured on it."""

    machine: Machine
    moves: tuple[machines.Move, ...]
    since: datetime
    place: datetime
    measured: tuple[int, ...]
    readings: tuple[machines.MovedReading, ...]


def update_alerts() -> int:
    """Raise alerts of machines, apply the states that people set, and close alerts of machines that
    are back; return how many alerts changed."""
    return _raise_alerts() + _apply_states() + _close_alerts()


def has_pending() -> bool:
    """Return whether the state of an alert is to be applied to its points (1 query)."""
    return _unapplied().exists()


@transaction.atomic
def _raise_alerts() -> int:
    """Raise an alert for each machine whose series moved together, if new changes may show it."""
    pending = _candidates().filter(raised_at=None)
    if not pending.exists():
        return 0
    lock_transaction(LockClass.MACHINES)
    new_machines = {row.machine for row in _read(pending)} - {None}
    groups: dict[tuple[Machine, bool], list[_Candidate]] = defaultdict(list)
    recent = _candidates().filter(found_at__gte=timezone.now() - MAX_AGE)
    for row in _read(recent):
        if row.machine in new_machines and row.machine is not None:
            groups[row.machine, row.worse].append(row)
    changes: dict[Machine, _MachineChange] = {}
    for (machine, _), rows in sorted(groups.items()):
        change = _machine_change(machine, rows)
        earlier = changes.get(machine)
        if change is not None and (earlier is None or change.since < earlier.since):
            changes[machine] = change
    return sum(_raise_alert(change) for change in changes.values())


def _candidates() -> QuerySet[Change]:
    return Change.objects.filter(
        ~Q(alert__kind=AlertKind.MACHINE) | Q(alert=None),
        withdrawn_at=None,
        explained_at__isnull=False,
        explanation__may_be_machine=True,
    )


def _read(rows: QuerySet[Change]) -> list[_Candidate]:
    columns = ("pk", "series_id", "series__device_name", "at", "shown_at", "before", "after")
    explained = ("worse", "explanation__hosts", "explanation__readings")
    return [_Candidate(*row) for row in rows.order_by("pk").values_list(*columns, *explained)]


def _machine_change(machine: Machine, rows: Sequence[_Candidate]) -> _MachineChange | None:
    """Return the change of a machine that these changes of its series show, if they do."""
    if len({row.series for row in rows}) < machines.MIN_SERIES:
        return None
    closed = _closed_spans(machine)
    if closed is None:
        return None
    by_key = {row.pk: row for row in rows}
    with connection.cursor() as cursor:
        cursor.execute(_WINDOWS, [list(by_key)])
        windows = {pk: times for pk, *times in cursor.fetchall()}
    moves = []
    for pk, (first, *times) in windows.items():
        row, begin, end = by_key[pk], min(times), max(times)  # old revisions may be measured late
        if not any(since <= end and begin <= until for since, until in closed):
            move = machines.Move(pk, row.series, row.after / row.before, begin, first, end)
            moves.append(move)
    together = machines.moved_together(moves)
    if len(together) < machines.MIN_SERIES:
        return None
    changes = [by_key[move.change] for move in together]
    if max(row.shown_at or row.at for row in changes) < timezone.now() - MAX_AGE:
        return None
    since, place = min(move.first for move in together), min(row.at for row in changes)
    measured = set_aside.measured_series(*machine, place, since)
    if not machines.is_machine(len(together), len(measured)):
        return None
    readings = [[TelemetryDifference(**one) for one in row.readings] for row in changes]
    return _MachineChange(
        machine, together, since, place, tuple(measured), machines.moved_readings(readings)
    )


def _closed_spans(machine: Machine) -> list[tuple[datetime, datetime]] | None:
    """Return the times of alerts of a machine that a person closed as expected or invalid, up to
    then: changes in them raise no alert again. None if the machine has an open alert (1 query)."""
    states = (*OPEN_ALERT_STATES, *_REJECTED)
    rows = Alert.objects.filter(kind=AlertKind.MACHINE, machine=machine.name, state__in=states)
    closed = Max("events__at", filter=Q(events__kind=EventKind.STATE))
    spans = []
    for row in rows.annotate(closed_at=closed):
        if row.state not in _REJECTED:
            return None
        spans.append((row.at, row.closed_at or row.changed_at))
    return spans


def _raise_alert(change: _MachineChange) -> int:
    """Raise the alert and set the machine's points aside; return 0 if its changes differ by now."""
    set_aside.lock_series({*change.measured, *(move.series for move in change.moves)})
    keys = [move.change for move in change.moves]
    rows = list(_candidates().filter(pk__in=keys).order_by("pk").select_for_update(of=("self",)))
    if not machines.is_machine(len(rows), len(change.measured)):
        return 0
    worst = max(change.moves, key=lambda move: (max(move.ratio, 1 / move.ratio), -move.change))
    alert = Alert.objects.create(
        kind=AlertKind.MACHINE,
        machine=change.machine.name,
        at=change.since,
        n_series=len(rows),
        worst_ratio=worst.ratio,
        cause=Cause.ENVIRONMENT,
    )
    ratio, low, high = machines.mean_ratio(change.moves)
    MachineFinding.objects.create(
        alert=alert,
        ratio=ratio,
        low=low,
        high=high,
        host=change.machine.host,
        device_name=change.machine.device_name,
        n_measured=len(change.measured),
        readings=[asdict(reading) for reading in change.readings],
    )
    reason = (
        f"{len(rows)} of {len(change.measured)} series measured on {change.machine.name}"
        " moved together with equal code"
    )
    _attach(rows, alert, reason)
    _set_aside(change.measured, change.place)
    record_event(alert, EventKind.RAISED, note=f"{reason}; its points are set aside")
    return 1


def _attach(rows: Sequence[Change], alert: Alert, reason: str) -> None:
    """Make changes those of the machine. A change that has another alert is copied: it is withdrawn
    there once its points are set aside."""
    now = timezone.now()
    for row in rows:
        if row.alert_id is not None:
            row.pk, row.withdrawn_at = None, now
            row._state.adding = True
        row.alert, row.raised_at = alert, now
        row.cause, row.rule = Cause.ENVIRONMENT, "one machine"
        row.explanation = _machine_explanation(row.explanation, reason)
    copies = [row for row in rows if row.pk is None]
    attached = [row for row in rows if row.pk is not None]
    Change.objects.bulk_create(copies)
    columns = ["alert", "raised_at", "cause", "rule", "explanation"]
    Change.objects.bulk_update(attached, columns, batch_size=500)


def _machine_explanation(explanation: Mapping[str, Any], reason: str) -> dict[str, Any]:
    readings = [str(reading["sentence"]) for reading in explanation.get("readings", ())]
    return {
        **explanation,
        "cause": Cause.ENVIRONMENT,
        "rule": "one machine",
        "reasons": [reason, *readings],
        "candidates": [Cause.ENVIRONMENT],
        "next_step": "",
        "feeds_noise_floor": False,
    }


def _set_aside(series: Sequence[int], place: datetime) -> int:
    n = len(series)
    return set_aside.set_aside(series, [place] * n, [_END_OF_TIME] * n)


def _unapplied() -> QuerySet[Alert]:
    """Return alerts whose state was not applied to the points of their machine."""
    is_set_aside = Q(state__in=_REJECTED, finding__is_set_aside=True)
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
            _set_aside(measured, place)
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
        alert = Alert.objects.select_for_update().filter(is_open, pk=pk).first()
        if alert is None:  # somebody closed it
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
