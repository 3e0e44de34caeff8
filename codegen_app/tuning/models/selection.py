"""Which kernel is selected for a problem on an architecture, with its reasons and history."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from codegen_app.graphs.models.template_node import Problem
from codegen_app.kernels.models.generated_kernel import GeneratedKernel
from codegen_app.tuning.models.benchmark_result import BenchmarkResult


class Selection(models.Model):
    """A kernel that is (``until`` is null) or was selected for a problem on a device model.

    Each toolchain, and each binding of the symbolic sizes, has its own choice: another compiler's
    code, or times at other sizes, do not apply. ``toolchain`` is the compiler's name and version.
    """

    problem = models.ForeignKey(Problem, on_delete=models.PROTECT, related_name="selections")
    target = models.CharField(max_length=24)
    device_name = models.CharField(max_length=200)
    toolchain = models.CharField(max_length=240, blank=True)
    bindings = models.JSONField(default=dict)
    kernel = models.ForeignKey(GeneratedKernel, on_delete=models.PROTECT, related_name="selections")
    result = models.ForeignKey(
        BenchmarkResult, null=True, blank=True, on_delete=models.PROTECT, related_name="selections"
    )
    reason = models.CharField(max_length=300)
    chosen_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    since = models.DateTimeField()
    until = models.DateTimeField(null=True, blank=True)

    class Meta:
        permissions = [("select", "Can change which kernels serve")]
        ordering = ["-since", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["problem", "target", "device_name", "toolchain", "bindings"],
                condition=Q(until__isnull=True),
                name="selection_one_serves",
            ),
            models.CheckConstraint(
                name="selection_ends_after_it_began",
                condition=Q(until__isnull=True) | Q(until__gte=F("since")),
            ),
        ]

    @property
    def bucket(self) -> dict[str, Any]:
        """Return the columns of which each combination has one current selection."""
        return {
            "problem_id": self.problem_id,
            "target": self.target,
            "device_name": self.device_name,
            "toolchain": self.toolchain,
            "bindings": self.bindings,
        }

    @property
    def bucket_key(self) -> tuple[object, ...]:
        """Return the same as a key of a dictionary."""
        return tuple(
            tuple(sorted(value.items())) if name == "bindings" else value
            for name, value in self.bucket.items()
        )

    def __str__(self) -> str:
        return f"{self.kernel_id} on {self.target}"
