"""Alerts: changes that may have one cause together, series without new points, and changed
machines."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse

from codegen_app.tracking.models.series import Revision, Series
from scheduler.track.generated_label import LABEL


class AlertKind(models.TextChoices):
    REGRESSION = "regression", "regression"
    IMPROVEMENT = "improvement", "improvement"
    MISSING = "missing", "missing data"
    MACHINE = "machine", "machine"
    DRIFT = "drift", "drift"
    SPREAD = "spread", "change of spread"
    MODE = "mode", "second mode"


QUIET_KINDS = (AlertKind.DRIFT, AlertKind.SPREAD, AlertKind.MODE)
"""Findings about the course of one series (``SeriesFinding``): listed only by kind, and weekly."""


class AlertState(models.TextChoices):
    NEW = "new", "new"
    ACKNOWLEDGED = "acknowledged", "acknowledged"
    INVESTIGATING = "investigating", "investigating"
    EXPECTED = "expected", "expected"
    FIXED = "fixed", "fixed"
    INVALID = "invalid", "invalid"
    HISTORY = "history", "history"


class CauseClass(models.TextChoices):
    """What the changes of one alert have in common. Unknown causes are in alerts of either."""

    CODE = "code", "code, tuning choice or compiler"
    ENVIRONMENT = "environment", "environment"
    UNKNOWN = "", "unknown"


class Relation(models.TextChoices):
    """How an alert is linked to another; the value is the column's name."""

    DUPLICATE = "duplicate_of", "duplicate of"
    DOWNSTREAM = "downstream_of", "downstream of"


OPEN_ALERT_STATES = (AlertState.NEW, AlertState.ACKNOWLEDGED, AlertState.INVESTIGATING)


_OF_SERIES = ("missing", "drift", "spread", "mode")


