"""Alerts, thresholds and annotations in the API: what is sent, and what it answers."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any

from ninja import Schema
from pydantic import ConfigDict, Field

from codegen_app.tracking.alerting.triage import MAX_ALERTS, MAX_NOTE_LENGTH
from codegen_app.tracking.models import AlertKind, AlertState
from codegen_app.tracking.services.point_notes import MAX_LENGTH

_MAX_ID = 2**63 - 1
AlertId = Annotated[int, Field(ge=1, le=_MAX_ID)]
_NEXT = "Pass this as “after” for the next page; null on the last page."
_RATIO = "after / before; above 1 is slower if lower is better"


class AlertRevision(Schema):
    """The revision at which an alert begins."""

    name: str
    repository: str
    branch: str
    at: datetime | None


class LargestChange(Schema):
    """The largest change of an alert, with the 95% interval of its ratio, null if unknown."""

    series: str
    ratio: float = Field(description=_RATIO)
    low: float | None
    high: float | None
    n_before: int
    n_after: int
    generated: bool = Field(description="The values were generated, not measured.")
    emulated: bool = Field(description="The values were measured in an emulation of the target.")


class AlertFinding(Schema):
    """What an alert of the kinds drift, spread or mode is about, at the latest examination."""

    summary: str
    revision: str = Field(description="The first revision of it.", alias="revision.name")
    before: float = Field(
        description="A level in the unit of the series (the main mode); of a spread, the standard"
        " deviation as a fraction of the level."
    )
    after: float
    ratio: float = Field(description="after / before.")
    low: float = Field(description="The lower bound of the ratio at 95%.")
    high: float
    n_before: int
    n_after: int
    share: float | None = Field(description="The fraction of the points on the second mode.")
    examined_at: datetime
    ended_at: datetime | None = Field(description="When it was no longer found; else null.")


class AlertItem(Schema):
    """An alert."""

    id: int
    url: str = Field(description="Its page; only the path if KILN_SITE_URL is not set.")
    kind: AlertKind
    state: AlertState
    title: str
    revision: AlertRevision | None
    good_revision: AlertRevision | None = Field(
        description="The last good revision: something happened after it, and at the latest at"
        " “revision”."
    )
    series: int | None = Field(
        description="The series without new points, for missing data, or with the finding."
    )
    n_series: int
    largest_change: LargestChange | None
    finding: AlertFinding | None = Field(
        description="Of the kinds drift, spread and mode; else null."
    )
    cause: str = Field(description="The cause of the largest change; empty if unknown.")
    assignee: str | None
    duplicate_of: int | None
    downstream_of: int | None
    generated: bool = Field(description="Its data was generated, not measured.")
    at: datetime = Field(description="Its place in the history.")
    created_at: datetime
    changed_at: datetime
    recovered_at: datetime | None


class AlertsPage(Schema):
    """A page of alerts, the newest first."""

    alerts: list[AlertItem]
    next: int | None = Field(description=_NEXT)


class AlertChange(Schema):
    """A change of an alert: medians in the unit of its series, of so many values."""

    id: int
    url: str
    series: int
    problem: str
    device_name: str
    target: str
    metric: str
    unit: str
    at: datetime
    revision: str
    previous: str | None = Field(description="The last revision of the old level.")
    before: float
    after: float
    ratio: float = Field(description=_RATIO)
    low: float | None
    high: float | None
    n_before: int
    n_after: int
    worse: bool
    cause: str
    rule: str = Field(description="The rule that determined the cause.")
    reasons: list[str]


class AlertChangesPage(Schema):
    """A page of an alert's changes, in the order in which they were found."""

    changes: list[AlertChange]
    next: int | None = Field(description=_NEXT)


class AlertEventRow(Schema):
    """An event of an alert. “by” is null if Kiln itself caused it."""

    id: int
    kind: str
    at: datetime
    by: str | None
    note: str
    before: dict[str, Any] = Field(description="The changed fields before the event.")
    after: dict[str, Any] = Field(description="The changed fields after the event.")


class AlertEventsPage(Schema):
    """A page of an alert's events, the oldest first."""

    events: list[AlertEventRow]
    next: int | None = Field(description=_NEXT)


class Triage(Schema):
    """Alerts, and what to change. Fields that are not sent stay as they are."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"alerts": [7, 8], "state": "expected", "note": "new default tile sizes"},
                {"alerts": [9], "assignee": "ada"},
                {"alerts": [10], "duplicate_of": 7},
            ]
        },
    )

    alerts: list[AlertId] = Field(min_length=1, max_length=MAX_ALERTS)
    state: AlertState | None = None
    assignee: str | None = Field(
        None, max_length=150, description="A user name; empty: no assignee."
    )
    note: str | None = Field(None, max_length=MAX_NOTE_LENGTH)
    duplicate_of: AlertId | None = Field(None, description="The alert that these repeat.")
    downstream_of: AlertId | None = Field(None, description="The alert that these follow from.")
    unlink: bool = Field(False, description="Remove the links of these alerts.")


class TriageAnswer(Schema):
    """What was changed."""

    changed: list[int] = Field(description="The alerts that changed.")
    lines: list[str] = Field(description="One line per action.")


class Thresholds(Schema):
    """The settings of a series in place of the defaults."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"least_effect": 0.02, "stale_after": "P7D", "reason": "a noisy host"}]
        },
    )

    least_effect: float | None = Field(
        None,
        ge=0.001,
        le=1,
        description="The minimum effect as a fraction of the level: 0.02 is 2%. Null: the default.",
    )
    muted: bool = Field(False, description="Detect changes, raise no alerts.")
    stale_after: timedelta | None = Field(
        None,
        gt=timedelta(0),
        le=timedelta(days=3650),
        description="Data are missing after this duration (ISO 8601). Null: automatic.",
    )
    reason: str = Field(min_length=1, max_length=500)


class ThresholdsRow(Schema):
    """The settings in effect for a series. “is_default”: neither the series nor a rule sets any."""

    series: int
    is_default: bool
    least_effect: float | None
    default_least_effect: float = Field(description="The minimum effect if none is set.")
    muted: bool
    stale_after: timedelta | None
    reason: str
    rule: str = Field(description="The rule by patterns that decides them; empty if none does.")
    owner: str = Field(description="The owner by the rules; empty without an owner.")
    changed_at: datetime | None
    changed_by: str | None


class Note(Schema):
    """A note at a point."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"text": "driver 580.95 from here on"}]}
    )

    text: str = Field(min_length=1, max_length=MAX_LENGTH)


class AnnotationRow(Schema):
    """A note at a point of a series."""

    id: int
    datum: int
    at: datetime = Field(description="The time of the point in the history.")
    text: str
    created_at: datetime
    by: str | None


class AnnotationsList(Schema):
    """The notes of a series in the order of its history."""

    annotations: list[AnnotationRow]
