"""Bisections: the search for the revision that changed a series."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from codegen_app.tracking.models.alert import Alert
from codegen_app.tracking.models.series import Revision, Series


class BisectionState(models.TextChoices):
    OPEN = "open", "open"
    DONE = "done", "done"
    STOPPED = "stopped", "stopped"
    CANCELLED = "cancelled", "cancelled"


class BisectionMeans(models.TextChoices):
    """Where a bisection gets the values of a revision from."""

    RECORDED = "recorded", "recorded points"
    SENDERS = "senders", "its senders"
    WORKER = "worker", "a worker that builds"


class Bisection(models.Model):
    """Measures revisions between ``good``, the last of the level ``before``, and ``bad``, the first
    of the level ``after`` (medians in the series' unit), until one of them stands.

    ``noise`` is the standard deviation of one value as a fraction of its level. At most ``limit``
    revisions are measured. ``culprit`` is the revision that made the change; ``reason`` says why
    there is none. Its measurements are ``MeasurementRequest`` rows, one open at a time; two open
    bisections of a series would take these from each other for ever. ``means`` says who answers
    them; with recorded points there are none.
    """

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="bisections")
    series = models.ForeignKey(Series, on_delete=models.PROTECT, related_name="bisections")
    good = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="+")
    bad = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="+")
    before = models.FloatField()
    after = models.FloatField()
    noise = models.FloatField()
    limit = models.PositiveIntegerField()
    means = models.CharField(
        max_length=12,
        choices=BisectionMeans.choices,
        default=BisectionMeans.SENDERS.value,
        db_default=BisectionMeans.SENDERS.value,
    )
    state = models.CharField(
        max_length=12, choices=BisectionState.choices, default=BisectionState.OPEN.value
    )
    culprit = models.ForeignKey(
        Revision, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    reason = models.CharField(max_length=500, blank=True)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["series"], condition=Q(state="open"), name="bisection_once_a_series"
            ),
            models.CheckConstraint(
                name="bisection_state_known", condition=Q(state__in=BisectionState.values)
            ),
            models.CheckConstraint(
                name="bisection_means_known", condition=Q(means__in=BisectionMeans.values)
            ),
            models.CheckConstraint(
                name="bisection_levels_above_zero",
                condition=Q(before__gt=0, after__gt=0, noise__gt=0),
            ),
        ]

    def __str__(self) -> str:
        return f"bisection {self.pk} of series {self.series_id}"

    @property
    def is_open(self) -> bool:
        """Return whether it still measures."""
        return self.state == BisectionState.OPEN


class SkippedRevision(models.Model):
    """A revision that a bisection cannot measure, and why."""

    bisection = models.ForeignKey(Bisection, on_delete=models.CASCADE, related_name="skipped")
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="+")
    reason = models.CharField(max_length=500)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["bisection", "revision"], name="skippedrevision_once"),
            models.CheckConstraint(name="skippedrevision_has_reason", condition=~Q(reason="")),
        ]

    def __str__(self) -> str:
        return f"revision {self.revision_id} of bisection {self.bisection_id}"
