"""Retention policies: without a policy, nothing is deleted by age."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from codegen_app.tracking.models.series import Source

MOST = 36_500  # days; the maximum of a policy
LEAST_FOR_POINTS = 30  # days; what is younger is still judged and bisected


class Kept(models.TextChoices):
    """What a policy applies to."""

    SAMPLES = "samples", "raw samples of points"
    DELIVERIES = "deliveries", "deliveries of notifications"
    BRANCHES = "branches", "points of branches"
    POINTS = "points", "points, but for the median of each day"


class RetentionPolicy(models.Model):
    """What is deleted once it is older than ``days``: raw samples of points of ``source`` ("" for
    all), whose value, interval, n, conditions and changes stay for ever; finished deliveries, whose
    alerts and events stay; all points of a branch that is not the trunk, counted from the last
    point that was stored for the branch; or all points of a day of the trunk but their median
    (``services/day_rollup.py``).

    It runs in steps: ``begun_at`` is when the current pass began (null if none is running),
    ``last_rows`` how many points or deliveries it has rolled up or deleted so far, or in the last
    pass, which ended at ``last_at``; ``total_rows`` counts all passes. A pass over days has done
    all series up to ``last_series``.
    """

    name = models.CharField(max_length=100, unique=True)
    what = models.CharField(max_length=10, choices=Kept.choices, default=Kept.SAMPLES.value)
    source = models.CharField(
        max_length=12, choices=Source.choices, blank=True, help_text="Of points; empty: of all"
    )
    days = models.PositiveIntegerField(validators=[MinValueValidator(1), MaxValueValidator(MOST)])
    active = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    begun_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_rows = models.PositiveBigIntegerField(default=0, editable=False)
    total_rows = models.PositiveBigIntegerField(default=0, editable=False)
    last_series = models.PositiveIntegerField(default=0, db_default=0, editable=False)

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "retention policies"
        constraints = [
            models.CheckConstraint(
                name="retention_keeps_days",
                condition=Q(days__gte=1, days__lte=MOST),
            ),
            models.CheckConstraint(
                name="retention_of_what_there_is",
                condition=Q(what="samples")
                | Q(what__in=("deliveries", "branches", "points"), source=""),
                violation_error_message="only samples have a source: leave it empty",
            ),
            models.CheckConstraint(
                name="retention_of_settled_points",
                condition=~Q(what="points") | Q(days__gte=LEAST_FOR_POINTS),
                violation_error_message="points are judged and bisected for a month: keep all of"
                f" them for {LEAST_FOR_POINTS} days or more",
            ),
        ]

    def __str__(self) -> str:
        return self.name
