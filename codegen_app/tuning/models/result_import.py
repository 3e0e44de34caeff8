"""The origin of imported runs."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import models

from codegen_app.tuning.models.tuning_run import TuningRun


class ResultImport(models.Model):
    """The mark of an imported run: which Kiln measured it, when, on what. Nothing ran here.

    ``digest`` covers all that the file says about the run, so that it is imported once.
    """

    run = models.OneToOneField(TuningRun, on_delete=models.CASCADE, related_name="imported")
    digest = models.CharField(max_length=64, unique=True)
    version = models.CharField(max_length=40, blank=True, help_text="Of the Kiln that measured")
    commit = models.CharField(max_length=64, blank=True)
    host = models.CharField(max_length=200, blank=True, help_text="The kind of host, no name")
    device_name = models.CharField(max_length=200, blank=True)
    driver = models.CharField(max_length=200, blank=True)
    measured_at = models.DateTimeField()
    seed = models.BigIntegerField(null=True, blank=True)
    imported_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    imported_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-imported_at", "-pk"]

    def __str__(self) -> str:
        return origin_text(
            self.device_name, self.driver, self.measured_at, self.commit or self.version
        )


def origin_text(device: str, driver: str, measured_at: datetime, kiln: str) -> str:
    """Return the origin of imported times: device, driver, date, and commit or version of the Kiln
    that measured."""
    if driver and "driver" not in driver:
        driver = f"driver {driver}"
    parts = (device, driver, f"{measured_at:%Y-%m-%d}", f"Kiln {kiln[:12]}" if kiln else "")
    return ", ".join(part for part in parts if part)
