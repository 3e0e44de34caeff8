"""External kernels that people analyse: a file, its launch, and the model's report."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.urls import reverse

from codegen_app.platform.models.artifact import Artifact
from codegen_app.workers.models.work import State, Work


class ForeignKernel(Work):
    """One launch of a kernel in a file, on one board.

    ``name`` is the file's name, ``launch`` JSON (``scheduler/cycles/launches``). A worker reads the
    file (its ``listing``), then models it (``report``); ``phase`` is the current step. Times are
    microseconds, as in ``Modelling``.
    """

    name = models.CharField(max_length=200)
    file = models.ForeignKey(Artifact, on_delete=models.PROTECT, related_name="+")
    launch = models.TextField()
    target = models.CharField(max_length=24)
    board = models.CharField(max_length=60)
    phase = models.CharField(max_length=16, blank=True)
    function = models.CharField(max_length=4096, blank=True)
    version = models.PositiveSmallIntegerField(default=0)
    listing = models.ForeignKey(
        Artifact, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    report = models.ForeignKey(
        Artifact, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    low_us = models.FloatField(null=True, blank=True)
    time_us = models.FloatField(null=True, blank=True)
    high_us = models.FloatField(null=True, blank=True)
    sentence = models.TextField(blank=True)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta(Work.Meta):
        ordering = ["-created_at", "-pk"]
        indexes = [models.Index(fields=["state", "-priority", "id"], name="foreign_kernel_queue")]
        constraints = [
            *Work.Meta.constraints,
            models.CheckConstraint(
                name="foreign_kernel_done_has_report",
                condition=~Q(state=State.DONE)
                | Q(
                    listing__isnull=False,
                    report__isnull=False,
                    low_us__gt=0,
                    time_us__gte=F("low_us"),
                    high_us__gte=F("time_us"),
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} on {self.board}"

    def get_absolute_url(self) -> str:
        return reverse("foreign_kernel", args=[self.pk])
