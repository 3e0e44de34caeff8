"""The content of an alert's notification: JSON for a webhook, plain text for an e-mail.

It is built when it is sent and describes the alert at that time; the event says why it is sent.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from django.utils import timezone

from codegen_app.tracking.models import (
    LARGEST_FIRST,
    LISTED,
    QUIET_KINDS,
    Alert,
    AlertKind,
    Change,
    Delivery,
    MachineFinding,
    Series,
    SeriesFinding,
)
from codegen_app.tracking.queries.alert_window import alert_window
from codegen_app.tracking.queries.revision_links import revision_links
from codegen_app.web.addresses import absolute_url
from codegen_app.web.row import build_row

FORMAT = 1
TEST = "test"
MAX_SERIES = 50
MAX_COMMITS = 20


@dataclass(frozen=True)
class ChangeNote:
    """A change of a series: levels in its unit, and after / before with its 95% interval."""

    before: float
    after: float
    ratio: float
    ratio_low: float | None
    ratio_high: float | None
    n_before: int
    n_after: int
    cause: str
    reason: str
    source: str
    before_revision: str
    after_revision: str
    url: str

    @property
    def low(self) -> float | None:
        """The lower bound, named as ``scheduler.track.effect`` needs it."""
        return self.ratio_low

    @property
    def high(self) -> float | None:
        return self.ratio_high


@dataclass(frozen=True)
class SeriesNote:
    """A series of an alert; ``change`` is None if its points stopped coming (``is_silent``), or if
    the message has a finding about it."""

    problem: str
    sizes: dict[str, Any]
    device: str
    target: str
    toolchain: str
    metric: str
    unit: str
    better: str
    is_generated: bool
    last_point_at: datetime | None
    url: str
    change: ChangeNote | None
    is_silent: bool


@dataclass(frozen=True)
class AlertNote:
    """An alert as it is now; ``series`` has the largest changes, of ``n_series``."""

    id: int
    kind: str
    state: str
    cause: str
    n_series: int
    worst_ratio: float | None
    raised_at: datetime
    recovered_at: datetime | None
    url: str
    duplicate_of: str
    downstream_of: str


@dataclass(frozen=True)
class RevisionNote:
    """The source revision at which an alert begins."""

    name: str
    repository: str
    branch: str
    at: datetime | None


@dataclass(frozen=True)
class CommitNote:
    """A commit of an alert's window; texts are empty and ``at`` is null if unknown."""

    name: str
    at: datetime | None
    subject: str
    author: str
    measured: bool
    url: str


@dataclass(frozen=True)
class WindowNote:
    """Something happened after the revision ``good``, and at the latest at the alert's revision.
    ``n_between`` revisions in between were measured; ``commits`` has the newest of ``n_commits``:
    all of them if ``complete``, else those that were measured."""

    good: str
    since: datetime
    n_between: int
    n_commits: int
    complete: bool
    diff_url: str
    commits: tuple[CommitNote, ...]


@dataclass(frozen=True)
class MachineNote:
    """A machine whose series moved together: its host, or the device model of points without one;
    since when; the geometric mean of after / before over its series, with its 95% interval; how
    many series were measured on it; and in words which of its readings moved."""

    host: str
    device: str
    since: datetime
    ratio: float
    ratio_low: float
    ratio_high: float
    n_measured: int
    readings: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.host or self.device


@dataclass(frozen=True)
class FindingNote:
    """A drift, a change of spread or a second mode of one series: ``before`` and ``after`` as
    ``SeriesFinding`` has them."""

    summary: str
    since: datetime
    revision: str
    before: float
    after: float
    ratio: float
    ratio_low: float
    ratio_high: float
    n_before: int
    n_after: int
    share: float | None


