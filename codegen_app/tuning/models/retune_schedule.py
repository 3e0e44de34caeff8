"""When the application itself requests tuning runs."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from codegen_app.graphs.models.graph import Graph
from scheduler.tuning.strategies.registry import DEFAULT_STRATEGY


class Occasion(models.TextChoices):
    """What starts a scheduled run."""

    NIGHTLY = "nightly", "every night"
    IMPORT = "import", "after an import"
    TOOLCHAIN = "toolchain", "when a toolchain changes"


class RetuneSchedule(models.Model):
    """Runs that are requested on an occasion, of one graph or (``graph`` null) of all.

    ``hour`` is that of the night, in UTC. ``toolchains`` names the known ones: another one is the
    awaited change. ``last_at`` is the last occasion.
    """

    occasion = models.CharField(max_length=12, choices=Occasion.choices)
    graph = models.ForeignKey(
        Graph, null=True, blank=True, on_delete=models.CASCADE, related_name="schedules"
    )
    target = models.CharField(max_length=24, default="cpu")
    device = models.CharField(max_length=32, default="cpu", help_text="cpu, rocm:0 …")
    budget_s = models.FloatField(null=True, blank=True, default=600, help_text="Seconds a run")
    max_compiles = models.PositiveIntegerField(null=True, blank=True)
    max_measurements = models.PositiveIntegerField(null=True, blank=True)
    strategy = models.CharField(
        max_length=24, default=DEFAULT_STRATEGY, help_text="In which order a search tries"
    )
    priority = models.SmallIntegerField(default=-10, help_text="Below what people ask for")
    hour = models.PositiveSmallIntegerField(default=2, help_text="0 to 23, UTC; for every night")
    enabled = models.BooleanField(default=True)
    toolchains = models.JSONField(default=list, editable=False)
    last_at = models.DateTimeField(null=True, editable=False)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        editable=False,
        on_delete=models.SET_NULL,
    )

    class Meta:
        permissions = [("schedule", "Can schedule tuning runs")]
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(
                name="retuneschedule_occasion_known", condition=Q(occasion__in=Occasion.values)
            ),
            models.CheckConstraint(name="retuneschedule_hour", condition=Q(hour__lte=23)),
            models.CheckConstraint(
                name="retuneschedule_has_budget",
                condition=Q(budget_s__gt=0)
                | Q(budget_s__isnull=True, max_compiles__gt=0)
                | Q(budget_s__isnull=True, max_measurements__gt=0),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_occasion_display()}: {self.graph or 'all graphs'} for {self.target}"
