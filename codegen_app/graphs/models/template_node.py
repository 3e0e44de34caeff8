"""The scheduler's result for a graph: nodes that become one kernel each, and their problems."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q
from django.urls import reverse

from codegen_app.graphs.models.graph import Graph, GraphNode


class Problem(models.Model):
    """What a kernel has to compute, whatever the model and the kernel are called.

    Op, shapes (expressions over the symbolic sizes), dtypes, layouts and epilogue. Nodes with the
    same problem share measurements, the selected kernel, and the history. ``text`` is the canonical
    description that ``digest`` is the sha256 of.
    """

    digest = models.CharField(max_length=64, unique=True)
    kind = models.CharField(max_length=16, help_text="gemm, reduction, pointwise …")
    op = models.CharField(max_length=64, help_text="linear, addmm, softmax …")
    summary = models.CharField(max_length=300, help_text="One line: shapes, dtypes, epilogue")
    symbols = models.JSONField(default=dict, help_text="Symbols used: {name: {hint, min, max}}")
    text = models.TextField()

    class Meta:
        constraints = [models.CheckConstraint(name="problem_has_text", condition=~Q(text=""))]

    def __str__(self) -> str:
        return f"{self.op} {self.summary}"


class TemplateNode(models.Model):
    """One scheduled node: a kernel, an extern with the reason why it has no kernel, or the begin or
    end of a loop (``LOOP``), which ``extern_reason`` describes.

    ``group`` is Inductor's group_fn (two expressions as text); ``reads``, ``writes`` and ``frees``
    name buffers. ``rejected`` has the configurations that a legality rule rejected: ``[{template,
    config, stage, reason, detail, targets}]``, for each of the graph's targets by itself (without
    ``targets``, from earlier versions, for all together); ``legal`` counts the legal ones of each
    target. ``offered`` counts the kernels whose one source runs on all targets; the recorded ones
    are a sample. ``graph_nodes`` are what it computes.
    """

    LOOP = "loop"  # the engine's name of the kind

    graph = models.ForeignKey(Graph, on_delete=models.CASCADE, related_name="template_nodes")
    problem = models.ForeignKey(
        Problem, null=True, blank=True, on_delete=models.PROTECT, related_name="template_nodes"
    )
    position = models.PositiveIntegerField()
    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=16)
    op = models.CharField(max_length=64)
    group = models.JSONField(default=list)
    reads = models.JSONField(default=list)
    writes = models.JSONField(default=list)
    frees = models.JSONField(default=list)
    rejected = models.JSONField(default=list)
    legal = models.JSONField(default=dict)
    offered = models.PositiveIntegerField(default=0)
    extern_reason = models.TextField(blank=True)
    graph_nodes = models.ManyToManyField(GraphNode, related_name="template_nodes")

    class Meta:
        ordering = ["graph", "position"]
        constraints = [
            models.UniqueConstraint(fields=["graph", "name"], name="templatenode_name_once"),
            models.UniqueConstraint(
                fields=["graph", "position"], name="templatenode_position_once"
            ),
            models.CheckConstraint(
                name="templatenode_problem_or_reason",
                condition=Q(problem__isnull=False) | ~Q(extern_reason=""),
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("template_node", args=[self.pk])

    def rejected_for(self, target: str) -> list[dict[str, Any]]:
        """Return the configurations that are not legal on a target."""
        return [line for line in self.rejected if target in line.get("targets", (target,))]
