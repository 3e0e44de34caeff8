"""Bundles that take longer to pack than a page may wait: a worker packs them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse

from codegen_app.graphs.models.graph import Graph
from codegen_app.kernels.models.generated_kernel import KernelUse
from codegen_app.platform.models.artifact import Artifact
from codegen_app.workers.models.work import State, Work


class Packing(Work):
    """One bundle of a graph, or of the kernel that ``use`` has at one of its nodes.

    ``key`` is the digest of all its inputs (``tuning/services/bundles.py``): equal requests get the
    same row while nothing changed. ``times`` is the bucket of the selections. ``packed`` of
    ``kernels`` are done.
    """

    graph = models.ForeignKey(Graph, on_delete=models.CASCADE, related_name="packings")
    use = models.ForeignKey(
        KernelUse, null=True, blank=True, on_delete=models.CASCADE, related_name="packings"
    )
    times = models.CharField(max_length=500, blank=True)
    key = models.CharField(max_length=64, unique=True)
    targets = models.JSONField(default=list)
    kernels = models.PositiveIntegerField()
    packed = models.PositiveIntegerField(default=0)
    file = models.ForeignKey(
        Artifact, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )

    class Meta(Work.Meta):
        ordering = ["-created_at", "-pk"]
        indexes = [models.Index(fields=["state", "-priority", "id"], name="packing_queue")]
        constraints = [
            *Work.Meta.constraints,
            models.CheckConstraint(
                name="packing_done_has_file",
                condition=~Q(state=State.DONE) | Q(file__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"packing {self.pk} of graph {self.graph_id}"

    def get_absolute_url(self) -> str:
        return reverse("packing", args=[self.pk])
