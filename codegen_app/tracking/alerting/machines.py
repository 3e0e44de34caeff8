"""Alerts for machines: many series of one host that move together with equal code.

``scheduler.track.machines`` decides. While the alert is open, the machine's points are set aside:
those that exist when it is raised, and new ones when the detector reads them
(``services.detection``). ``machine_states`` follows what becomes of the alert.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Max, Q, QuerySet
from django.utils import timezone

from codegen_app.platform.advisory_lock import LockClass, lock_transaction
from codegen_app.tracking.alerting.events import record_event
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
    Series,
)
from codegen_app.tracking.rules.settings import RULES_OF_SERIES, series_settings
from codegen_app.workers import queue
from scheduler.results.points.model import digest_of
from scheduler.track import machines
from scheduler.track.evidence import Cause
from scheduler.track.telemetry import TelemetryDifference

_MAX_NAME = 200
_MAX_APART = timedelta(days=14)
"""How long ago changes were found that are seen together with a new one."""

_END_OF_TIME = datetime(9999, 12, 31, tzinfo=UTC)
REJECTED = (AlertState.EXPECTED, AlertState.INVALID)

# Each change's first point at the new level, and the times of measurement between which it moved:
# the detector may place a change a point or two off.
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


class Machine(NamedTuple):
    """A host, or a device model whose points have no host."""

    host: str
    device_name: str

    @property
    def name(self) -> str:
        """The name by which an alert knows it: a long one, which no index takes, is shortened and
        stays distinct."""
        name = self.host or self.device_name
        if len(name) <= _MAX_NAME:
            return name
        return f"{name[: _MAX_NAME - 13]}\N{HORIZONTAL ELLIPSIS}{digest_of(name)[:12]}"


class Candidate(NamedTuple):
    """A change that may be a machine's."""

    pk: int
    series: int
    device_name: str
    at: datetime
    shown_at: datetime | None
    before: float
    after: float
    worse: bool
    found_at: datetime
    hosts: list[str]
    readings: list[dict[str, Any]]

    @property
    def is_old(self) -> bool:
        """Whether it is of an imported history, as ``grouping.is_old`` says of a row."""
        days = settings.HISTORY_DAYS
        return bool(days) and self.found_at - (self.shown_at or self.at) > timedelta(days=days)

    @property
    def machine(self) -> Machine | None:
        """The machine of its points; None for several hosts."""
        if len(self.hosts) > 1:
            return None
        return Machine(self.hosts[0], "") if self.hosts else Machine("", self.device_name)


@dataclass(frozen=True)
class MachineChange:
    """Series of one machine that moved together, of those that were measured on it. ``shared`` are
    changes of series that several hosts measure in turn, by the negative keys of their moves."""

    machine: Machine
    moves: tuple[machines.Move, ...]
    since: datetime
    place: datetime
    measured: tuple[int, ...]
    readings: tuple[machines.MovedReading, ...]
    shared: Mapping[int, Change]


@dataclass(frozen=True)
class SharedMove:
    """A change of one host in a series that others measure as well: no change of the series' level,
    so that its row is not stored yet. The key of the candidate and of the move is negative."""

    candidate: Candidate
    move: machines.Move
    row: Change


@transaction.atomic
def raise_pending() -> int:
    """Raise an alert for each machine whose series moved together, if new changes may show it."""
    pending = _candidates().filter(raised_at=None)
    if not pending.exists():
        return 0
    lock_transaction(LockClass.MACHINES)
    machine_names = {row.machine for row in _read(pending)}
    return raise_alerts(machine for machine in machine_names if machine is not None)


def raise_alerts(of_machines: Iterable[Machine], shared: Sequence[SharedMove] = ()) -> int:
    """Raise an alert for each of these machines whose series moved together; return how many. Call
    it with the lock of machines."""
    groups: dict[tuple[Machine, bool], list[Candidate]] = {
        (machine, worse): [] for machine in of_machines for worse in (False, True)
    }
    recent = _candidates().filter(found_at__gte=timezone.now() - _MAX_APART)
    for row in (*_read(recent), *(move.candidate for move in shared)):
        if row.machine is not None and (group := groups.get((row.machine, row.worse))) is not None:
            group.append(row)
    changes: dict[Machine, MachineChange] = {}
    for (machine, _), rows in sorted(groups.items()):
        change = _machine_change(machine, rows, {move.move.change: move for move in shared})
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


