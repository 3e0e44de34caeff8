"""Tuning and measurements that were requested from an alert, or for a suspected step."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from codegen_app.tracking.models.alert import Alert
from codegen_app.tracking.models.bisection import Bisection
from codegen_app.tracking.models.series import Datum, Revision, Series
from codegen_app.tuning.models.tuning_run import TuningRun
from codegen_app.workers.models.work import State, Work


class AlertRun(models.Model):
    """A tuning run that was started from an alert, of one of its series' problems."""

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="retuned")
    series = models.ForeignKey(Series, on_delete=models.PROTECT, related_name="+")
    run = models.OneToOneField(TuningRun, on_delete=models.CASCADE, related_name="of_alert")

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"run {self.run_id} of alert {self.alert_id}"


class Remeasurement(Work):
    """Builds of points on both sides of a change, measured again: on one device, interleaved, by
    one task, so that they are compared in one environment. ``alert`` is null if it was requested
    for a suspected step.

    ``samples`` of at most ``samples_due`` are taken so far.
    """

    alert = models.ForeignKey(
        Alert, null=True, blank=True, on_delete=models.CASCADE, related_name="remeasurements"
    )
    series = models.ForeignKey(Series, on_delete=models.PROTECT, related_name="remeasurements")
    boundary = models.DateTimeField(help_text="Points from here on are of the later level")
    samples = models.PositiveIntegerField(default=0)
    samples_due = models.PositiveIntegerField(default=0)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta(Work.Meta):
        ordering = ["-pk"]
        indexes = [models.Index(fields=["state", "-priority", "id"], name="remeasurement_queue")]
        constraints = [
            *Work.Meta.constraints,
            models.UniqueConstraint(
                fields=["alert", "series"],
                condition=Q(state__in=[State.QUEUED, State.RUNNING]),
                name="remeasurement_once_open",
            ),
            models.UniqueConstraint(
                fields=["series"],
                condition=Q(state__in=[State.QUEUED, State.RUNNING], alert__isnull=True),
                name="remeasurement_once_suspected",
            ),
        ]

    def __str__(self) -> str:
        return f"remeasurement {self.pk} of series {self.series_id}"


class RemeasuredPoint(models.Model):
    """A point whose build is measured again: of the series, or of another series of its problem at
    a revision between the sides. ``datum`` is the new point, ``reason`` why there is none once the
    work is over."""

    remeasurement = models.ForeignKey(
        Remeasurement, on_delete=models.CASCADE, related_name="points"
    )
    original = models.ForeignKey(Datum, on_delete=models.PROTECT, related_name="+")
    datum = models.OneToOneField(
        Datum, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    reason = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["remeasurement", "original__at", "original"]
        constraints = [
            models.UniqueConstraint(
                fields=["remeasurement", "original"], name="remeasuredpoint_once"
            ),
        ]

    def __str__(self) -> str:
        return f"point {self.original_id} again"

    def side(self, remeasurement: Remeasurement) -> str:
        """Return the side of the change: before, after, or between (not known yet)."""
        if self.original.series_id != remeasurement.series_id:
            return "between"
        return "after" if self.original.at >= remeasurement.boundary else "before"


class MeasurementRequest(models.Model):
    """A revision that a series' senders are asked to measure again; answered by its first point
    that arrives and was measured afterwards. ``alert`` is null if it was requested for a suspected
    step; ``bisection`` is the bisection that needs it."""

    series = models.ForeignKey(Series, on_delete=models.PROTECT, related_name="requests")
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="requests")
    alert = models.ForeignKey(
        Alert, null=True, blank=True, on_delete=models.CASCADE, related_name="requests"
    )
    bisection = models.ForeignKey(
        Bisection, null=True, blank=True, on_delete=models.CASCADE, related_name="requests"
    )
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    answered_at = models.DateTimeField(null=True, blank=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["series", "revision"],
                condition=Q(answered_at__isnull=True, withdrawn_at__isnull=True),
                name="request_once_open",
            ),
        ]

    def __str__(self) -> str:
        return f"revision {self.revision_id} of series {self.series_id}"

    @property
    def is_open(self) -> bool:
        """Return whether it is still to be measured."""
        return self.answered_at is None and self.withdrawn_at is None


class BisectionStep(Work):
    """A request of a bisection that a worker answers: it builds and measures the revision by the
    command that its site configures for the repository. ``detail`` is the end of its output."""

    bisection = models.ForeignKey(Bisection, on_delete=models.CASCADE, related_name="builds")
    request = models.OneToOneField(
        MeasurementRequest, on_delete=models.CASCADE, related_name="build"
    )

    class Meta(Work.Meta):
        ordering = ["-pk"]
        indexes = [models.Index(fields=["state", "-priority", "id"], name="bisectionstep_queue")]

    def __str__(self) -> str:
        return f"step {self.pk} of bisection {self.bisection_id}"
