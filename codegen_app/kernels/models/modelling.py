"""Where a kernel's cycles go on a board: modelled from its instructions, never measured."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from codegen_app.kernels.models.build import Build
from codegen_app.kernels.models.generated_kernel import KernelUse
from codegen_app.platform.models.artifact import Artifact
from codegen_app.workers.models.work import State, Work


class Modelling(Work):
    """One build on one board at one binding of its sizes, by one version of the model.

    ``sizes`` are those of the symbols of the problem that ``use`` calls the kernel for; it is
    executed at that node. ``report`` is the model's report (``scheduler.cycles.report_json``) of
    the code with ``code_digest``, and of no other code. Times are microseconds, at the low ends of
    the model's constants, their middle, and their high ends; ``unknown`` counts the instructions
    that it does not know, by mnemonic.
    """

    build = models.ForeignKey(Build, on_delete=models.CASCADE, related_name="modellings")
    use = models.ForeignKey(
        KernelUse, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    board = models.CharField(max_length=60)
    sizes = models.JSONField(default=dict)
    version = models.PositiveSmallIntegerField()
    code_digest = models.CharField(max_length=64, blank=True)
    report = models.ForeignKey(
        Artifact, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    low_us = models.FloatField(null=True, blank=True)
    time_us = models.FloatField(null=True, blank=True)
    high_us = models.FloatField(null=True, blank=True)
    sentence = models.TextField(blank=True)
    unknown = models.JSONField(default=dict)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta(Work.Meta):
        ordering = ["build", "board", "pk"]
        indexes = [models.Index(fields=["state", "-priority", "id"], name="modelling_queue")]
        constraints = [
            *Work.Meta.constraints,
            models.UniqueConstraint(
                fields=["build", "board", "sizes", "version"], name="modelling_once"
            ),
            models.CheckConstraint(
                name="modelling_done_has_report",
                condition=~Q(state=State.DONE)
                | (
                    ~Q(code_digest="")
                    & Q(report__isnull=False)
                    & Q(low_us__gt=0, time_us__gte=F("low_us"), high_us__gte=F("time_us"))
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"build {self.build_id} on {self.board}"
