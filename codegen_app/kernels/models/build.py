"""A kernel compiled for a target: code object, listing, library, log, resources."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from codegen_app.kernels.models.generated_kernel import GeneratedKernel
from codegen_app.platform.models.artifact import Artifact
from codegen_app.workers.models.work import OPEN_STATES, State, Work

#: Why a build is not work here: it came with imported times.
ELSEWHERE = "compiled elsewhere: imported with its times"
#: The builds with figures: compiled here, or imported with their times, also while they are to be
#: compiled here, too.
WITH_FIGURES = (
    Q(state=State.DONE)
    | Q(state=State.CANCELLED, reason=ELSEWHERE)
    | Q(state__in=OPEN_STATES) & ~Q(resources={})
)


class Build(Work):
    """One kernel for one target with one toolchain and one set of flags.

    ``resources`` maps a device function to the compiler's figures (``scheduler.build.model.
    Resources``), empty for CPU emulation. ``diagnostics`` is ``[{severity, line, column,
    message}]`` at lines of the kernel's source. A compile error is a rejected row: ``reason`` has
    the first error, ``log`` the whole output. ``intermediate`` is the text between source and
    listing (PTX), for compilers that have one; without an assembler there is no code object, and it
    is the listing too.
    """

    kernel = models.ForeignKey(GeneratedKernel, on_delete=models.PROTECT, related_name="builds")
    target = models.CharField(max_length=24)
    flags = models.JSONField(default=list)
    toolchain = models.CharField(max_length=32, help_text="rocm, system, bundled, nvcc")
    toolchain_version = models.CharField(max_length=200)
    toolchain_digest = models.CharField(max_length=64)
    code_digest = models.CharField(max_length=64, blank=True)
    duration_s = models.FloatField(null=True, blank=True, help_text="The compiler's time")
    cached = models.BooleanField(default=False, help_text="Nothing was compiled for this row")
    requested = models.BooleanField(
        default=False, help_text="A person asked for it: it is built whoever else waits for it"
    )
    log = models.TextField(blank=True)
    diagnostics = models.JSONField(default=list)
    resources = models.JSONField(default=dict)
    instructions = models.PositiveIntegerField(
        null=True, blank=True, help_text="Of its listing, once they are counted for searches"
    )
    listing = models.ForeignKey(
        Artifact, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    code_object = models.ForeignKey(
        Artifact, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    intermediate = models.ForeignKey(
        Artifact, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    library = models.ForeignKey(
        Artifact, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )

    class Meta(Work.Meta):
        permissions = [("build", "Can ask for builds of kernels, with flags")]
        ordering = ["kernel", "target", "pk"]
        indexes = [
            models.Index(fields=["state", "-priority", "id"], name="build_queue"),
            models.Index(
                fields=["id"],
                condition=Q(listing__isnull=False, instructions__isnull=True),
                name="build_not_counted",
            ),
        ]
        constraints = [
            *Work.Meta.constraints,
            models.UniqueConstraint(
                fields=[
                    "kernel",
                    "target",
                    "flags",
                    "toolchain",
                    "toolchain_version",
                    "toolchain_digest",
                ],
                name="build_once",
            ),
            models.CheckConstraint(
                name="build_done_has_code",
                condition=~Q(state=State.DONE)
                | (~Q(code_digest="") & Q(library__isnull=False) & Q(duration_s__gte=0)),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kernel_id} {self.target}"

    @property
    def has_figures(self) -> bool:
        """Whether it is one of ``WITH_FIGURES``."""
        return (
            self.state == State.DONE
            or (self.state == State.CANCELLED and self.reason == ELSEWHERE)
            or (self.state in OPEN_STATES and bool(self.resources))
        )
