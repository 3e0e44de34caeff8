"""What is rolled up with age: nothing is, without a policy that says so."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from codegen_app.models.series import Source


class RetentionPolicy(models.Model):
    """Raw samples of points of ``source`` ("" for all) go once they are older than
    ``samples_days``; value, interval, n, conditions and changes stay for ever.

    ``last_at`` and ``last_points`` tell of the last time that it was carried out.
    """

    name = models.CharField(max_length=100, unique=True)
    source = models.CharField(max_length=12, choices=Source.choices, blank=True)
    samples_days = models.PositiveIntegerField()
    active = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    last_at = models.DateTimeField(null=True, blank=True)
    last_points = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "retention policies"
        constraints = [
            models.CheckConstraint(name="retention_keeps_a_day", condition=Q(samples_days__gte=1)),
        ]

    def __str__(self) -> str:
        return self.name