class Alert(models.Model):
    """Changes in one direction that may have one cause, one series whose points stopped coming, or
    one machine whose series moved together (``machine`` is its host, or its device model if no host
    is recorded; ``MachineFinding`` has the details). Of one series is also a drift, a change of
    its spread or a second mode (``SeriesFinding``).

    Something happened after ``good_revision``, which is at ``since`` in the history, and at the
    latest at ``revision``, which is at ``at``: the part that the windows of all its changes share
    (``alerting.windows``). Without an earlier point, ``good_revision`` and ``since`` are null.
    ``commits`` are those of the window in a Git mirror (``alerting.commits``): null until they are
    read. In the state ``history`` its changes were old when they were found, and not notified.
    ``n_series`` and ``worst_ratio`` (after / before, the one furthest from 1) are stored for lists.
    ``recovered_at``: the place in the history of the point since which all its series are back at
    the earlier level, which suggests "fixed" and decides nothing; for missing data, when the first
    new point was measured, and for a machine, when the first point that is back was.
    ``duplicate_of`` is another alert of the same cause; ``downstream_of``
    is one whose change these series only take part in (a whole graph's time after its kernel's).
    """

    kind = models.CharField(max_length=12, choices=AlertKind.choices)
    revision = models.ForeignKey(
        Revision, null=True, blank=True, on_delete=models.PROTECT, related_name="alerts"
    )
    good_revision = models.ForeignKey(
        Revision, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    since = models.DateTimeField(
        null=True, blank=True, help_text="The place in the history of the last good revision"
    )
    series = models.ForeignKey(
        Series,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="alerts",
        help_text="Of missing data, a drift, a change of spread or a second mode",
    )
    machine = models.CharField(max_length=1000, blank=True, default="", db_default="")
    state = models.CharField(
        max_length=14, choices=AlertState.choices, default=AlertState.NEW.value
    )
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="alerts",
    )
    duplicate_of = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="duplicates"
    )
    downstream_of = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="downstream"
    )
    n_series = models.PositiveIntegerField(default=0)
    worst_ratio = models.FloatField(null=True, blank=True)
    cause = models.CharField(max_length=20, blank=True, help_text="Of the change of worst_ratio")
    cause_class = models.CharField(
        max_length=12, choices=CauseClass.choices, blank=True, default="", db_default=""
    )
    commits = models.JSONField(null=True, blank=True)
    at = models.DateTimeField(
        help_text="Its place in the history: the revision's moment; of a machine, when it changed"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)
    recovered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        permissions = [("triage", "Can triage alerts, set thresholds and baselines")]
        indexes = [
            models.Index(fields=["state", "-created_at", "-id"], name="alert_by_state"),
            models.Index(fields=["kind", "at"], name="alert_by_place"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["series"],
                condition=Q(kind="missing", state__in=("new", "acknowledged", "investigating")),
                name="alert_missing_once_open",
            ),
            models.UniqueConstraint(
                fields=["series", "kind"],
                condition=Q(kind__in=("drift", "spread", "mode"))
                & Q(state__in=("new", "acknowledged", "investigating")),
                name="alert_quiet_once_open",
            ),
            models.UniqueConstraint(
                fields=["machine"],
                condition=Q(kind="machine", state__in=("new", "acknowledged", "investigating")),
                name="alert_machine_once_open",
            ),
            models.CheckConstraint(
                name="alert_of_revision_or_series",
                condition=(Q(kind__in=_OF_SERIES) & Q(series__isnull=False))
                | (Q(kind="machine") & ~Q(machine=""))
                | (~Q(kind__in=(*_OF_SERIES, "machine")) & Q(revision__isnull=False)),
            ),
            models.CheckConstraint(
                name="alert_state_known", condition=Q(state__in=AlertState.values)
            ),
        ]

    def __str__(self) -> str:
        if self.kind == AlertKind.MACHINE:
            return f"{self.get_kind_display()} {self.subject}"
        return f"{self.get_kind_display()} of {self.subject}"

    @property
    def subject(self) -> str:
        """Return what the alert is about: a revision, a series, or a machine. No query if the
        revision and the series are loaded."""
        return self.machine or str(self.revision or self.series)

    @property
    def is_generated(self) -> bool:
        """Return whether it is of a generated history; this is shown wherever the alert is named.
        No query if the revision and the series are loaded."""
        if self.kind == AlertKind.MACHINE:
            return self.machine.startswith(LABEL)
        of = self.revision or self.series
        return of is not None and of.is_generated

    def get_absolute_url(self) -> str:
        return reverse("alert", args=[self.pk])


class EventKind(models.TextChoices):
    RAISED = "raised", "raised"
    GREW = "grew", "more series"
    RECOVERED = "recovered", "back at the level before"
    STATE = "state", "state"
    ASSIGNEE = "assignee", "assignee"
    NOTE = "note", "note"
    LINK = "link", "link"
    UNDO = "undo", "taken back"


UNDOABLE_EVENTS = (EventKind.STATE, EventKind.ASSIGNEE, EventKind.NOTE, EventKind.LINK)


class AlertEvent(models.Model):
    """An event of an alert; ``by`` is null if Kiln itself caused it. ``before`` and ``after`` hold
    the changed columns, so that it can be undone once (``undoes``). Events of one action, perhaps
    of several alerts, share ``act``, and are undone together."""

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="events")
    kind = models.CharField(max_length=10, choices=EventKind.choices)
    at = models.DateTimeField(auto_now_add=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    note = models.TextField(blank=True)
    before = models.JSONField(default=dict, blank=True)
    after = models.JSONField(default=dict, blank=True)
    act = models.UUIDField(null=True, blank=True)
    undoes = models.OneToOneField(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="undone_by"
    )

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(fields=["act"], condition=Q(act__isnull=False), name="alertevent_by_act"),
            models.Index(
                fields=["by", "-id"], condition=Q(act__isnull=False), name="alertevent_own_latest"
            ),
        ]
        constraints = [
            models.CheckConstraint(
                name="alertevent_kind_known", condition=Q(kind__in=EventKind.values)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} of alert {self.alert_id}"
