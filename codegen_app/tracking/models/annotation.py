"""Notes at points of series."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from codegen_app.tracking.models.series import Datum, Series


class Annotation(models.Model):
    """A note at a point, shown on the chart of its series. ``removed_at``: it was removed."""

    datum = models.ForeignKey(Datum, on_delete=models.CASCADE, related_name="annotations")
    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="annotations")
    text = models.CharField(max_length=500)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    removed_at = models.DateTimeField(null=True, blank=True)
    removed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ["series", "pk"]
        constraints = [
            models.CheckConstraint(name="annotation_has_text", condition=~Q(text="")),
        ]

    def __str__(self) -> str:
        return self.text
