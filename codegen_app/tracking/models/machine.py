"""Machines whose series moved together."""

from __future__ import annotations

from django.db import models

from codegen_app.tracking.models.alert import Alert


class MachineFinding(models.Model):
    """The machine of an alert: a host, or a device model if ``host`` is empty because none was
    recorded with its points.

    ``ratio`` is the geometric mean of after / before over the alert's series, ``low`` and ``high``
    its 95% interval. ``n_measured`` is the number of series that were measured on it between its
    change and the alert; ``readings`` are those that differ (``machines.MovedReading`` of
    ``scheduler.track``).
    ``is_set_aside``: the alert's state was applied to its points, which are set aside while the
    alert is open, and after it was fixed.
    """

    alert = models.OneToOneField(Alert, on_delete=models.CASCADE, related_name="finding")
    host = models.CharField(max_length=1000, blank=True)
    device_name = models.CharField(max_length=200, blank=True)
    ratio = models.FloatField()
    low = models.FloatField()
    high = models.FloatField()
    n_measured = models.PositiveIntegerField()
    readings = models.JSONField(default=list, blank=True)
    is_set_aside = models.BooleanField(default=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="machinefinding_of_host_or_device",
                condition=~models.Q(host="", device_name=""),
            ),
        ]

    def __str__(self) -> str:
        return self.host or self.device_name
