"""Points that stand for a day."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from codegen_app.tracking.models.series import Datum


class DaySummary(models.Model):
    """A point that stands for a day of its level, since a policy deleted the others: their median,
    as it was measured. ``points`` is the number of all, with it; ``low`` and ``high`` are the
    smallest and the largest of their values. Days are of UTC."""

    datum = models.OneToOneField(
        Datum, primary_key=True, on_delete=models.CASCADE, related_name="day_summary"
    )
    points = models.PositiveIntegerField()
    low = models.FloatField()
    high = models.FloatField()

    class Meta:
        ordering = ["pk"]
        verbose_name_plural = "day summaries"
        constraints = [
            models.CheckConstraint(
                name="day_summary_of_several", condition=Q(points__gte=2, low__lte=F("high"))
            ),
        ]

    def __str__(self) -> str:
        return f"{self.datum}, the median of {self.points} points"