@dataclass(frozen=True)
class Message:
    """The content of a notification; ``alert`` is None in a test."""

    format: int
    event: str
    delivery: str
    channel: str
    sent_at: datetime
    event_at: datetime
    alert: AlertNote | None = None
    revision: RevisionNote | None = None
    window: WindowNote | None = None
    machine: MachineNote | None = None
    finding: FindingNote | None = None
    series: tuple[SeriesNote, ...] = ()

    def as_json(self) -> bytes:
        return json.dumps(asdict(self), default=datetime.isoformat, ensure_ascii=False).encode()


def build_message(delivery: Delivery) -> Message:
    """Return a delivery's message (3 queries, one more for a window with many commits); its
    channel, event, alert, and the alert's revisions and machine are loaded."""
    event = delivery.event
    empty = Message(
        format=FORMAT,
        event=TEST,
        delivery=str(delivery.key),
        channel=delivery.channel.name,
        sent_at=timezone.now(),
        event_at=delivery.created_at,
    )
    if event is None:
        return empty
    alert = event.alert
    return replace(
        empty,
        event=event.kind,
        event_at=event.at,
        alert=build_row(
            AlertNote,
            alert,
            raised_at=alert.created_at,
            url=_alert_url(alert.pk),
            duplicate_of=_alert_url(alert.duplicate_of_id),
            downstream_of=_alert_url(alert.downstream_of_id),
        ),
        revision=build_row(RevisionNote, alert.revision) if alert.revision else None,
        window=_window(alert),
        machine=_machine(alert),
        finding=_finding(alert),
        series=_series(alert),
    )


def _window(alert: Alert) -> WindowNote | None:
    if alert.good_revision is None:
        return None
    window = alert_window(alert, revision_links([alert.revision]))
    if window is None:
        return None
    commits = tuple(build_row(CommitNote, commit) for commit in window.commits[:MAX_COMMITS])
    return build_row(WindowNote, window, commits=commits)


def _machine(alert: Alert) -> MachineNote | None:
    finding: MachineFinding | None = getattr(alert, "finding", None)
    if finding is None:
        return None
    return build_row(
        MachineNote,
        finding,
        device=finding.device_name,
        since=alert.at,
        ratio_low=finding.low,
        ratio_high=finding.high,
        readings=tuple(str(reading["sentence"]) for reading in finding.readings),
    )


def _finding(alert: Alert) -> FindingNote | None:
    finding: SeriesFinding | None = getattr(alert, "series_finding", None)
    if finding is None:
        return None
    return build_row(
        FindingNote,
        finding,
        since=alert.at,
        revision=finding.revision.name,
        ratio_low=finding.low,
        ratio_high=finding.high,
    )


def _series(alert: Alert) -> tuple[SeriesNote, ...]:
    if alert.kind in (AlertKind.MISSING, *QUIET_KINDS):
        is_silent = alert.kind == AlertKind.MISSING
        return (_series_note(alert.series, None, is_silent=is_silent),) if alert.series else ()
    changes = (
        Change.objects.filter(LISTED, alert=alert)
        .select_related("series", "revision", "previous", "datum")
        .order_by(*LARGEST_FIRST)
    )
    return tuple(
        _series_note(
            change.series,
            build_row(
                ChangeNote,
                change,
                ratio_low=change.low,
                ratio_high=change.high,
                reason=str((change.explanation.get("reasons") or [""])[0]),
                source=change.datum.source,
                before_revision=change.previous.name if change.previous else "",
                after_revision=change.revision.name,
                url=absolute_url(f"/changes/{change.pk}"),
            ),
        )
        for change in changes[:MAX_SERIES]
    )


def _series_note(
    series: Series, change: ChangeNote | None, *, is_silent: bool = False
) -> SeriesNote:
    return build_row(
        SeriesNote,
        series,
        device=series.device_name,
        last_point_at=series.last_at,
        url=absolute_url(f"/series/{series.pk}"),
        change=change,
        is_silent=is_silent,
    )


def _alert_url(pk: int | None) -> str:
    return absolute_url(f"/alerts/{pk}") if pk is not None else ""
