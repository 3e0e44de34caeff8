"""What is rolled up with age: nothing is, without a policy that says so."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from codegen_app.models.series import Source

MOST = 36_500  # days; a policy that keeps samples for longer is none


class RetentionPolicy(models.Model):
    """Raw samples of points of ``source`` ("" for all) go once they are older than
    ``samples_days``; value, interval, n, conditions and changes stay for ever.

    It is carried out in steps: ``begun_at`` is when the present pass over the points began (null
    where none is under way), ``last_points`` how many it has rolled up so far, or the last one
    did, which ended at ``last_at``; ``total_points`` those of all passes.
    """

    name = models.CharField(max_length=100, unique=True)
    source = models.CharField(max_length=12, choices=Source.choices, blank=True)
    samples_days = models.PositiveIntegerField(
        validators=[MinValueValidator(1), MaxValueValidator(MOST)]
    )
    active = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    begun_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_points = models.PositiveBigIntegerField(default=0, editable=False)
    total_points = models.PositiveBigIntegerField(default=0, editable=False)

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "retention policies"
        constraints = [
            models.CheckConstraint(
                name="retention_keeps_days",
                condition=Q(samples_days__gte=1, samples_days__lte=MOST),
            ),
        ]

    def __str__(self) -> str:
        return self.name