def _read(rows: QuerySet[Change]) -> list[Candidate]:
    columns = ("pk", "series_id", "series__device_name", "at", "shown_at", "before", "after")
    explained = ("worse", "found_at", "explanation__hosts", "explanation__readings")
    return [Candidate(*row) for row in rows.order_by("pk").values_list(*columns, *explained)]


def _machine_change(
    machine: Machine, rows: Sequence[Candidate], shared: Mapping[int, SharedMove]
) -> MachineChange | None:
    """Return the change of a machine that these changes of its series show, if they do."""
    if len({row.series for row in rows}) < machines.MIN_SERIES:
        return None
    closed = _closed_spans(machine)
    if closed is None:
        return None
    by_key = {row.pk: row for row in rows}
    moves = [*_moves(by_key), *(shared[key].move for key in by_key if key in shared)]
    together = machines.moved_together(
        move
        for move in moves
        if not any(since <= move.end and move.begin <= until for since, until in closed)
    )
    if len(together) < machines.MIN_SERIES:
        return None
    changes = [by_key[move.change] for move in together]
    if all(row.is_old for row in changes):
        return None
    since, place = min(move.first for move in together), min(row.at for row in changes)
    measured = set_aside.measured_series(*machine, place, since)
    if not machines.is_machine(len(together), len(measured)) or _are_muted(together):
        return None
    readings = [[TelemetryDifference(**one) for one in row.readings] for row in changes]
    return MachineChange(
        machine,
        together,
        since,
        place,
        tuple(measured),
        machines.moved_readings(readings),
        {move.change: shared[move.change].row for move in together if move.change in shared},
    )


def _are_muted(moves: Sequence[machines.Move]) -> bool:
    """Return whether all series that moved are muted (1 query)."""
    series = Series.objects.filter(pk__in=[move.series for move in moves])
    return all(series_settings(row).muted for row in series.select_related(*RULES_OF_SERIES))


def _moves(candidates: Mapping[int, Candidate]) -> list[machines.Move]:
    """Return the moves of stored changes (1 query)."""
    with connection.cursor() as cursor:
        cursor.execute(_WINDOWS, [list(candidates)])
        windows = cursor.fetchall()
    moves = []
    for pk, first, *times in windows:
        row, begin, end = candidates[pk], min(times), max(times)  # old revisions may come late
        moves.append(machines.Move(pk, row.series, row.after / row.before, begin, first, end))
    return moves


def _closed_spans(machine: Machine) -> list[tuple[datetime, datetime]] | None:
    """Return the times of alerts of a machine that a person closed as expected or invalid, up to
    then: changes in them raise no alert again. None if the machine has an open alert (1 query)."""
    states = (*OPEN_ALERT_STATES, *REJECTED)
    rows = Alert.objects.filter(kind=AlertKind.MACHINE, machine=machine.name, state__in=states)
    closed = Max("events__at", filter=Q(events__kind=EventKind.STATE))
    spans = []
    for row in rows.annotate(closed_at=closed):
        if row.state not in REJECTED:
            return None
        spans.append((row.at, row.closed_at or row.changed_at))
    return spans


def _raise_alert(change: MachineChange) -> int:
    """Raise the alert and set the machine's points aside; return 0 if its changes differ by now."""
    set_aside.lock_series({*change.measured, *(move.series for move in change.moves)})
    keys = [move.change for move in change.moves]
    rows = list(_candidates().filter(pk__in=keys).order_by("pk").select_for_update(of=("self",)))
    rows += change.shared.values()
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
    set_aside_from(change.measured, change.place)
    record_event(alert, EventKind.RAISED, note=f"{reason}; its points are set aside")
    queue.notify(queue.Kind.DETECT)
    return 1


def _attach(rows: Sequence[Change], alert: Alert, reason: str) -> None:
    """Make changes those of the machine, and store those of shared series, which are none of the
    series' level. A change that has another alert is copied: it is withdrawn there once its points
    are set aside."""
    now = timezone.now()
    for row in rows:
        if row.alert_id is not None or row.pk is None:
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


def set_aside_from(series: Sequence[int], place: datetime) -> int:
    """Set aside the points of machines with open alerts from a place in the history on."""
    n = len(series)
    return set_aside.set_aside(series, [place] * n, [_END_OF_TIME] * n)
